"""The agent in a real Home Assistant: sentences, tools, actions, undo, and a restart in the middle."""

import asyncio
import json

import pytest

from sash.engine.runtime import Runtime
from sash.errors import EntityNotFound
from sash.home.remote import RemoteHome, Timing
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling
from sash.values.sessions import SessionPolicy
from tests.ha.instance import HIDDEN
from tests.runtime.talk import answer, system_texts, turn

WITHIN_S = 30
FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))


@pytest.fixture
async def live(house):
    """Make runtimes that are connected to the house; `live(*lines)` returns one with its model."""
    made = []

    async def make(*lines, model=None):
        timing = Timing(retry_s=0.05, max_retry_s=0.2, starting_s=0.05)
        model = model or ScriptedModel(*(lines or ("The model was asked.",)))
        home = RemoteHome(house.url, house.token, timing=timing)
        runtime = Runtime(MemoryStore(), model, home=home)
        runtime.house = home
        await runtime.open()
        made.append(runtime)
        async with asyncio.timeout(WITHIN_S):
            await runtime.home_ready()
        return runtime

    yield make
    for runtime in made:
        await runtime.close()


async def state(runtime, entity_id):
    [entity] = (await runtime.call_tool("get_states", {"entity_ids": [entity_id]}))["entities"]
    return entity["state"]


def actions(result):
    return [(a.name, a.outcome, a.verified) for a in result.response.actions]


async def switch(runtime, entity_id, to):
    """Bring an entity into a state before a test looks at it."""
    domain = entity_id.partition(".")[0]
    await runtime.house.call_service(f"{domain}.turn_{to}", {}, [entity_id])
    async with asyncio.timeout(WITHIN_S):
        while await state(runtime, entity_id) != to:
            await asyncio.sleep(0.02)


async def test_the_kitchen_lights_are_turned_on_without_a_model_and_off_again(live):
    runtime = await live()
    await switch(runtime, "light.kitchen_lights", "off")
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn on the kitchen lights")
    assert actions(result) == [("call_service", "done", True)]
    assert result.response.final_message
    assert await state(runtime, "light.kitchen_lights") == "on"
    result = await turn(runtime, session, "undo that")
    assert actions(result) == [("undo_last_action", "done", True)]
    assert await state(runtime, "light.kitchen_lights") == "off"
    assert runtime.model.requests == []


async def test_a_question_is_answered_and_switches_nothing(live):
    runtime = await live()
    await switch(runtime, "light.kitchen_lights", "on")
    session = await runtime.start_session(policy=FREE)
    before = (await runtime.house.get_state("light.kitchen_lights")).changed_at
    assert (await answer(runtime, session, "are the kitchen lights on?")).startswith("Yes")
    assert (await runtime.house.get_state("light.kitchen_lights")).changed_at == before
    assert runtime.model.requests == []


async def test_an_action_of_the_model_is_read_back_and_undone(live):
    light = {"entity_ids": ["light.bed_light"]}
    runtime = await live(
        calling("call_service", service="light.turn_on", data={"brightness_pct": 30}, **light),
        "It is dimmed.",
        calling("call_service", service="light.turn_on", data={"brightness_pct": 90}, **light),
        "It is bright.",
        calling("undo_last_action"),
        "It is dimmed again.",
    )
    session = await runtime.start_session(policy=FREE)
    for message in ("dim it as I like it", "brighter, like yesterday", "no, as it was before that"):
        result = await turn(runtime, session, message)
        assert [(outcome, verified) for _, outcome, verified in actions(result)] == [("done", True)]
    brightness = (await runtime.house.get_state("light.bed_light")).attributes["brightness"]
    assert abs(brightness - 0.3 * 255) < 4


async def test_what_somebody_else_has_changed_is_not_undone(live):
    runtime = await live("It was changed.")
    await switch(runtime, "light.kitchen_lights", "off")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen lights")
    await switch(runtime, "light.kitchen_lights", "off")
    result = await turn(runtime, session, "undo that")
    assert actions(result) == [("undo_last_action", "failed", None)]
    assert "has changed since" in runtime.model.requests[-1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("policy", "arguments", "says"),
    [
        (SessionPolicy(), {"entity_ids": ["light.kitchen_lights"]}, "not allowed to control devices"),
        (FREE, {"service": "homeassistant.restart"}, "denylist"),
        (FREE, {"entity_ids": [HIDDEN]}, "there is no entity"),
        (FREE, {"entity_ids": ["light.kitchen_lights"], "data": {"brightness_pct": 300}}, "at most 100"),
        (FREE, {"entity_ids": ["light.kitchen_lights"], "data": {"colour": "red"}}, "has no argument colour"),
        (FREE, {"service": "light.dance", "entity_ids": ["light.kitchen_lights"]}, "there is no service"),
        (FREE, {"entity_ids": ["switch.ac"]}, "does not support switch.ac"),
    ],
)
async def test_what_is_not_allowed_or_not_right_is_not_done(live, policy, arguments, says):
    runtime = await live(calling("call_service", **{"service": "light.turn_on", **arguments}), "No.")
    await switch(runtime, "light.kitchen_lights", "off")
    session = await runtime.start_session(policy=policy)
    result = await turn(runtime, session, "go on then, as we said")
    [(_, outcome, verified)] = actions(result)
    assert outcome in ("denied", "failed") and verified is None
    assert says in runtime.model.requests[-1].messages[-1]["content"]
    assert await state(runtime, "light.kitchen_lights") == "off"


@pytest.mark.parametrize(
    "entities",
    [
        {HIDDEN: "on"},
        {HIDDEN.upper(): "on"},
        {"lock.front_door": "unlocked"},
        {"LOCK.Front_Door": "unlocked"},
    ],
)
async def test_a_scene_is_no_way_to_what_is_hidden_or_locked(live, entities):
    runtime = await live(calling("call_service", service="scene.apply", data={"entities": entities}), "No.")
    before = {key: (await runtime.house.get_state(key.lower())).changed_at for key in entities}
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "go on then, as we said")
    assert before == {key: (await runtime.house.get_state(key.lower())).changed_at for key in entities}


async def test_a_position_that_takes_long_is_not_said_to_have_failed(live):
    window = ["cover.hall_window"]
    runtime = await live(
        calling("call_service", service="cover.set_cover_position", entity_ids=window, data={"position": 90}),
        "It is on its way.",
    )
    await runtime.house.call_service("cover.set_cover_position", {"position": 10}, window)
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), require_confirmation=())
    session = await runtime.start_session(policy=policy)
    async with asyncio.timeout(WITHIN_S):
        while (await runtime.house.get_state(window[0])).attributes["current_position"] != 10:
            await asyncio.sleep(0.1)
    result = await turn(runtime, session, "a bit more air for my cat")
    assert actions(result) == [("call_service", "done", None)]


async def test_a_cover_waits_for_a_yes(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    await runtime.house.call_service("cover.open_cover", {}, ["cover.hall_window"])
    waiting = await turn(runtime, session, "close the hall window")
    assert waiting.status == "awaiting_approval"
    assert (await runtime.house.get_state("cover.hall_window")).state != "closed"
    await runtime.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WITHIN_S)
    assert actions(result) == [("call_service", "done", True)]
    assert (await runtime.house.get_state("cover.hall_window")).state in ("closing", "closed")


async def test_the_tools_know_the_house(live):
    runtime = await live()
    found = await runtime.call_tool("search_index", {"query": "cooking lihgts"})
    assert found["entities"][0]["entity_id"] == "light.kitchen_lights"
    history = await runtime.call_tool("get_history", {"entity_ids": ["light.kitchen_lights"], "hours": 1})
    assert history["entities"][0]["state"] in ("on", "off")
    logbook = await runtime.call_tool("get_logbook", {"hours": 1, "limit": 100})
    assert logbook["total"] >= len(logbook["entries"])
    everything = json.dumps([found, history, logbook, await runtime.call_tool("search_index")])
    assert HIDDEN not in everything
    with pytest.raises(EntityNotFound):
        await runtime.call_tool("diagnose_entity", {"entity_id": HIDDEN})


async def test_an_entity_is_diagnosed_with_what_depends_on_it(live):
    runtime = await live()
    found = await runtime.call_tool("diagnose_entity", {"entity_id": "light.bed_light"})
    assert found["status"] in ("healthy", "warning")
    assert found["current_state"] in ("on", "off")
    assert found["area"] == "Bedroom"
    automations = [a["name"] for a in found["impact"]["affected_automations"]]
    assert automations == ["Bed light follows AC"]


async def test_errors_of_the_log_are_analysed(live):
    runtime = await live()
    await runtime.house.call_service(
        "system_log.write",
        {"message": "light.bed_light does not answer", "level": "error", "logger": "custom.lamp"},
    )
    async with asyncio.timeout(WITHIN_S):
        while True:
            result = await runtime.call_tool("analyze_errors", {"timeframe": "1h", "severity": "error"})
            ours = [i for i in result["incidents"] if i["source"] == "custom.lamp"]
            if ours:
                break
            await asyncio.sleep(0.1)
    assert ours[0]["message"] == "light.bed_light does not answer"
    assert ours[0]["entities"] == ["light.bed_light"]
    assert result["total_incidents"] >= 1


async def test_what_changed_between_two_turns_is_told(live):
    runtime = await live("one", "two")
    await switch(runtime, "light.kitchen_lights", "off")
    session = await runtime.start_session()
    await turn(runtime, session, "a story about ghosts")
    await switch(runtime, "light.kitchen_lights", "on")
    await turn(runtime, session, "another story about ghosts")
    first, second = runtime.model.requests
    assert any("light.kitchen_lights off" in text for text in system_texts(first))
    assert HIDDEN not in str(first.messages)
    assert "changed: light.kitchen_lights on" in second.messages[-1]["content"]


class Leaving(ScriptedModel):
    """A model while whose first answer the house is stopped."""

    def __init__(self, house, *lines):
        super().__init__(*lines)
        self._house = house

    async def stream(self, request):
        if not self.requests:
            await self._house.stop()
        async for delta in super().stream(request):
            yield delta


async def test_home_assistant_restarts_in_the_middle_of_a_turn(live, house):
    look = calling("get_history", entity_ids=["light.kitchen_lights"])
    runtime = await live(model=Leaving(house, look, "The house cannot be reached."))
    session = await runtime.start_session(policy=FREE)
    sent = await runtime.send_message(session.id, "tell me a story about the lamps")
    result = await runtime.await_continuation(sent.id, timeout_s=WITHIN_S)
    assert (result.status, result.response.final_message) == ("completed", "The house cannot be reached.")
    shown = runtime.model.requests[-1].messages[-1]["content"]
    assert shown.startswith("failed: ")
    assert "cannot be reached" in shown
    await house.start()
    async with asyncio.timeout(2 * WITHIN_S):
        await runtime.home_ready()
    result = await turn(runtime, session, "turn on the kitchen lights")
    assert actions(result) == [("call_service", "done", True)]
