"""An action that is cut off while the home performs it is reported, read back, and can be undone."""

import asyncio
from datetime import timedelta

import pytest

from sash import Runtime
from sash.errors import ContinuationNotFound, HomeUnavailable
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.sessions import Budgets
from tests.backends import BACKENDS
from tests.home.small_home import NOW, house
from tests.runtime.home_actions import FREE, ON, actions
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S, turn
from tests.surfaces.serving import serving
from tests.surfaces.speaking import call, talking

LAMP = "light.kitchen_ceiling"
TURN_ON = calling("call_service", **ON)
DONE, UNKNOWN = ("call_service", "done", True), ("call_service", "unknown", None)


class SlowHouse:
    """A home whose first call hangs until `release`. If `is_quick`, the lamp is on when the call hangs."""

    def __init__(self, is_quick=False):
        self.home, self.is_quick = house(), is_quick
        self.under_way, self.release = asyncio.Event(), asyncio.Event()
        self._call, self.home.call_service = self.home.call_service, self.call_service

    async def call_service(self, *order, **options):
        if self.under_way.is_set():
            await self._call(*order, **options)
            return
        if self.is_quick:
            self.switch()
        self.under_way.set()
        await self.release.wait()

    def switch(self, state="on"):
        self.home.set_state(LAMP, state)


@pytest.fixture(params=BACKENDS)
async def start(request, tmp_path, monkeypatch):
    """Return a function that opens a runtime and sends a message whose action hangs."""
    monkeypatch.setattr("sash.home.actions.READ_BACK_S", 0.01)
    opened, clock = [], FakeClock(NOW + timedelta(hours=1))

    async def start(slow, *lines, sends=True, store=None, act=TURN_ON, **options):
        store = store or BACKENDS[request.param](tmp_path, clock)
        model = ScriptedModel(act, *(lines or ("ok",)))
        runtime = Runtime(store, model, home=slow.home, clock=clock)
        await runtime.open()
        opened.append(runtime)
        async with asyncio.timeout(WAIT_S):
            await runtime.home.wait_until_ready()
            if not sends:
                return runtime
            session = await runtime.start_session(policy=FREE, **options)
            sent = await runtime.send_message(session.id, "make it bright for my cat")
            await slow.under_way.wait()
        return runtime, session, sent

    yield start
    for runtime in opened:
        await runtime.close()


async def cancel(runtime, session, sent):
    await runtime.cancel(sent.id)


async def interrupt(runtime, session, sent):
    await runtime.send_message(session.id, "what is the weather like", busy="interrupt")


async def end_session(runtime, session, sent):
    await runtime.end_session(session.id)


@pytest.mark.parametrize("stop", [cancel, interrupt, end_session])
@pytest.mark.parametrize(("is_quick", "outcome"), [(False, UNKNOWN), (True, DONE)])
async def test_an_action_that_is_cut_off_is_in_the_response(start, stop, is_quick, outcome):
    runtime, session, sent = await start(SlowHouse(is_quick))
    async with asyncio.timeout(WAIT_S):
        await stop(runtime, session, sent)
        result = await runtime.await_continuation(sent.id)
    assert (result.status, actions(result)) == ("cancelled", [outcome])
    assert [step.type for step in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    assert result.response.actions[0].before[LAMP]["state"] == "off"


@pytest.mark.parametrize("is_quick", [False, True])
async def test_it_can_be_undone(start, is_quick):
    slow = SlowHouse(is_quick)
    runtime, session, sent = await start(slow)
    await runtime.cancel(sent.id)
    slow.switch()
    undone = await turn(runtime, session, "undo that")
    assert actions(undone) == [("undo_last_action", "done", True)]
    assert runtime.home.index.get_state(LAMP) == "off"
    again = await turn(runtime, session, "undo that")
    assert runtime.home.index.get_state(LAMP) == "off"
    assert "undo_last_action" not in [a.name for a in again.response.actions if a.outcome == "done"]


async def test_it_can_be_undone_after_a_restart(start):
    slow = SlowHouse()
    runtime, session, sent = await start(slow)
    await runtime.cancel(sent.id)
    slow.switch()
    store = runtime.store
    second = await start(slow, sends=False, store=store)
    assert actions(await turn(second, session, "undo that")) == [("undo_last_action", "done", True)]
    assert second.home.index.get_state(LAMP) == "off"


@pytest.mark.parametrize("now", ["off", "unavailable"])
async def test_what_the_home_does_not_show_is_not_undone(start, now):
    slow = SlowHouse()
    runtime, session, sent = await start(slow, "It is unknown.", "It is unknown.")
    await runtime.cancel(sent.id)
    slow.switch(now)
    result = await turn(runtime, session, "undo that")
    assert [action.outcome for action in result.response.actions] == ["failed"]
    assert slow.home.calls == []


async def test_an_action_cut_off_by_the_time_budget_can_be_undone(start):
    slow = SlowHouse()
    runtime, session, sent = await start(slow, budgets=Budgets(max_duration_ms=200))
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (result.status, actions(result)) == ("completed", [UNKNOWN])
    slow.switch()
    assert actions(await turn(runtime, session, "undo that")) == [("undo_last_action", "done", True)]


async def test_a_connection_that_is_lost_during_the_action_leaves_it_undoable(start):
    slow = SlowHouse()
    runtime = await start(slow, "I do not know.", sends=False)
    slow.under_way.set()
    slow.home.fail_next("light.turn_on", HomeUnavailable("the connection was lost"))
    session = await runtime.start_session(policy=FREE)
    assert actions(await turn(runtime, session, "make it bright for my cat")) == [UNKNOWN]
    slow.switch()
    assert actions(await turn(runtime, session, "undo that")) == [("undo_last_action", "done", True)]


async def test_a_cancel_by_another_process_reports_the_action(start):
    """The other process does not know the states before the action."""
    slow = SlowHouse()
    runtime, _, sent = await start(slow)
    other = await start(slow, sends=False, store=runtime.store)
    await other.cancel(sent.id)
    result = await other.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (result.status, actions(result)) == ("cancelled", [UNKNOWN])


async def test_an_interrupted_turn_that_is_cancelled_reports_the_action(start):
    slow = SlowHouse()
    runtime, _, sent = await start(slow)
    store = runtime.store
    await runtime.abandon_turns()
    other = await start(slow, sends=False, store=store)
    await other.cancel(sent.id)
    assert actions(await other.await_continuation(sent.id, timeout_s=WAIT_S)) == [UNKNOWN]


@pytest.mark.parametrize(("service", "outcome"), [("light.turn_on", DONE), ("light.toggle", UNKNOWN)])
async def test_an_action_cut_off_by_a_shutdown_can_be_undone(start, service, outcome):
    slow = SlowHouse()
    runtime, session, sent = await start(slow, act=calling("call_service", **ON | {"service": service}))
    store, close = runtime.store, runtime.store.close
    store.close = store.open
    await runtime.close()
    store.close = close
    slow.switch()
    second = await start(slow, sends=False, store=store, act="It is on.")
    async with asyncio.timeout(WAIT_S):
        await second.resume(sent.id)
        assert actions(await second.await_continuation(sent.id)) == [outcome]
    assert actions(await turn(second, session, "undo that")) == [("undo_last_action", "done", True)]
    assert second.home.index.get_state(LAMP) == "off"


async def test_another_owner_cannot_cut_it_off(start):
    runtime, _, sent = await start(SlowHouse())
    with pytest.raises(ContinuationNotFound):
        await runtime.cancel(sent.id, owner="mallory")
    assert (await runtime.await_continuation(sent.id, timeout_s=0)).status == "running"
    cancelled = await runtime.cancel(sent.id)
    assert cancelled.response.actions[0].outcome == "unknown"


async def test_a_call_that_waits_for_an_approval_is_not_reported(start):
    runtime = await start(SlowHouse(), sends=False)
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await turn(runtime, session, "make it bright for my cat")
    assert waiting.status == "awaiting_approval"
    cancelled = await runtime.cancel(waiting.continuation.id)
    assert cancelled.response is None


async def test_a_result_that_comes_during_the_cancel_is_not_written_twice(start):
    """The action returns while the store writes the cancel."""
    slow = SlowHouse()
    runtime, _, sent = await start(slow)
    write, store = runtime.store.cancel, runtime.store

    async def slow_cancel(*order, **options):
        slow.release.set()
        for _ in range(100):
            await asyncio.sleep(0)
        return await write(*order, **options)

    store.cancel = slow_cancel
    async with asyncio.timeout(WAIT_S):
        await runtime.cancel(sent.id)
        result = await runtime.await_continuation(sent.id)
    assert [step.type for step in result.steps].count("tool_result") == 1


async def test_rest_and_mcp_show_the_action(tmp_path):
    slow = SlowHouse()
    model = ScriptedModel(TURN_ON)
    policy = {"allow_actuation": True, "allowlisted_services": ["*"]}
    async with (
        serving(tmp_path, model=model, home=slow.home, **policy) as served,
        asyncio.timeout(WAIT_S),
    ):
        await served.runtime.home.wait_until_ready()
        sent = await served.send(await served.start(policy=policy), "make it bright for my cat")
        await slow.under_way.wait()
        await served.client.post(f"/v1/continuations/{sent}/cancel")
        [action] = (await served.wait(sent))["response"]["actions"]
        assert (action["outcome"], action["verified"]) == ("unknown", None)
        async with talking(served.url, "2026-07-28") as client:
            shown = await call(client, "ha_agent_await_continuation", continuation_id=sent)
        assert shown["response"]["actions"] == [action]
