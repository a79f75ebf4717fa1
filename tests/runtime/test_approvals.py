"""Actions that the policy allows, denies, or lets wait for an approval."""

import pytest

from sash.engine.redaction import MARK
from sash.errors import (
    InvalidInput,
    SessionBusy,
)
from sash.testing import both, calling
from sash.values.sessions import SessionPolicy
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S, tool_results, turn
from tests.tools import tool

LOCK = {"allow_actuation": True, "allowlisted_services": ("*",)}


async def test_actions_are_off_until_they_are_allowed(run):
    done = []
    light = tool("light", lambda a, c: done.append(a), action=True)
    for policy, outcome in (
        (SessionPolicy(), "denied"),
        (SessionPolicy(allow_actuation=True), "denied"),
        (SessionPolicy(**LOCK, denylisted_services=("light",)), "denied"),
        (SessionPolicy(**LOCK), "done"),
    ):
        runtime = await run(calling("light"), "ok", tools=[light])
        session = await runtime.start_session(policy=policy)
        result = await turn(runtime, session)
        assert [action.outcome for action in result.response.actions] == [outcome]
        await runtime.close()
    assert len(done) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_survives_a_restart(run, approved):
    done = []
    unlock = tool("lock.unlock", lambda a, c: done.append(a) or "open", action=True)
    policy = SessionPolicy(**LOCK, require_confirmation=("lock",))
    first = await run(calling("lock.unlock", "c1", door="front"), tools=[unlock])
    session = await first.start_session(policy=policy)
    waiting = await turn(first, session)
    assert waiting.status == "awaiting_approval"
    assert done == []
    with pytest.raises(SessionBusy):
        await first.send_message(session.id, "hello?")
    await first.close()

    second = await run("As you say.", tools=[unlock], store=first.store)
    assert (await second.await_continuation(waiting.continuation.id)).status == "awaiting_approval"
    with pytest.raises(InvalidInput, match="these do: c1"):
        await second.approve(waiting.continuation.id, "other")
    await second.approve(waiting.continuation.id, "c1", approved)
    result = await second.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert result.status == "completed"
    assert len(done) == approved
    assert [a.outcome for a in result.response.actions] == ["done" if approved else "denied"]


async def test_a_secret_argument_is_not_made_up_after_an_approval(run):
    given = []

    async def unlock(arguments, context):
        given.append(arguments)

    runtime = await run(
        calling("unlock", password="hunter2x"),
        "I need the password.",
        tools=[tool("unlock", unlock, action=True)],
    )
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await turn(runtime, session)
    assert waiting.status == "awaiting_approval"
    await runtime.approve(waiting.continuation.id, "call")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert given == []
    assert [a.outcome for a in result.response.actions] == ["denied"]
    assert MARK in (await tool_results(runtime, session))[0]


async def test_tools_that_are_off_stay_off(run):
    async def never(arguments, context):
        raise AssertionError

    runtime = await run(calling("look"), "sorry", tools=[tool("look", never)])
    session = await runtime.start_session()
    result = await turn(runtime, session, allow_tools=False)
    assert result.response.final_message == "sorry"
    assert (await tool_results(runtime, session))[0].startswith("not done: tools are off")


async def test_two_approvals_survive_a_restart_between_them(run, make_store, clock):
    made = []

    async def act(arguments, context):
        made.append(context.call_id)

    store, acting = make_store(), tool("act", act, action=True)
    first = await run(both(calling("act", "a"), calling("act", "b")), "done", tools=[acting], store=store)
    session = await first.start_session(policy=CAREFUL)
    waiting = await turn(first, session)
    await first.approve(waiting.continuation.id, "a")
    assert (
        await first.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    ).status == "awaiting_approval"
    await first.close()
    clock.advance(31)
    second = await run("done", tools=[acting], store=store)
    await second.approve(waiting.continuation.id, "b")
    assert (await second.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)).status == "completed"
    assert made == ["a", "b"]
