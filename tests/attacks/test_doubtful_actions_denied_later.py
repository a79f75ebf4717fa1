"""A stricter policy after a crash does not turn an action that may have been done into "nothing was done"."""

import asyncio
from dataclasses import replace

import pytest

from sash.testing import calling
from sash.values.sessions import Budgets, OperatorLimits
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S
from tests.tools import tool

DRY = replace(OPEN, dry_run=True)
OFF = replace(OPEN, allow_actuation=False)


@pytest.fixture
async def crash(run, make_store, clock):
    """Return a function that stops a process during an action, and resumes it under another operator."""
    store = make_store()

    async def crash(operator, preview=None):
        under_way, made = asyncio.Event(), []

        async def act(arguments, context):
            made.append("act")
            under_way.set()
            if len(made) == 1:
                await asyncio.Event().wait()

        async def verify(arguments, context):
            made.append("verify")
            return "it is done"

        switch = tool("switch", act, action=True, safety="verify", verify=verify, preview=preview)
        first = await run(calling("switch"), tools=[switch], store=store)
        session = await first.start_session(policy=OPEN)
        sent = await first.send_message(session.id, "go")
        await asyncio.wait_for(under_way.wait(), WAIT_S)
        await first.abandon_turns()
        await first.close()
        clock.advance(31)
        limits = OperatorLimits(operator, Budgets())
        second = await run("ok", tools=[switch], store=store, operator=limits)
        await second.resume(sent.id)
        return second, await second.await_continuation(sent.id, timeout_s=WAIT_S), made

    return crash


def outcomes(result):
    return [action.outcome for action in result.response.actions]


@pytest.mark.parametrize("operator", [DRY, OFF], ids=["dry run", "off"])
async def test_it_is_unknown_if_the_operator_forbids_it_now(crash, operator):
    _, result, made = await crash(operator)
    assert (outcomes(result), made) == (["unknown"], ["act"])


@pytest.mark.parametrize(
    ("approved", "outcome", "calls"), [(False, "unknown", ["act"]), (True, "done", ["act", "verify"])]
)
async def test_an_approval_does_not_clear_the_doubt(crash, approved, outcome, calls):
    runtime, waiting, made = await crash(CAREFUL)
    assert waiting.status == "awaiting_approval"
    await runtime.approve(waiting.continuation.id, "call", approved)
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert (outcomes(result), made) == ([outcome], calls)


async def test_it_is_unknown_if_the_approval_is_cancelled(crash):
    runtime, waiting, made = await crash(CAREFUL)
    await runtime.cancel(waiting.continuation.id)
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert (outcomes(result), made) == (["unknown"], ["act"])


async def test_it_is_unknown_if_the_approved_effect_has_changed(crash):
    effects = []

    async def preview(arguments, context):
        effects.append("effect")
        return len(effects)

    runtime, waiting, made = await crash(CAREFUL, preview)
    await runtime.approve(waiting.continuation.id, "call")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert (outcomes(result), made) == (["unknown"], ["act"])


async def test_it_is_unknown_if_no_approval_can_be_requested(crash):
    async def preview(arguments, context):
        raise ValueError("no preview")

    _, result, made = await crash(CAREFUL, preview)
    assert (outcomes(result), made) == (["unknown"], ["act"])
