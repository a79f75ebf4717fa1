"""Actions on the home: their order, failures, crashes and undo."""

import asyncio
from datetime import timedelta

import pytest

from sash.engine.runtime import Runtime
from sash.errors import ServiceFailed
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from tests.home.small_home import NOW, house
from tests.runtime.home_actions import FREE, ON, actions
from tests.runtime.talk import WAIT_S, turn


async def test_actions_of_one_plan_are_done_in_their_order(live):
    off, on = (
        calling("call_service", what, service=f"light.turn_{what}", entity_ids=["light.kitchen_ceiling"])
        for what in ("off", "on")
    )
    look = calling("get_states", "look", entity_ids=["light.kitchen_ceiling"])
    runtime = await live(both(off, look, on), "It blinked.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "let it blink for my cat")
    assert [call.service for call in runtime.house.calls] == ["light.turn_off", "light.turn_on"]
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "on"


async def test_an_action_that_does_not_work_is_not_claimed(live):
    runtime = await live("It did not work.")
    runtime.house.ignore_next("light.turn_on")
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "done", False)]
    assert result.response.final_message == "It did not work."


async def test_a_model_that_claims_what_has_not_worked_is_corrected(live):
    runtime = await live(calling("call_service", **ON), "Done, I turned on the light.")
    runtime.house.ignore_next("light.turn_on")
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "make it bright for my cat")
    assert "(call_service: no effect seen)" in result.response.final_message


@pytest.mark.parametrize(
    ("service", "happened", "outcome", "calls"),
    [
        ("light.turn_on", True, ("done", True), 1),
        ("light.turn_on", False, ("done", True), 2),
        ("light.toggle", True, ("unknown", None), 1),
    ],
)
async def test_after_a_crash_the_house_is_asked_what_became_of_a_call(
    live, service, happened, outcome, calls
):
    """An action is done once, whatever dies: what can be seen is looked at, what cannot be is not repeated."""
    clock, home, under_way = FakeClock(NOW + timedelta(hours=1)), house(), asyncio.Event()
    store = MemoryStore(clock=clock)
    call, made = home.call_service, []

    async def hanging(*order, **options):
        made.append(order)
        if len(made) == 1:
            if happened:
                await call(*order, **options)
            under_way.set()
            await asyncio.Event().wait()
        await call(*order, **options)

    home.call_service = hanging
    ask = calling("call_service", service=service, entity_ids=["light.kitchen_ceiling"])
    first = await live(ask, "Done.", home=home, store=store, clock=clock)
    session = await first.start_session(policy=FREE)
    sent = await first.send_message(session.id, "make it bright for my cat")
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(31)
    second = Runtime(store, ScriptedModel("Done."), home=home, clock=clock)
    async with second, asyncio.timeout(WAIT_S):
        await second.resume(sent.id)  # the house may not be known yet: it is waited for
        result = await second.await_continuation(sent.id)
        assert actions(result) == [("call_service", *outcome)]
    assert len(made) == calls


async def test_an_action_that_fails_is_told_in_the_houses_own_words(live):
    runtime = await live("The bulb is broken.")
    runtime.house.fail_next("light.turn_on", ServiceFailed("the bulb is broken"))
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "failed", None)]
    assert runtime.model.requests[-1].messages[-1]["content"] == "failed: the bulb is broken"


@pytest.mark.parametrize("sentence", ["undo that", "Undo.", "please undo that", "mach das rückgängig"])
async def test_the_last_action_is_undone_without_a_model(live, sentence):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    result = await turn(runtime, session, sentence)
    assert actions(result) == [("undo_last_action", "done", True)]
    state = (
        "Kitchen ceiling ist wieder aus" if sentence.startswith("mach") else "kitchen ceiling is off again"
    )
    assert state in result.response.final_message
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "off"
    assert runtime.model.requests == []


async def test_undoing_twice_and_more(live):
    runtime = await live("There is nothing to undo.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    await turn(runtime, session, "turn on the kettle")
    await turn(runtime, session, "undo that")
    assert runtime.home.index.get_state("switch.kettle") == "off"
    await turn(runtime, session, "undo that")
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "off"
    result = await turn(runtime, session, "undo that")
    assert actions(result) == [("undo_last_action", "failed", None)]
    assert "nothing to undo" in runtime.model.requests[-1].messages[-1]["content"]


async def test_an_undo_is_an_action_for_the_policy_too(live):
    """A cover that was opened with an approval needs an approval to be closed again."""
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    waiting = await turn(runtime, session, "close the blinds")
    await runtime.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert runtime.home.index.get_state("cover.living_room") == "closed"
    undoing = await turn(runtime, session, "undo that")
    assert undoing.status == "awaiting_approval"
    assert runtime.home.index.get_state("cover.living_room") == "closed"


async def test_an_action_is_undone_after_a_restart(live):
    store, home = MemoryStore(), house()
    first = await live(home=home, store=store)
    session = await first.start_session(policy=FREE)
    await turn(first, session, "turn on the kitchen ceiling")
    await first.close()
    second = await live(home=home, store=store)
    result = await turn(second, session, "undo that")
    assert actions(result) == [("undo_last_action", "done", True)]


async def test_another_sessions_action_is_not_undone(live):
    runtime = await live("Nothing.")
    mine, yours = await runtime.start_session(policy=FREE), await runtime.start_session(policy=FREE)
    await turn(runtime, mine, "turn on the kitchen ceiling")
    result = await turn(runtime, yours, "undo that")
    assert actions(result) == [("undo_last_action", "failed", None)]


@pytest.mark.parametrize(
    "sentence", ["undo" + " " * 100_000 + "x", "can you undo that?", "undo that, and then dance"]
)
async def test_only_a_plain_undo_is_one(live, sentence):
    runtime = await live("Well.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    result = await turn(runtime, session, sentence)
    assert bool(result.response.actions) == (sentence == "can you undo that?")


async def test_an_action_can_be_undone_after_a_sweep_has_dropped_its_steps(live):
    clock = FakeClock()
    runtime = await live("ok", store=MemoryStore(clock=clock), clock=clock)
    session = await runtime.start_session(policy=FREE)
    done = await turn(runtime, session, "turn on the kitchen ceiling light")
    assert actions(done) == [("call_service", "done", True)]
    clock.advance(3 * 24 * 3600)
    assert (await runtime.sweep()).steps > 0
    assert (await runtime.await_continuation(done.continuation.id, timeout_s=0)).steps == ()
    result = await turn(runtime, session, "undo that")
    assert actions(result) == [("undo_last_action", "done", True)]
