"""A crash during a tool call whose arguments are not valid any more leaves a turn that can be settled."""

import asyncio

import pytest

from sash.errors import SashError, StoreUnavailable
from sash.testing import FaultyStore, calling
from tests.runtime.policies import OPEN
from tests.runtime.talk import WAIT_S
from tests.tools import tool

NEWER_SCHEMA = {"type": "object", "required": ["entity"]}


@pytest.fixture
async def crash(run, make_store, clock):
    """Return a function that kills a process during an action, and opens a runtime with a newer tool."""

    async def crash():
        under_way, made = asyncio.Event(), []

        async def act(arguments, context):
            made.append("first")
            under_way.set()
            await asyncio.Event().wait()

        store = FaultyStore(make_store())
        first = await run(calling("switch"), tools=[tool("switch", act, action=True)], store=store)
        session = await first.start_session(policy=OPEN)
        sent = await first.send_message(session.id, "go")
        await asyncio.wait_for(under_way.wait(), WAIT_S)
        await first.abandon_turns()
        await first.close()
        clock.advance(31)
        newer = tool("switch", lambda a, c: made.append("again"), action=True, input_schema=NEWER_SCHEMA)
        second = await run("again", tools=[newer], store=store)
        assert (await second.await_continuation(sent.id, timeout_s=0)).status == "interrupted"
        return second, sent, store, made

    return crash


async def test_it_can_be_cancelled_and_reports_the_action(crash):
    runtime, sent, _, made = await crash()
    await runtime.cancel(sent.id)
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert result.status == "cancelled"
    assert [(action.name, action.outcome) for action in result.response.actions] == [("switch", "unknown")]
    assert made == ["first"]


async def test_it_can_be_resumed_and_reports_the_action(crash):
    runtime, sent, _, made = await crash()
    await runtime.resume(sent.id)
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert [(action.name, action.outcome) for action in result.response.actions] == [("switch", "unknown")]
    assert made == ["first"]


async def test_it_can_be_retried_once(crash):
    runtime, sent, _, _ = await crash()
    again = await runtime.retry(sent.id)
    assert (await runtime.await_continuation(again.id, timeout_s=WAIT_S)).status == "completed"
    assert (await runtime.await_continuation(sent.id, timeout_s=0)).status == "cancelled"


async def test_a_retry_that_fails_runs_nothing(crash):
    runtime, sent, store, _ = await crash()
    store.fail("cancel", StoreUnavailable("power cut"))
    with pytest.raises(SashError):
        await runtime.retry(sent.id)
    turns = await store.list_continuations("local", sent.session_id)
    assert [turn.id for turn in turns] == [sent.id]
