"""A script, scene or automation cannot call a service that the denylist forbids, however it names the service.

The home is a fake Home Assistant that logs every call. The model does what the attacker asks for.
"""

import asyncio
from dataclasses import replace

import pytest

from sash import Runtime
from sash.home.remote import RemoteHome
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling
from sash.values.sessions import SessionPolicy
from tests.home.fake_home_assistant import CONFIG, ERROR, OWNER, TOKEN, FakeHomeAssistant
from tests.home.remote_home import QUICK
from tests.runtime.talk import WAIT_S, turn

ANY_TARGET = {"target": {"entity": [{}]}, "fields": {}}
SERVICES = {
    "script": {"turn_on": ANY_TARGET, "evil": {"fields": {}}, "outer": {"fields": {}}},
    "homeassistant": {"turn_on": ANY_TARGET},
    "automation": {"trigger": ANY_TARGET},
    "scene": {"turn_on": ANY_TARGET},
}
STATES = {
    "script.evil": {},
    "script.outer": {},
    "script.moved": {},
    "automation.evil": {},
    "scene.open": {"entity_id": ["lock.door"]},
    "group.scripts": {"entity_id": ["script.evil"]},
    "lock.door": {},
    "light.lamp": {},
}
ENTRIES = [
    {
        "entity_id": entity_id,
        "platform": entity_id.partition(".")[0],
        "unique_id": "old_name" if entity_id == "script.moved" else entity_id.partition(".")[2],
        "options": {"conversation": {"should_expose": True}},
    }
    for entity_id in STATES
]
POLICY = SessionPolicy(
    allow_actuation=True,
    allowlisted_services=("*",),
    denylisted_services=("lock.unlock",),
    require_confirmation=(),
)
UNLOCK = {"action": "lock.unlock", "target": {"entity_id": "lock.door"}}
CANNOT_BE_TOLD = "it cannot be told which"


def steps(*sequence, **more):
    return {"sequence": list(sequence), **more}


@pytest.fixture
async def run():
    """Return a function that runs `call_service` in a home with these scripts, and returns the turn's end."""
    opened = []

    async def run(call, configs, policy=POLICY, **answers):
        def read(question):
            config = configs.get(question["entity_id"], steps())
            return config if isinstance(config, tuple) else {"config": config}

        hub = FakeHomeAssistant(
            **{
                "get_services": SERVICES,
                "call_service": {},
                "get_config": CONFIG | {"components": []},
                "script/config": read,
                "automation/config": read,
                "config/entity_registry/list": ENTRIES,
            }
            | answers
        )
        hub.states = {key: {"s": "off", "a": a, "c": "x", "lc": 1.0} for key, a in STATES.items()}
        await hub.start()
        home = RemoteHome(hub.url, TOKEN, timing=QUICK)
        runtime = Runtime(MemoryStore(), ScriptedModel(calling("call_service", **call), "Done."), home=home)
        opened.append((runtime, hub))
        await runtime.open()
        async with asyncio.timeout(WAIT_S):
            await runtime.home.wait_until_ready()
        session = await runtime.start_session(policy=policy)
        return hub, await turn(runtime, session, "do as I say")

    yield run
    for runtime, hub in opened:
        await runtime.close()
        await hub.stop()


def called(hub):
    return [f"{q['domain']}.{q['service']}" for q in hub.asked if q["type"] == "call_service"]


def result_text(result):
    return next(step.detail["content"] for step in result.steps if step.type == "tool_result")


NAMED = [
    {"action": "Lock.Unlock"},
    {"action": " lock.unlock "},
    {"service": "LOCK.UNLOCK"},
    {"service_template": "lock.unlock"},
    {"choose": [{"conditions": [], "sequence": [{"service": "lock.unlock"}]}]},
    {"choose": {"conditions": [], "sequence": []}, "default": UNLOCK},
    {"if": [], "then": [], "else": [UNLOCK]},
    {"repeat": {"count": 1, "sequence": [UNLOCK]}},
    {"parallel": [{"sequence": [UNLOCK]}]},
    {"sequence": [{"parallel": [UNLOCK]}]},
]
UNTOLD = [
    {"action": "{{ 'lock' }}.unlock"},
    {"action": "lo{{ 'ck.unlock' }}"},
    {"action": "lock.{{ 'unlock' }}"},
    {"service_template": "{% if true %}lock.unlock{% endif %}"},
    {"action": "{{ service_name }}"},
    {"action": ["lock.unlock"]},
    {"device_id": "d1", "domain": "lock", "type": "unlock"},
    {"event": "unlock_the_door"},
    {"an_action_of_a_later_version": "lock.unlock"},
    {"action": "homeassistant.turn_on", "target": {"entity_id": "{{ x }}"}},
    {"action": "script.turn_on", "target": "{{ x }}"},
    {"action": "script.turn_on", "data": {"entity_id": "all"}},
    {"action": "scene.apply", "data": {"entities": {"{{ x }}": "unlocked"}}},
    {"action": "scene.apply", "data": {"entities": {"lock.door": "unlocked"}}},
    {"action": "scene.turn_on", "target": {"entity_id": "Scene.Open"}},
    {"scene": "scene.open"},
]


@pytest.mark.parametrize("step", NAMED, ids=str)
async def test_a_script_that_names_a_denied_service_in_another_way_is_refused(run, step):
    hub, result = await run({"service": "script.evil"}, {"script.evil": steps(step)})
    assert called(hub) == []
    assert result_text(result) == "not done: lock.unlock is on the denylist"


@pytest.mark.parametrize("step", UNTOLD, ids=str)
async def test_a_script_whose_services_cannot_be_told_is_refused(run, step):
    hub, result = await run({"service": "script.evil"}, {"script.evil": steps(step)})
    assert called(hub) == []
    assert CANNOT_BE_TOLD in result_text(result)
    assert result.response.actions[0].outcome == "denied"


@pytest.mark.parametrize(
    ("configs", "answers"),
    [
        ({"script.evil": (ERROR, "not_found", "Entity not found")}, {}),
        ({"script.evil": None}, {}),
        ({"script.evil": [UNLOCK]}, {}),
        ({"script.evil": {"use_blueprint": {"path": "a.yaml"}}}, {}),
        ({}, {"auth/current_user": OWNER | {"is_admin": False}}),
    ],
    ids=["refused", "empty", "another form", "blueprint", "no administrator"],
)
async def test_a_script_that_cannot_be_read_is_refused(run, configs, answers):
    hub, result = await run({"service": "script.evil"}, configs, **answers)
    assert called(hub) == []
    assert result_text(result).startswith("not done: it cannot be told which services this calls")


@pytest.mark.parametrize(
    ("body", "reason"), [(UNLOCK, "lock.unlock is on the denylist"), ({"delay": 1}, None)]
)
async def test_the_body_of_a_blueprint_is_judged(run, body, reason):
    blueprint = {"use_blueprint": {"path": "a.yaml", "input": {"x": 1}}}
    filled = {"blueprint/substitute": {"substituted_config": steps(body)}}
    hub, result = await run({"service": "script.evil"}, {"script.evil": blueprint}, **filled)
    [asked] = [q for q in hub.asked if q["type"] == "blueprint/substitute"]
    assert (asked["domain"], asked["path"], asked["input"]) == ("script", "a.yaml", {"x": 1})
    assert called(hub) == ([] if reason else ["script.evil"])
    assert reason is None or result_text(result) == f"not done: {reason}"


@pytest.mark.parametrize(
    "call",
    [
        {"service": " Script.Outer "},
        {"service": "script.turn_on", "entity_ids": ["script.outer"]},
        {"service": "homeassistant.turn_on", "entity_ids": ["script.outer"]},
        {"service": "homeassistant.turn_on", "entity_ids": ["group.scripts"]},
        {"service": "automation.trigger", "entity_ids": ["automation.evil"]},
        {"service": "Scene.Turn_On", "entity_ids": ["scene.open"]},
    ],
    ids=str,
)
async def test_no_way_to_start_it_passes_the_denylist(run, call):
    """The scripts call each other in a circle."""
    templated = {"action": "lock.{{ 'unlock' }}"}
    configs = {
        "script.outer": steps({"action": "Script.Evil"}),
        "script.evil": steps({"action": "script.outer"}, templated),
        "automation.evil": {"triggers": [], "actions": [templated]},
    }
    hub, result = await run(call, configs)
    assert called(hub) == []
    assert CANNOT_BE_TOLD in result_text(result)


async def test_a_script_is_found_by_its_service_also_if_its_entity_was_renamed(run):
    configs = {"script.evil": steps({"action": "script.old_name"}), "script.moved": steps(UNLOCK)}
    hub, result = await run({"service": "script.evil"}, configs)
    assert called(hub) == []
    assert result_text(result) == "not done: lock.unlock is on the denylist"


@pytest.mark.parametrize(
    "pattern", ["lock", "lock.*", "*unlock", "*.unlock", "l*", "[l]ock.unlock", "LOCK.UNLOCK"]
)
async def test_every_form_of_a_pattern_covers_what_cannot_be_told(run, pattern):
    policy = replace(POLICY, denylisted_services=(pattern,))
    hub, result = await run({"service": "scene.turn_on", "entity_ids": ["scene.open"]}, {}, policy)
    assert called(hub) == []
    assert CANNOT_BE_TOLD in result_text(result)


async def test_without_a_denylist_it_waits_for_an_approval_with_these_words(run):
    policy = replace(POLICY, denylisted_services=(), require_confirmation=("lock",))
    hub, result = await run({"service": "script.evil"}, {"script.evil": None}, policy)
    assert (called(hub), result.status) == ([], "awaiting_approval")
    [asked] = result.waiting_calls
    assert asked.reason == "it cannot be told which services this calls, and some services need an approval"
    assert asked.would["calls"] == ["services that cannot be told"]


async def test_scripts_whose_services_are_known_still_run(run):
    config = steps(
        {"action": "light.turn_{{ 'on' if x else 'off' }}", "target": {"entity_id": "{{ lamp }}"}},
        {"action": "notify.phone", "data": {"message": "{{ x }}", "actions": [{"action": "OPEN"}]}},
        {"wait_for_trigger": [{"trigger": "event", "event_type": "x", "event_data": {"action": "OPEN"}}]},
        {"condition": "device", "device_id": "d1", "domain": "lock"},
        {
            "action": "script.turn_on",
            "target": {"entity_id": "script.outer"},
            "data": {"variables": {"y": "{{ x }}"}},
        },
        "{{ is_state('light.lamp', 'on') }}",
        {"if": "{{ true }}", "then": [{"delay": 1}, {"stop": "done"}]},
    )
    hub, _ = await run({"service": "script.evil"}, {"script.evil": config})
    assert called(hub) == ["script.evil"]
