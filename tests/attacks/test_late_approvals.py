"""Approvals, resumes and cancels that arrive late: the turn has gone on, or its session has ended."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import ContinuationFinal, NotAwaitingApproval, SessionEnded, StoreUnavailable
from sash.testing import FaultyStore, calling
from tests.pausing_store import PausingStore
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool


class Gate:
    """Lets one call of a store's method wait before it starts."""

    def __init__(self):
        self.verb, self.reached, self.go_on = "", asyncio.Event(), asyncio.Event()

    async def pause(self, verb):
        if verb == self.verb:
            self.verb = ""
            self.reached.set()
            await self.go_on.wait()


@pytest.mark.parametrize("approved", [True, False])
async def test_an_answer_to_an_earlier_question_does_not_spoil_the_next(run, make_store, approved):
    """Two clients answer the first question. The second answer arrives when the next question is open."""
    made, gate = [], Gate()

    async def act(arguments, context):
        made.append(context.call_id)

    acting = tool("act", act, action=True)
    store = PausingStore(make_store(), gate.pause)
    runtime = await run(calling("act", "a"), calling("act", "b"), "done", tools=[acting], store=store)
    session = await runtime.start_session(policy=CAREFUL)
    waiting = (await turn(runtime, session)).continuation.id
    gate.verb = "claim"
    late = asyncio.create_task(runtime.approve(waiting, "a", approved))
    await asyncio.wait_for(gate.reached.wait(), WAIT_S)
    await runtime.approve(waiting, "a")
    assert (await runtime.await_continuation(waiting, timeout_s=WAIT_S)).status == "awaiting_approval"
    gate.go_on.set()
    with pytest.raises(NotAwaitingApproval):
        await asyncio.wait_for(late, WAIT_S)
    again = await runtime.await_continuation(waiting, timeout_s=WAIT_S)
    assert [call.call_id for call in again.waiting_calls] == ["b"]
    await runtime.approve(waiting, "b")
    assert (await runtime.await_continuation(waiting, timeout_s=WAIT_S)).status == "completed"
    assert made == ["a", "b"]


class Switch:
    """A tool that acts. Its first call never ends if `hangs`."""

    def __init__(self, *, hangs=False):
        self.made, self.started, self._hangs = [], asyncio.Event(), hangs
        self.tool = tool("act", self._act, action=True, safety="idempotent")

    async def _act(self, arguments, context):
        if self._hangs and not self.started.is_set():
            self.started.set()
            await asyncio.Event().wait()
        self.made.append(context.call_id)


@pytest.fixture
def interrupt(run, make_store, clock):
    """Return a function that starts a turn whose process dies while it acts."""

    async def interrupt():
        switch, store = Switch(hangs=True), FaultyStore(make_store())
        runtime = await run(calling("act"), "done", tools=[switch.tool], store=store)
        session = await runtime.start_session(policy=replace(OPEN, resume_interrupted=True))
        sent = await runtime.send_message(session.id, "act")
        await asyncio.wait_for(switch.started.wait(), WAIT_S)
        await runtime.abandon_turns()
        clock.advance(120)
        [lost] = await store.interrupt_lost()
        assert lost.id == sent.id
        return runtime, store, lost, switch.made

    return interrupt


async def end_and_die(runtime, store, session_id):
    """End a session. The process dies before it has cancelled the turns of the session."""
    store.fail("list_continuations", StoreUnavailable("the process died"))
    with pytest.raises(StoreUnavailable):
        await runtime.end_session(session_id)


async def test_an_interrupted_turn_does_not_act_after_its_session_was_ended(interrupt):
    runtime, _, lost, made = await interrupt()
    await runtime.end_session(lost.session_id)
    ended = await runtime.await_continuation(lost.id, timeout_s=0)
    assert (ended.status, [a.outcome for a in ended.response.actions]) == ("cancelled", ["unknown"])
    with pytest.raises(ContinuationFinal):
        await runtime.resume(lost.id)
    assert made == []


@pytest.mark.parametrize("verb", ["resume", "recover"])
async def test_an_interrupted_turn_does_not_act_if_the_end_was_cut_off(interrupt, verb):
    runtime, store, lost, made = await interrupt()
    await end_and_die(runtime, store, lost.session_id)
    if verb == "recover":
        await runtime.recover()
        assert (await runtime.await_continuation(lost.id, timeout_s=0)).status == "cancelled"
    else:
        with pytest.raises(SessionEnded):
            await runtime.resume(lost.id)
    await runtime.wait_for_turns()
    assert made == []


async def test_an_approval_does_not_act_in_a_session_that_has_ended(run, make_store):
    switch, store = Switch(), FaultyStore(make_store())
    runtime = await run(calling("act"), "done", tools=[switch.tool], store=store)
    session = await runtime.start_session(policy=CAREFUL)
    waiting = (await turn(runtime, session)).continuation
    await end_and_die(runtime, store, session.id)
    with pytest.raises(SessionEnded):
        await runtime.approve(waiting.id, "call")
    await runtime.wait_for_turns()
    assert switch.made == []


async def test_a_queued_turn_does_not_start_in_a_session_that_has_ended(run, make_store):
    switch, store = Switch(), FaultyStore(make_store())
    runtime = await run(calling("act"), "done", tools=[switch.tool], store=store)
    session = await runtime.start_session(policy=CAREFUL)
    waiting = (await turn(runtime, session)).continuation
    queued = await runtime.send_message(session.id, "act", busy="enqueue")
    await end_and_die(runtime, store, session.id)
    await runtime.cancel(waiting.id)
    await runtime.recover()
    await runtime.wait_for_turns()
    assert (await runtime.await_continuation(queued.id, timeout_s=0)).status == "cancelled"
    assert len(runtime.model.requests) == 1
