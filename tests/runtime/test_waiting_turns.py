"""Waiting turns: what the agent does later, at a time or when an entity has a state."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from sash import Runtime
from sash.demo.simulated_home import SimulatedHome
from sash.errors import TooManyTurns, WaitingTurnNotFound
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, FaultyStore, ScriptedModel, calling
from sash.values.sessions import SessionPolicy
from sash.values.steps import WaitingTurnFired
from tests.home.small_home import LAYOUT, STATES, entity, state
from tests.runtime.home_actions import FREE, actions
from tests.runtime.talk import WAIT_S, transcript, turn

LIGHT = "light.kitchen_ceiling"
TURN_ON = {"service": "light.turn_on", "entity_ids": [LIGHT]}
IN_TEN_MINUTES = {"summary": "turn on the kitchen ceiling", "in_s": 600, "calls": [TURN_ON]}


@pytest.fixture
def home_clock():
    return FakeClock()


@pytest.fixture
async def opened(live, home_clock):
    """Return a function that opens a runtime with the small home, whose model makes these calls one by one."""

    async def opened(*lines, store=None, **options):
        home = SimulatedHome(LAYOUT, STATES, clock=home_clock)
        store = store or MemoryStore(clock=home_clock)
        usual = {"clock": home_clock, "time_zone": UTC, "intents": ()}  # The model registers, not a sentence.
        runtime = await live(*lines, home=home, store=store, **usual | options)
        runtime.clock = home_clock
        return runtime

    return opened


@pytest.fixture
async def register(opened):
    """Return a function that registers a waiting turn in a new session: (runtime, session, the tool's result)."""

    async def register(*registrations, policy=FREE, language=None, **options):
        lines = [
            line
            for n, each in enumerate(registrations)
            for line in (calling("do_later", f"c{n}", **each), "ok")
        ]
        runtime = await opened(*lines, **options)
        session = await runtime.start_session(policy=policy)
        results = []
        for _ in registrations:
            asked = await turn(runtime, session, "please do that later", language=language)
            results.append(json.loads(next(s.body.content for s in asked.steps if s.type == "tool_result")))
        return runtime, session, results[-1] if results else None

    return register


async def fire(runtime, *, known=None):
    """Fire what is due, and return the turns that waiting turns became since the last time, as they are then."""
    known = runtime.__dict__.setdefault("known_to_test", set()) if known is None else known
    async with asyncio.timeout(WAIT_S):
        await runtime.fire_waiting_turns()
        await runtime.wait_for_turns()
    turns = [each.continuation for each in await runtime.list_continuations()]
    fired = sorted(each.id for each in turns if each.request.fired and each.id not in known)
    known.update(fired)
    return [await runtime.await_continuation(each, timeout_s=0) for each in fired]


def said(result):
    return result.response.final_message


async def test_an_action_is_done_at_its_time_and_not_before(register):
    runtime, session, result = await register(IN_TEN_MINUTES)
    assert result["waiting"]["summary"] == "turn on the kitchen ceiling"
    assert result["waiting"]["at"] == "2026-01-01T00:10:00+00:00"
    assert result["waiting"]["entity_ids"] == [LIGHT]
    runtime.clock.advance(599)
    assert await fire(runtime) == []
    assert runtime.house.calls == []
    runtime.clock.advance(1)
    [done] = await fire(runtime)
    assert actions(done) == [("call_service", "done", True)]
    assert said(done) == "Done: turn on the kitchen ceiling."
    assert (await transcript(runtime, session))[-1] == ("assistant", "Done: turn on the kitchen ceiling.")
    assert len(runtime.model.requests) == 2, "no model is asked when it fires"
    assert await runtime.list_waiting(session.id) == []
    assert await fire(runtime) == []


async def test_a_turn_that_is_due_fires_by_itself(register, monkeypatch):
    monkeypatch.setattr("sash.engine.waiting_turns.TICK_S", 0.01)
    runtime, session, _ = await register(IN_TEN_MINUTES)
    runtime.clock.advance(600)
    async with asyncio.timeout(WAIT_S):
        async for event in runtime.events(session.id):
            if event.type == "final" and "Done:" in str(event.payload):
                break
    assert [call.service for call in runtime.house.calls] == ["light.turn_on"]


async def test_the_asker_gets_an_event_that_names_the_waiting_turn(register):
    runtime, session, result = await register(IN_TEN_MINUTES)
    last = await runtime.store.last_cursor("local", session.id)
    runtime.clock.advance(600)
    [done] = await fire(runtime)
    events = await runtime.store.events("local", session.id, after=last)
    first = events[0].step
    assert (first.type, first.detail["event"]) == ("observed_event", "waiting_turn_fired")
    assert first.detail["waiting_turn_id"] == result["waiting"]["id"]
    assert first.detail["outcome"] == "due"
    assert [stored.step.type for stored in events[1:]] == ["plan", "tool_call", "tool_result", "summary"]
    assert done.continuation.request.fired.turn.id == result["waiting"]["id"]


async def test_a_reminder_says_its_text(register):
    runtime, _, _ = await register({"summary": "pizza", "in_s": 60, "say": "Your pizza is ready."})
    runtime.clock.advance(60)
    assert [said(each) for each in await fire(runtime)] == ["Your pizza is ready."]


@pytest.mark.parametrize(
    ("language", "answer"),
    [
        ("de-AT", "Erledigt: Licht an."),
        ("fr", "C'est fait : Licht an."),
        ("es", "Hecho: Licht an."),
        ("it", "Fatto: Licht an."),
        ("nl", "Gedaan: Licht an."),
        ("pl", "Done: Licht an."),
    ],
)
async def test_the_report_is_in_the_language_of_the_question(register, language, answer):
    runtime, _, _ = await register(IN_TEN_MINUTES | {"summary": "Licht an"}, language=language)
    runtime.clock.advance(600)
    assert [said(each) for each in await fire(runtime)] == [answer]


async def test_a_time_without_an_offset_is_a_time_of_the_home(register):
    wanted = {"summary": "x", "at": "2026-01-01T07:00", "say": "Good morning"}
    _, _, result = await register(wanted)
    assert result["waiting"]["at"] == "2026-01-01T07:00:00+00:00"
    _, _, result = await register(wanted | {"at": "2026-01-01T07:00+02:00"})
    assert result["waiting"]["at"] == "2026-01-01T05:00:00+00:00"


async def test_a_state_fires_when_it_is_reached_however_short_it_lasts(register):
    when = {"entity_id": "lock.front_door", "states": ["unlocked"]}
    runtime, _, result = await register({"summary": "tell", "when": when, "say": "The door was unlocked."})
    assert result["waiting"]["when"] == "Front door is unlocked"
    assert await fire(runtime) == []
    runtime.house.set_state("lock.front_door", "unlocked")
    runtime.house.set_state("lock.front_door", "locked")
    assert [said(each) for each in await fire(runtime)] == ["The door was unlocked."]


async def test_the_states_of_a_condition_may_be_the_words_that_the_model_reads(register, monkeypatch):
    window = "binary_sensor.kitchen_window"
    layout = replace(LAYOUT, entities=(*LAYOUT.entities, entity(window, "Kitchen window", "kitchen")))
    states = [*STATES, state(window, "off", device_class="window")]
    monkeypatch.setattr("tests.runtime.test_waiting_turns.LAYOUT", layout)
    monkeypatch.setattr("tests.runtime.test_waiting_turns.STATES", states)
    when = {"entity_id": window, "states": ["open"]}
    runtime, _, _ = await register({"summary": "say it", "say": "It is open.", "when": when})
    assert await fire(runtime) == []
    runtime.house.set_state(window, "on", device_class="window")
    [done] = await fire(runtime)
    assert done.response.final_message.endswith("It is open.")


async def test_a_number_fires_when_it_passes_the_threshold(register):
    when = {"entity_id": "sensor.kitchen_temperature", "above": 25}
    runtime, _, result = await register({"summary": "tell", "when": when, "say": "It is hot."})
    assert result["waiting"]["when"] == "Kitchen temperature is above 25"
    for value in ("25", "unavailable", "unknown", "warm", "nan"):
        runtime.house.set_state("sensor.kitchen_temperature", value)
        assert await fire(runtime) == []
    runtime.house.set_state("sensor.kitchen_temperature", "25.1")
    assert [said(each) for each in await fire(runtime)] == ["It is hot."]


async def test_a_state_that_holds_already_has_to_come_again(register):
    when = {"entity_id": "lock.front_door", "states": ["locked"]}
    runtime, _, result = await register({"summary": "tell", "when": when, "say": "Locked."})
    assert result["waiting"]["already_so"] is True
    assert await fire(runtime) == []
    for value in ("unavailable", "locked"):
        runtime.house.set_state("lock.front_door", value)
        assert await fire(runtime) == [], "the door was locked all the time"
    runtime.house.set_state("lock.front_door", "unlocked")
    assert await fire(runtime) == []
    runtime.house.set_state("lock.front_door", "locked")
    assert [said(each) for each in await fire(runtime)] == ["Locked."]


async def test_a_state_has_to_hold_for_its_time(register):
    when = {"entity_id": "switch.kettle", "states": ["on"], "for_s": 60}
    runtime, _, result = await register({"summary": "tell", "when": when, "say": "It boils."})
    assert result["waiting"]["when"] == "Kettle is on for 60 s"
    runtime.house.set_state("switch.kettle", "on")
    runtime.clock.advance(59)
    assert await fire(runtime) == []
    runtime.house.set_state("switch.kettle", "off")
    runtime.clock.advance(60)
    assert await fire(runtime) == []
    runtime.house.set_state("switch.kettle", "on")
    runtime.clock.advance(60)
    assert [said(each) for each in await fire(runtime)] == ["It boils."]


async def test_a_condition_is_checked_when_it_is_due(register):
    only_if = [{"entity_id": "lock.front_door", "not_states": ["locked"]}]
    runtime, _, _ = await register(
        IN_TEN_MINUTES | {"only_if": only_if}, IN_TEN_MINUTES | {"in_s": 700, "only_if": only_if}
    )
    runtime.clock.advance(600)
    [first] = await fire(runtime)
    assert said(first) == "I did nothing, because Front door is locked: turn on the kitchen ceiling."
    assert first.response.actions == ()
    assert runtime.house.calls == []
    runtime.house.set_state("lock.front_door", "unlocked")
    runtime.clock.advance(100)
    [second] = await fire(runtime)
    assert actions(second) == [("call_service", "done", True)]


@pytest.mark.parametrize(
    ("change", "code", "name"),
    [
        (
            {"calls": [{"service": "light.turn_on", "entity_ids": ["light.sauna"]}]},
            "unknown_entity",
            "light.sauna",
        ),
        (
            {"calls": [{"service": "light.turn_on", "entity_ids": ["light.secret"]}]},
            "unknown_entity",
            "light.secret",
        ),
        ({"in_s": None, "when": {"entity_id": "sauna", "states": ["on"]}}, "unknown_entity", "sauna"),
        ({"only_if": [{"entity_id": "light.secret", "states": ["on"]}]}, "unknown_entity", "light.secret"),
        ({"calls": [{"service": "light.explode", "entity_ids": [LIGHT]}]}, "invalid_input", "light.explode"),
        ({"calls": [{"service": "homeassistant.restart"}]}, "not_allowed", "homeassistant.restart"),
        ({"in_s": None, "at": "2025-12-31T23:59"}, "past", None),
        ({"in_s": 400 * 86400}, "too_far", None),
        ({"calls": [TURN_ON | {"data": {"profile": "sk-abcdefghijklmnopqrstuvwxyz123456"}}]}, "secret", None),
    ],
)
async def test_what_cannot_be_done_later_is_refused_by_name_and_not_done(register, change, code, name):
    wanted = {key: value for key, value in (IN_TEN_MINUTES | change).items() if value is not None}
    runtime, session, result = await register(wanted)
    assert result["refused"]["code"] == code
    assert result["refused"].get("name") == name
    assert await runtime.list_waiting(session.id) == []
    assert runtime.house.calls == []


async def test_a_session_that_may_not_act_refuses_at_once(register):
    _, _, result = await register(IN_TEN_MINUTES, policy=SessionPolicy())
    assert result["refused"]["code"] == "not_allowed"
    _, _, result = await register({"summary": "tea", "in_s": 60}, policy=SessionPolicy())
    assert result["waiting"]["summary"] == "tea", "to tell something needs no permission"


async def test_a_question_of_its_own_cannot_wait(opened):
    runtime = await opened(calling("do_later", **IN_TEN_MINUTES), "ok")
    asked = await runtime.ask("turn on the light in ten minutes", policy=FREE, timeout_s=WAIT_S)
    [result] = [json.loads(s.body.content) for s in asked.steps if s.type == "tool_result"]
    assert result["refused"]["code"] == "no_conversation"
    assert await runtime.list_waiting() == []


async def test_the_policy_is_checked_again_when_it_fires(register):
    runtime, session, _ = await register(IN_TEN_MINUTES)
    await runtime.update_session(session.id, policy={"allow_actuation": False})
    runtime.clock.advance(600)
    [refused] = await fire(runtime)
    assert actions(refused) == [("call_service", "denied", None)]
    assert said(refused) == "I was not allowed to do this: turn on the kitchen ceiling."
    assert runtime.house.calls == []


async def test_a_lock_waits_for_an_approval_and_is_never_opened_without_it(register):
    policy = replace(FREE, require_confirmation=("lock",))
    unlock = {"service": "lock.unlock", "entity_ids": ["lock.front_door"]}
    wanted = {"summary": "unlock the front door", "in_s": 60, "calls": [unlock]}
    runtime, _, _ = await register(wanted, wanted | {"in_s": 120}, policy=policy)
    runtime.clock.advance(60)
    [waiting] = await fire(runtime)
    assert waiting.status == "awaiting_approval"
    assert runtime.house.calls == []
    runtime.clock.advance(60)
    [queued] = await fire(runtime)
    assert queued.status == "pending"
    [call] = waiting.waiting_calls
    await runtime.approve(waiting.continuation.id, call.call_id)
    done = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert said(done) == "Done: unlock the front door."
    assert [each.service for each in runtime.house.calls] == ["lock.unlock"]
    next_one = await runtime.await_continuation(queued.continuation.id, timeout_s=WAIT_S)
    assert next_one.status == "completed", "the door is unlocked already, so nobody is asked"


async def test_an_action_that_fails_is_reported(register):
    runtime, _, _ = await register(IN_TEN_MINUTES)
    runtime.house.ignore_next("light.turn_on")
    runtime.clock.advance(600)
    [tried] = await fire(runtime)
    assert actions(tried) == [("call_service", "done", False)]
    assert said(tried) == "I tried, but saw no effect: turn on the kitchen ceiling."


async def test_an_entity_that_is_gone_is_reported(register):
    runtime, _, _ = await register(IN_TEN_MINUTES)
    del runtime.home.index.entities[LIGHT]
    runtime.clock.advance(600)
    [failed] = await fire(runtime)
    assert said(failed) == "This did not work: turn on the kitchen ceiling."


async def test_it_queues_behind_an_open_turn(register):
    runtime, session, _ = await register(IN_TEN_MINUTES)
    hang, started = asyncio.Event(), asyncio.Event()

    async def hold(*_, **__):
        started.set()
        await hang.wait()

    runtime.house.call_service, real = hold, runtime.house.call_service
    runtime.model._lines = (
        calling("call_service", "c", service="light.turn_on", entity_ids=["light.living_room"]),
        "ok",
    )
    runtime.model.requests.clear()
    sent = await runtime.send_message(session.id, "read to me, my dear")
    await asyncio.wait_for(started.wait(), WAIT_S)
    runtime.house.call_service = real
    runtime.clock.advance(600)
    [queued] = await runtime.fire_waiting_turns()
    assert queued.status == "pending"
    hang.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    done = await runtime.await_continuation(queued.id, timeout_s=WAIT_S)
    assert said(done) == "Done: turn on the kitchen ceiling."


async def test_a_full_queue_only_delays_it(register, monkeypatch):
    store = FaultyStore(MemoryStore())
    runtime, session, _ = await register(IN_TEN_MINUTES, store=store)
    runtime.clock.advance(600)
    store.fail("begin", TooManyTurns("the queue is full"))
    assert await fire(runtime) == []
    assert len(await runtime.list_waiting(session.id)) == 1
    runtime.clock.advance(5)
    assert [said(each) for each in await fire(runtime)] == ["Done: turn on the kitchen ceiling."]


async def test_cancelling_and_listing(register):
    reminders = [
        {"summary": name, "in_s": seconds} for name, seconds in (("tea", 60), ("egg", 30), ("cake", 90))
    ]
    runtime, session, _ = await register(*reminders)
    other = await runtime.start_session()
    runtime.model._lines = (
        calling("list_waiting"),
        "ok",
        calling("cancel_waiting"),
        "ok",
        calling("cancel_waiting", id="nothing"),
        "ok",
        calling("cancel_waiting", all=True),
        "ok",
    )
    runtime.model.requests.clear()
    shown = []
    for _ in range(4):
        done = await turn(runtime, session, "what are my timers of today, dear?")
        shown.append(json.loads(next(s.body.content for s in done.steps if s.type == "tool_result")))
    assert [each["summary"] for each in shown[0]["waiting"]] == ["egg", "tea", "cake"]
    assert [each["summary"] for each in shown[1]["cancelled"]] == ["cake"]
    assert shown[2] == {"cancelled": []}
    assert [each["summary"] for each in shown[3]["cancelled"]] == ["tea", "egg"]
    runtime.clock.advance(100)
    assert await fire(runtime) == []
    assert await runtime.list_waiting(other.id) == []


async def test_a_user_cancels_by_id(register):
    runtime, _, result = await register(IN_TEN_MINUTES)
    waiting_id = result["waiting"]["id"]
    with pytest.raises(WaitingTurnNotFound):
        await runtime.cancel_waiting(waiting_id, owner="bob")
    assert (await runtime.cancel_waiting(waiting_id)).summary == "turn on the kitchen ceiling"
    with pytest.raises(WaitingTurnNotFound):
        await runtime.cancel_waiting(waiting_id)
    runtime.clock.advance(600)
    assert await fire(runtime) == []


@pytest.mark.parametrize("how", ["end_session", "delete_session"])
async def test_an_ended_session_does_nothing_later(register, how):
    runtime, session, _ = await register(IN_TEN_MINUTES)
    await getattr(runtime, how)(session.id)
    runtime.clock.advance(600)
    assert await fire(runtime) == []
    assert runtime.house.calls == []


@pytest.mark.parametrize(
    ("late_s", "answer", "calls"),
    [
        (30, "Done: turn on the kitchen ceiling.", 1),
        (3600, "Done: turn on the kitchen ceiling. That was due at 00:10; Sash was not running.", 1),
        (
            25 * 3600,
            "I missed this: turn on the kitchen ceiling. It was due at 2026-01-01 00:10, and now it is too late.",
            0,
        ),
    ],
)
async def test_what_was_due_while_sash_was_down_is_late_or_missed(
    register, live, home_clock, late_s, answer, calls
):
    first, _, _ = await register(IN_TEN_MINUTES)
    await first.close()
    home_clock.advance(600 + late_s)
    second = await live(home=first.house, store=first.store, clock=home_clock, time_zone=UTC)
    assert [said(each) for each in await fire(second)] == [answer]
    assert len(first.house.calls) == calls


async def test_what_was_due_while_the_home_was_away_is_done_when_it_is_back(register):
    runtime, _, _ = await register(IN_TEN_MINUTES)
    runtime.house.disconnect("the cable was out")
    runtime.clock.advance(600 + 300)
    assert await fire(runtime) == []
    runtime.house.connect()
    async with asyncio.timeout(WAIT_S):
        await runtime.home.wait_until_ready()
    [done] = await fire(runtime)
    assert said(done) == "Done: turn on the kitchen ceiling. That was due at 00:10."


async def test_a_state_that_was_reached_while_sash_was_down_is_late(register, live, home_clock):
    when = {"entity_id": "lock.front_door", "states": ["unlocked"]}
    first, _, _ = await register({"summary": "tell", "when": when, "say": "The door is open."})
    await first.close()
    home_clock.advance(600)
    first.house.set_state("lock.front_door", "unlocked")
    home_clock.advance(600)
    second = await live(home=first.house, store=first.store, clock=home_clock, time_zone=UTC)
    answer = "The door is open. That was due at 00:10; Sash was not running."
    assert [said(each) for each in await fire(second)] == [answer]


async def test_a_crash_while_it_fires_does_it_once(register, live, home_clock):
    first, session, _ = await register(IN_TEN_MINUTES, store=FaultyStore(MemoryStore(clock=home_clock)))
    home_clock.advance(600)
    first.store.fail("begin", asyncio.CancelledError(), after=True)
    assert await first.fire_waiting_turns() == [], "the process dies between the commit and the turn"
    await first.abandon_turns()
    home_clock.advance(31)
    second = Runtime(first.store, ScriptedModel("ok"), home=first.house, clock=home_clock, time_zone=UTC)
    async with second, asyncio.timeout(WAIT_S):
        assert await second.list_waiting() == []
        await second.wait_for_turns()
        turns = await second.list_continuations(session_id=session.id)
        assert [said(each) for each in turns][:1] == ["Done: turn on the kitchen ceiling."]
        assert len(turns) == 2
    assert len(first.house.calls) == 1


async def test_two_processes_fire_it_once(register, live, home_clock):
    first, _, _ = await register(IN_TEN_MINUTES)
    second = await live(home=first.house, store=first.store, clock=home_clock, time_zone=UTC)
    home_clock.advance(600)
    fired = await asyncio.gather(first.fire_waiting_turns(), second.fire_waiting_turns())
    assert sum(map(len, fired)) == 1
    assert len(await fire(first)) == 1
    assert len(first.house.calls) == 1


async def test_a_short_lived_process_leaves_the_others_alone(register, live, home_clock):
    first, _, _ = await register(IN_TEN_MINUTES)
    await first.close()
    home_clock.advance(600)
    second = Runtime(first.store, ScriptedModel("ok"), home=first.house, clock=home_clock)
    await second.open(recover=False)
    assert await second.fire_waiting_turns() == []
    assert len(await second.list_waiting()) == 1
    await second.close()


async def test_a_copy_of_a_session_does_not_do_it_twice(register):
    runtime, session, result = await register(IN_TEN_MINUTES)
    await runtime.fork_session(session.id)
    assert len(await runtime.list_waiting()) == 1
    exported = await runtime.export_session(session.id)
    await runtime.import_session(exported, owner="bob")
    assert await runtime.list_waiting(owner="bob") == []
    await runtime.delete_session(session.id)
    assert await runtime.list_waiting() == []
    await runtime.import_session(exported)
    assert [turn.id for turn in await runtime.list_waiting()] == [result["waiting"]["id"]]


async def test_without_a_home_only_texts_can_be_told_later(run, clock):
    runtime = await run(calling("do_later", summary="tea", in_s=60, say="Your tea is ready."), "ok")
    session = await runtime.start_session()
    await turn(runtime, session)
    tools = {
        each["function"]["name"]: each["function"]["parameters"] for each in runtime.model.requests[0].tools
    }
    assert set(tools["do_later"]["properties"]) == {"summary", "at", "in_s", "say"}
    clock.advance(60)
    assert [said(each) for each in await fire(runtime)] == ["Your tea is ready."]


async def test_a_condition_that_never_comes_is_given_up_after_a_year(register):
    when = {"entity_id": "lock.front_door", "states": ["jammed"]}
    runtime, _, _ = await register({"summary": "tell me when the door jams", "when": when})
    runtime.clock.advance(timedelta(days=367).total_seconds())
    [given_up] = await fire(runtime)
    assert said(given_up) == "I waited for a year, and I wait no longer: tell me when the door jams."
    assert given_up.steps[0].body == WaitingTurnFired(
        given_up.continuation.request.fired.turn.id, "tell me when the door jams", "missed"
    )
