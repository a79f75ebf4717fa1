"""Cancels that meet an approval, a claim, a write or the end of the same turn."""

import asyncio

import pytest

from sash.errors import ContinuationFinal
from sash.testing import calling
from tests.pausing_store import PausingStore
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool


class Gates:
    """Stops one call of each named method of a store, before or after its work."""

    def __init__(self):
        self._counts, self._reached, self._go_on = {}, {}, {}

    def close(self, verb, *, after=False):
        self._counts[verb] = 1 if after else 0
        self._reached[verb], self._go_on[verb] = asyncio.Event(), asyncio.Event()

    async def reached(self, verb):
        await asyncio.wait_for(self._reached[verb].wait(), WAIT_S)

    def open(self, verb):
        self._go_on[verb].set()

    async def pause(self, verb):
        count = self._counts.get(verb)
        if count == 0:
            self._counts[verb] = None
            self._reached[verb].set()
            await self._go_on[verb].wait()
        elif count:
            self._counts[verb] = count - 1


class Switch:
    """A tool that acts. Its calls end when `go_on` is set."""

    def __init__(self):
        self.made, self.started, self.go_on = [], asyncio.Event(), asyncio.Event()
        self.tool = tool("act", self._act, action=True, safety="unsafe")

    async def _act(self, arguments, context):
        self.made.append(context.call_id)
        self.started.set()
        await self.go_on.wait()


@pytest.fixture
async def home(run, make_store):
    """Return a runtime whose model acts once, the gates of its store, and the switch."""
    gates, switch = Gates(), Switch()
    store = PausingStore(make_store(), gates.pause)
    return await run(calling("act"), "done", tools=[switch.tool], store=store), gates, switch


async def wait_for_approval(runtime):
    session = await runtime.start_session(policy=CAREFUL)
    return (await turn(runtime, session)).continuation.id


async def read_outcomes(runtime, turn_id):
    """Return the outcomes of the actions that a cancelled turn reports."""
    ended = await runtime.await_continuation(turn_id, timeout_s=0)
    assert ended.status == "cancelled"
    return [] if ended.response is None else [action.outcome for action in ended.response.actions]


async def test_an_action_that_is_approved_during_a_cancel_is_reported(home):
    """The cancel has read the turn. Then the approval starts the action."""
    runtime, gates, switch = home
    turn_id = await wait_for_approval(runtime)
    gates.close("journal", after=True)
    cancelling = asyncio.create_task(runtime.cancel(turn_id))
    await gates.reached("journal")
    await runtime.approve(turn_id, "call")
    await asyncio.wait_for(switch.started.wait(), WAIT_S)
    gates.open("journal")
    await asyncio.wait_for(cancelling, WAIT_S)
    assert await read_outcomes(runtime, turn_id) == ["unknown"]


async def test_an_approved_action_is_not_made_after_a_cancel(home):
    """The approval has claimed the turn. Before the turn runs, it is cancelled."""
    runtime, gates, switch = home
    turn_id = await wait_for_approval(runtime)
    gates.close("claim", after=True)
    approving = asyncio.create_task(runtime.approve(turn_id, "call"))
    await gates.reached("claim")
    await runtime.cancel(turn_id)
    gates.open("claim")
    await asyncio.wait_for(approving, WAIT_S)
    switch.go_on.set()
    await runtime.wait_for_turns()
    assert switch.made == []


async def test_an_action_is_not_made_if_the_cancel_came_while_its_call_was_written(home):
    runtime, gates, switch = home
    session = await runtime.start_session(policy=OPEN)
    gates.close("append")
    sent = await runtime.send_message(session.id, "act")
    await gates.reached("append")
    gates.close("cancel")
    cancelling = asyncio.create_task(runtime.cancel(sent.id))
    await asyncio.sleep(0)
    gates.open("append")
    await gates.reached("cancel")
    switch.go_on.set()
    for _ in range(20):
        await asyncio.sleep(0)
    gates.open("cancel")
    await asyncio.wait_for(cancelling, WAIT_S)
    assert len(await read_outcomes(runtime, sent.id)) == len(switch.made) == 0


async def test_two_cancels_of_a_turn_that_ends_say_that_it_has_ended(home):
    runtime, gates, switch = home
    switch.go_on.set()
    session = await runtime.start_session(policy=OPEN)
    gates.close("finish")
    gates.close("cancel")
    sent = await runtime.send_message(session.id, "act")
    await gates.reached("finish")
    cancels = [asyncio.create_task(runtime.cancel(sent.id)) for _ in range(2)]
    await gates.reached("cancel")
    gates.open("finish")
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
    gates.open("cancel")
    for cancelling in cancels:
        with pytest.raises(ContinuationFinal):
            await asyncio.wait_for(cancelling, WAIT_S)
