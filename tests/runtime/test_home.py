"""Turns with a house: sentences without a model, actions by the policy, what changed, and a house that goes away."""

import asyncio
import itertools
import json
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.engine.runtime import Runtime
from sash.errors import HomeUnavailable, ServiceFailed
from sash.ports.home import Entity
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from sash.values.sessions import Budgets, SessionPolicy, WindowLimits
from tests.home.small_home import LAYOUT, NOW, house
from tests.large_home import make_large_home
from tests.runtime.talk import WAIT_S, answer, said, system_texts, transcript, turn

FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
ON = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}


@pytest.fixture
async def live(monkeypatch):
    """Make runtimes with a house; `live(*lines)` returns one with its model and its house."""
    monkeypatch.setattr("sash.home.actions.READ_BACK_S", 0.01)
    made = []

    async def make(*lines, home=None, store=None, **options):
        home = home or house()
        model = ScriptedModel(*(lines or ("The model was asked.",)))
        clock = FakeClock()
        runtime = Runtime(store or MemoryStore(), model, home=home, **{"clock": clock, **options})
        runtime.house, runtime.clock = home, clock
        await runtime.open()
        made.append(runtime)
        async with asyncio.timeout(WAIT_S):
            await runtime.home.wait_until_ready()
        return runtime

    yield make
    for runtime in made:
        await runtime.close()


def actions(result):
    return [(a.name, a.outcome, a.verified) for a in result.response.actions]


async def test_a_command_is_done_without_a_model(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "done", True)]
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "on"
    assert runtime.model.requests == []
    stored = await runtime.store.messages("local", session.id)
    assert all("local_intent" in m.message.tags for m in stored)
    assert [m.message.role for m in stored] == ["user", "assistant", "tool", "assistant"]
    assert (await runtime.statistics())["local_count"] == 1


@pytest.mark.parametrize(
    "question",
    [
        "is the kitchen ceiling on?",
        "Is the kitchen ceiling on",
        "are the lights in the kitchen on?",
        "which lights are on?",
        "is the front door locked?",
        "what is the kitchen temperature?",
        "why is the kitchen ceiling on?",
        "should I turn on the kitchen ceiling?",
        "did you turn on the kitchen ceiling?",
        "turn on the kitchen ceiling?",
    ],
)
async def test_a_question_never_switches_anything(live, question):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, question)
    assert result.status == "completed"
    assert runtime.house.calls == []
    assert result.response.actions == ()


async def test_a_question_is_answered_without_a_model(live):
    runtime = await live()
    session = await runtime.start_session()
    assert (await answer(runtime, session, "is the front door locked?")).startswith("Yes")
    assert runtime.model.requests == []


async def test_the_model_sees_what_was_understood_without_it(live):
    runtime = await live("As you said.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    await turn(runtime, session, "tell me a story about lamps and ghosts")
    [request] = runtime.model.requests
    assert said(request)[0] == "turn on the kitchen ceiling"
    assert [m["role"] for m in request.messages if m["role"] != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


async def test_an_action_outside_the_policy_is_a_result_for_the_model(live, caplog):
    runtime = await live(calling("call_service", **ON), "It is not allowed.")
    session = await runtime.start_session()
    with caplog.at_level(logging.WARNING, "sash"):
        result = await turn(runtime, session, "please make it bright for my cat")
    assert actions(result) == [("call_service", "denied", None)]
    assert runtime.house.calls == []
    shown = runtime.model.requests[-1].messages[-1]["content"]
    assert shown == "not done: actions are off in this session: turn on allow_actuation in its policy"
    assert "call_service was not done" in caplog.text


async def test_a_command_outside_the_policy_is_explained_by_the_model(live):
    runtime = await live("You have not allowed me to.")
    session = await runtime.start_session()
    assert await answer(runtime, session, "turn on the kitchen ceiling") == "You have not allowed me to."
    assert runtime.house.calls == []


@pytest.mark.parametrize(
    ("policy", "service", "entity_id", "reason", "outcome"),
    [
        ({}, "homeassistant.restart", None, "is on the denylist", "denied"),
        (
            {"denylisted_services": ("light",)},
            "light.turn_on",
            "light.kitchen_ceiling",
            "is on the denylist",
            "denied",
        ),
        (
            {"denylisted_services": ("lock",)},
            "homeassistant.turn_off",
            "lock.front_door",
            "lock.turn_off is on the denylist",
            "denied",
        ),
        (
            {"allowlisted_services": ("light", "homeassistant.*")},
            "homeassistant.turn_on",
            "switch.kettle",
            "switch.turn_on is not on the session's allowlist (allowlisted_services)",
            "denied",
        ),
        (
            {"allowlisted_services": ("light",)},
            "switch.turn_on",
            "switch.kettle",
            "is not on the session's allowlist (allowlisted_services)",
            "denied",
        ),
        ({}, "light.turn_on", "light.secret", "there is no entity 'light.secret'", "failed"),
        ({}, "light.turn_on", "switch.kettle", "does not support switch.kettle", "failed"),
        ({}, "light.explode", "light.kitchen_ceiling", "there is no service 'light.explode'", "failed"),
    ],
)
async def test_the_denylist_wins_and_what_is_not_there_is_refused(
    live, policy, service, entity_id, reason, outcome
):
    arguments = {"service": service} | ({"entity_ids": [entity_id]} if entity_id else {})
    runtime = await live(calling("call_service", **arguments), "No.")
    options = {"allow_actuation": True, "allowlisted_services": ("*",), **policy}
    session = await runtime.start_session(policy=SessionPolicy(**options))
    result = await turn(runtime, session, "go on then, as we said")
    assert actions(result) == [("call_service", outcome, None)]
    assert reason in runtime.model.requests[-1].messages[-1]["content"]
    assert runtime.house.calls == []


async def test_a_lock_waits_for_a_yes(live):
    runtime = await live("Fine.")
    session = await runtime.start_session(policy=FREE)
    waiting = await turn(runtime, session, "unlock the front door")
    assert waiting.status == "awaiting_approval"
    assert runtime.house.calls == []
    asked = waiting.steps[-1].detail
    assert asked["reason"] == "lock.unlock needs an approval"
    assert asked["would"]["entities"][0]["name"] == "Front door"
    await runtime.approve(waiting.continuation.id, asked["call_id"])
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert actions(result) == [("call_service", "done", True)]
    assert runtime.home.index.get_state("lock.front_door") == "unlocked"
    assert runtime.model.requests == []


async def test_what_was_to_come_after_a_yes_waits_for_it(live):
    unlock = calling("call_service", "a", service="lock.unlock", entity_ids=["lock.front_door"])
    light = calling("call_service", "b", service="light.turn_on", entity_ids=["light.kitchen_ceiling"])
    look = calling("get_states", "c", entity_ids=["lock.front_door"])
    runtime = await live(both(unlock, light, look), "Welcome.")
    session = await runtime.start_session(policy=FREE)
    waiting = await turn(runtime, session, "let my cat in, and make it bright for her")
    assert [s.detail.get("call_id") for s in waiting.steps if s.detail.get("event")] == ["a"]
    assert runtime.house.calls == []
    await runtime.approve(waiting.continuation.id, "a")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert [call.service for call in runtime.house.calls] == ["lock.unlock", "light.turn_on"]
    assert [outcome for _, outcome, _ in actions(result)] == ["done", "done"]


async def test_an_approved_call_that_was_done_when_the_process_died_is_not_called_refused(live):
    clock, home, under_way = FakeClock(NOW + timedelta(hours=1)), house(), asyncio.Event()
    store, call = MemoryStore(clock=clock), home.call_service

    async def hanging(*order):
        await call(*order)
        under_way.set()
        await asyncio.Event().wait()

    unlock = calling("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    first = await live(unlock, "Done.", home=home, store=store, clock=clock)
    session = await first.start_session(policy=FREE)
    waiting = await turn(first, session, "let my cat in")
    home.call_service = hanging
    sent = await first.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(31)
    async with (
        Runtime(store, ScriptedModel("Done."), home=home, clock=clock) as second,
        asyncio.timeout(WAIT_S),
    ):
        await second.resume(sent.id)
        assert actions(await second.await_continuation(sent.id)) == [("call_service", "done", True)]


@pytest.mark.parametrize("what", ["moved", "toggled"])
async def test_a_yes_is_for_what_was_asked_and_for_nothing_else(live, what):
    arguments = (
        {"service": "cover.close_cover", "areas": ["Living room"]}
        if what == "moved"
        else {"service": "cover.toggle", "entity_ids": ["cover.living_room"]}
    )
    runtime = await live(calling("call_service", **arguments), "It has changed.")
    session = await runtime.start_session(policy=FREE)
    waiting = await turn(runtime, session, "make it dark for my cat")
    assert waiting.status == "awaiting_approval"
    if what == "moved":
        door = Entity("cover.garage", "Garage door", "living_room")
        runtime.house.change_layout(replace(LAYOUT, entities=(*LAYOUT.entities, door)))
        async with asyncio.timeout(WAIT_S):
            while "cover.garage" not in runtime.home.index.entities:
                await asyncio.sleep(0.01)
    else:
        runtime.house.set_state("cover.living_room", "closed", current_position=0)
    await runtime.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert actions(result) == [("call_service", "denied", None)]
    assert runtime.house.calls == []
    assert "changed since the approval" in runtime.model.requests[-1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        (
            {"denylisted_services": ("lock.unlock",)},
            {"service": "scene.turn_on", "entity_ids": ["scene.movie"]},
        ),
        (
            {"denylisted_services": ("climate.turn_off",)},
            {
                "service": "climate.set_hvac_mode",
                "entity_ids": ["climate.living_room"],
                "data": {"hvac_mode": "off"},
            },
        ),
        (
            {"denylisted_services": ("light.turn_off",)},
            {"service": "light.toggle", "entity_ids": ["light.living_room"]},
        ),
    ],
)
async def test_what_is_denied_by_its_service_is_not_done_by_another(live, policy, arguments):
    runtime = await live(calling("call_service", **arguments), "No.")
    runtime.house.set_state("scene.movie", "unknown", entity_id=["lock.front_door"])
    options = {"allow_actuation": True, "allowlisted_services": ("*",), **policy}
    session = await runtime.start_session(policy=SessionPolicy(**options))
    assert actions(await turn(runtime, session, "for my cat")) == [("call_service", "denied", None)]
    assert runtime.house.calls == []


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


async def test_a_scene_is_no_way_around_a_yes(live):
    runtime = await live(
        calling("call_service", service="scene.apply", data={"entities": {"lock.front_door": "unlocked"}}),
        "Done.",
    )
    session = await runtime.start_session(policy=FREE)
    assert (await turn(runtime, session, "make it nice for my cat")).status in (
        "awaiting_approval",
        "completed",
    )
    assert runtime.home.index.get_state("lock.front_door") == "locked"


async def test_a_dry_run_says_what_it_would_do(live):
    runtime = await live(calling("call_service", **ON), "That is what I would do.")
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), dry_run=True)
    session = await runtime.start_session(policy=policy)
    result = await turn(runtime, session, "what about some light for my cat, then")
    assert actions(result) == [("call_service", "dry_run", None)]
    shown = json.loads(runtime.model.requests[-1].messages[-1]["content"])
    assert shown["dry_run"] is True
    assert shown["would"]["entities"] == [
        {"entity_id": "light.kitchen_ceiling", "name": "Kitchen ceiling", "now": "off"}
    ]
    assert runtime.house.calls == []


async def test_what_is_within_a_scene_is_allowed_with_it_but_not_if_it_is_denied(live):
    scene = calling("call_service", service="scene.turn_on", entity_ids=["scene.movie"])
    for denied, outcome in ((), "done"), (("light",), "denied"):
        runtime = await live(scene, "Well.")
        runtime.house.set_state("scene.movie", "unknown", entity_id=["light.living_room"])
        policy = SessionPolicy(
            allow_actuation=True, allowlisted_services=("scene",), denylisted_services=denied
        )
        session = await runtime.start_session(policy=policy)
        result = await turn(runtime, session, "make it nice for my cat")
        assert [a.outcome for a in result.response.actions] == [outcome]


async def test_a_dry_run_is_no_way_around_the_denylist(live):
    runtime = await live(calling("call_service", service="homeassistant.restart"), "No.")
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), dry_run=True)
    session = await runtime.start_session(policy=policy)
    assert actions(await turn(runtime, session, "go")) == [("call_service", "denied", None)]


async def test_actions_are_paced(live):
    on, off = (
        calling("call_service", "c", service=f"light.turn_{what}", entity_ids=["light.kitchen_ceiling"])
        for what in ("on", "off")
    )
    runtime = await live(both(on, off, on), "Enough.", "Later.", on, "Now.")
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), max_actions_per_minute=2)
    session = await runtime.start_session(policy=policy)
    result = await turn(runtime, session, "party like my cat")
    assert sorted(outcome for _, outcome, _ in actions(result)) == ["denied", "done", "done"]
    assert any("max_actions_per_minute" in m["content"] for m in runtime.model.requests[1].messages)
    await turn(runtime, session, "is that so, dear cat?")
    runtime.clock.advance(61)
    result = await turn(runtime, session, "and again, dear cat")
    assert actions(result) == [("call_service", "done", True)]


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

    async def hanging(*order):
        made.append(order)
        if len(made) == 1:
            if happened:
                await call(*order)
            under_way.set()
            await asyncio.Event().wait()
        await call(*order)

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
    assert result.response.final_message.endswith(
        "Kitchen ceiling: aus" if sentence.startswith("mach") else "Kitchen ceiling: off"
    )
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
    """What opened a cover with a yes is not closed again without one."""
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


async def test_the_house_is_told_once_and_then_what_changed(live):
    runtime = await live("one", "two", "three", "four")
    session = await runtime.start_session()
    for message in ("a story", "another story", "one more story", "the last story"):
        if message == "one more story":
            runtime.house.set_state("switch.kettle", "on")
        await turn(runtime, session, message)
    first, second, third, fourth = runtime.model.requests
    [told] = [text for text in system_texts(first) if text.startswith("The house")]
    assert "light.kitchen_ceiling off" in told
    for request in (second, third, fourth):
        assert told in system_texts(request)
        assert request.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages
    asked = third.messages[-1]["content"]
    assert asked.startswith("<context>\nIn the house, since you were told last:\nchanged: switch.kettle on\n")
    assert fourth.messages[: len(third.messages)] == third.messages
    assert "<context>" not in fourth.messages[-1]["content"]


async def test_what_changed_is_not_part_of_the_transcript(live):
    runtime = await live("one", "two")
    session = await runtime.start_session()
    await turn(runtime, session, "a story")
    runtime.house.set_state("switch.kettle", "on")
    await turn(runtime, session, "another story")
    assert [text for role, text in await transcript(runtime, session) if role == "user"] == [
        "a story",
        "another story",
    ]


async def test_after_a_yes_the_prompt_goes_on_as_it_was(live):
    unlock = calling("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    runtime = await live("one", unlock, "It is open.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "a story about ghosts")
    runtime.house.set_state("switch.kettle", "on")
    waiting = await turn(runtime, session, "let my cat in, she is a ghost")
    runtime.house.set_state("light.living_room", "on")
    await runtime.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    _, before, after = runtime.model.requests
    assert after.messages[: len(before.messages)] == before.messages
    assert "changed: switch.kettle on" in before.messages[-1]["content"]


async def test_the_house_is_told_anew_when_the_window_is_cut(live):
    runtime = await live("word " * 60)
    session = await runtime.start_session(window=WindowLimits(max_tokens=400))
    for number in range(8):
        runtime.house.set_state("switch.kettle", "on" if number % 2 else "off")
        await turn(runtime, session, f"story {number} about ghosts")
    cuts = [
        later
        for earlier, later in itertools.pairwise(runtime.model.requests)
        if later.messages[: len(earlier.messages)] != earlier.messages
    ]
    assert cuts
    for request in cuts:
        [told] = [text for text in system_texts(request) if text.startswith("The house")]
        number = int(said(request)[-1].split()[1])
        assert f"switch.kettle {'on' if number % 2 else 'off'}" in told
        assert not any("<context>" in m["content"] for m in request.messages if m["role"] == "user")


async def test_the_house_is_told_anew_when_much_has_changed(live, monkeypatch):
    monkeypatch.setattr("sash.engine.turn.turn_context.MAX_CHANGED_TOKENS", 20)
    runtime = await live("fine")
    session = await runtime.start_session()
    for number in range(6):
        runtime.house.set_state("switch.kettle", "off" if number % 2 else "on")
        await turn(runtime, session, f"story {number} about ghosts")
    told = [[t for t in system_texts(r) if t.startswith("The house")] for r in runtime.model.requests]
    assert len({text for [text] in told}) > 1
    last = runtime.model.requests[-1].messages
    assert sum("<context>" in m["content"] for m in last if m["role"] == "user") < 4


async def test_the_context_report_shows_the_house(live):
    runtime = await live("one")
    session = await runtime.start_session()
    before = await runtime.context_report(session.id)
    assert "house" in [part["name"] for part in before["parts"]], "also before a model was asked"
    await turn(runtime, session, "a story")
    report = await runtime.context_report(session.id)
    parts = {part["name"]: part for part in report["parts"]}
    assert parts["house"]["stable"] is True
    assert list(parts).index("house") < list(parts).index("window")
    assert report["prefix_share"] > 0.9


async def test_a_house_that_goes_away_mid_turn_leaves_the_turn_with_an_answer(live):
    def lose(request):
        runtime.house.disconnect("the router is down")
        return calling("get_states", entity_ids=["light.kitchen_ceiling"])

    runtime = await live(lose, "The house cannot be reached.", "It is back.")
    session = await runtime.start_session()
    result = await turn(runtime, session, "tell me all about the lamps and ghosts")
    assert (result.status, result.response.final_message) == ("completed", "The house cannot be reached.")
    shown = runtime.model.requests[1].messages[-1]["content"]
    assert shown.startswith("failed: ")
    assert "the router is down" in shown
    runtime.house.connect()
    async with asyncio.timeout(WAIT_S):
        await runtime.home.wait_until_ready()
    assert await answer(runtime, session, "is the front door locked?") == "Yes"


async def test_a_turn_while_the_house_is_away_is_told_so(live):
    runtime = await live("I cannot see the house.")
    runtime.house.disconnect("the router is down")
    session = await runtime.start_session()
    await turn(runtime, session, "tell me about the lamps")
    assert any("the router is down" in text for text in system_texts(runtime.model.requests[0]))


async def test_a_house_that_is_never_there_does_not_keep_a_runtime_from_starting():
    home = house()
    home.connect = lambda: None
    home.disconnect("no such host")
    async with asyncio.timeout(WAIT_S), Runtime(MemoryStore(), ScriptedModel("Hello."), home=home) as runtime:
        session = await runtime.start_session()
        assert await answer(runtime, session, "hello there my friend of old") == "Hello."


@pytest.mark.parametrize(
    "sentence", ["undo" + " " * 100_000 + "x", "can you undo that?", "undo that, and then dance"]
)
async def test_only_a_plain_undo_is_one(live, sentence):
    runtime = await live("Well.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    result = await turn(runtime, session, sentence)
    assert bool(result.response.actions) == (sentence == "can you undo that?")


async def test_who_waits_for_a_house_too_long_is_told_why():
    home = house()
    home.connect = lambda: None
    home.disconnect("no such host")
    async with Runtime(MemoryStore(), ScriptedModel("Hello."), home=home) as runtime:
        with pytest.raises(HomeUnavailable, match="cannot be reached"):
            await runtime.home_ready(timeout_s=0.01)


async def test_where_the_user_is_decides_which_lights_are_meant(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE, area="living_room")
    result = await turn(runtime, session, "turn on the lights")
    assert actions(result) == [("call_service", "done", True)]
    assert runtime.home.index.get_state("light.living_room") == "on"
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "off"


async def test_past_the_days_money_the_house_is_still_understood(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE, budgets=Budgets(max_cost_per_day_usd=0.0))
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "done", True)]


async def test_all_lights_of_a_large_house_are_turned_off_at_once():
    home = make_large_home(3000)
    async with Runtime(MemoryStore(), ScriptedModel("The model was asked."), home=home) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        session = await runtime.start_session(policy=FREE)
        result = await turn(runtime, session, "turn off all the lights")
        assert {(outcome, verified) for _, outcome, verified in actions(result)} == {("done", True)}
        assert result.response.stopped_by is None
        lights = [key for key in runtime.home.index.entities if key.startswith("light.")]
        assert {runtime.home.index.get_state(key) for key in lights} == {"off"}
