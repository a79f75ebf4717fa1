"""Actions on the home that the policy denies, limits, or lets wait for an approval."""

import asyncio
import json
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.engine.runtime import Runtime
from sash.ports.home import Entity
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from sash.values.sessions import SessionPolicy
from tests.home.small_home import LAYOUT, NOW, house
from tests.runtime.home_actions import FREE, ON, actions
from tests.runtime.talk import WAIT_S, answer, turn


async def test_an_action_outside_the_policy_is_a_result_for_the_model(live, caplog):
    runtime = await live(calling("call_service", **ON), "It is not allowed.")
    session = await runtime.start_session()
    with caplog.at_level(logging.WARNING, "sash"):
        result = await turn(runtime, session, "please make it bright for my cat")
    assert actions(result) == [("call_service", "denied", None)]
    assert runtime.house.calls == []
    shown = runtime.model.requests[-1].messages[-1]["content"]
    assert shown == (
        "not done: I am not allowed to control devices. "
        "Turn on `allow_actuation` in the policy of this session to let me."
    )
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
            "I am not allowed to use switch.turn_on. Add it to `allowlisted_services`",
            "denied",
        ),
        (
            {"allowlisted_services": ("light",)},
            "switch.turn_on",
            "switch.kettle",
            "Add it to `allowlisted_services` in the policy of this session to let me.",
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

    async def hanging(*order, **options):
        await call(*order, **options)
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
        {
            "entity_id": "light.kitchen_ceiling",
            "name": "Kitchen ceiling",
            "aliases": ["Big lamp"],
            "now": "off",
        }
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
