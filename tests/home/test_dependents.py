"""The entities that automations and scripts use, found in their configurations."""

import pytest

from sash.home.home_assistant.dependents import EntityLookup, find_dependents, find_uses
from sash.ports.home import ANY_SERVICE, Entity

PLACES = EntityLookup(
    entities=frozenset({"light.lamp", "light.desk", "switch.fan", "sensor.warmth", "script.night"}),
    by_registry_id={"0" * 32: "light.desk"},
    members={
        "area_id": {"office": frozenset({"light.desk", "switch.fan"})},
        "device_id": {"d1": frozenset({"light.lamp", "sensor.warmth"})},
        "floor_id": {"ground": frozenset({"light.lamp"})},
        "label_id": {"cosy": frozenset({"light.lamp"})},
    },
)


@pytest.mark.parametrize(
    ("config", "uses"),
    [
        ({"triggers": [{"trigger": "state", "entity_id": "light.lamp"}]}, {"light.lamp"}),
        ({"entity_id": ["light.lamp", "switch.fan"]}, {"light.lamp", "switch.fan"}),
        ({"entity_id": "light.lamp, switch.fan"}, {"light.lamp", "switch.fan"}),
        ({"actions": [{"if": [{"then": [{"target": {"entity_id": "switch.fan"}}]}]}]}, {"switch.fan"}),
        ({"entity_id": "light.was_removed"}, {"light.was_removed"}),
        ({"entity_id": "0" * 32, "device_id": "unknown"}, {"light.desk"}),
        ({"entity_id": "all"}, set()),
        ({"value_template": "{{ states('sensor.warmth') | float > 5 }}"}, {"sensor.warmth"}),
        (
            {"value_template": "{{ is_state(\"light.lamp\", 'on') and states.switch.fan.state }}"},
            {"light.lamp", "switch.fan"},
        ),
        (
            {"value_template": "{{ state_attr('light.lamp','brightness')+states.sensor.warmth.state|int }}"},
            {"light.lamp", "sensor.warmth"},
        ),
        ({"message": "my.light.lamp and light.lamp2 and x_light.lamp are others"}, set()),
        (
            {
                "use_blueprint": {
                    "path": "a.yaml",
                    "input": {"the_light": {"entity_id": "light.lamp"}, "fan": "switch.fan"},
                }
            },
            {"light.lamp", "switch.fan"},
        ),
        ({"action": "script.night"}, {"script.night"}),
        ({"action": "homeassistant.turn_on", "target": {"area_id": "office"}}, {"light.desk", "switch.fan"}),
        ({"action": "switch.toggle", "target": {"area_id": ["office"]}}, {"switch.fan"}),
        ({"service": "switch.toggle", "target": {"area_id": "office"}}, {"switch.fan"}),
        ({"condition": "device", "device_id": "d1"}, {"light.lamp", "sensor.warmth"}),
        (
            {"type": "turn_on", "domain": "light", "device_id": "d1", "entity_id": "light.lamp"},
            {"light.lamp"},
        ),
        ({"action": "homeassistant.turn_off", "target": {"floor_id": "ground"}}, {"light.lamp"}),
        ({"action": "homeassistant.turn_off", "target": {"label_id": "cosy"}}, {"light.lamp"}),
        ({"target": {"area_id": "{{ area }}", "entity_id": None}, "n": 5, "b": True}, set()),
        (None, set()),
        ("light.lamp", {"light.lamp"}),
    ],
)
def test_a_configuration_uses_what_it_names(config, uses):
    assert find_uses(config, PLACES) == uses


def test_what_a_script_calls_is_known_also_if_it_names_no_entity():
    config = {
        "sequence": [
            {"action": "lock.unlock", "target": {"entity_id": "all"}},
            {"if": [], "then": [{"service": "shell_command.boom"}, {"action": "{{ anything }}"}]},
        ]
    }
    night = Entity("script.night", "Night")
    [found] = find_dependents([night, Entity("light.lamp", "Lamp")], {}, {night.id: config}, PLACES)
    assert (found.entity_id, found.kind) == ("script.night", "script")
    assert found.services == {"lock.unlock", "shell_command.boom", ANY_SERVICE}


def test_a_template_uses_what_it_names_and_calls_what_its_actions_call():
    config = {"state": "{{ states('sensor.warmth') }}", "turn_on": [{"action": "switch.turn_on"}]}
    feels = Entity("switch.feels", "Feels")
    [found] = find_dependents([feels], {}, {feels.id: config}, PLACES)
    assert (found.kind, found.uses, found.services) == ("template", {"sensor.warmth"}, {"switch.turn_on"})
    assert found.acts_on == frozenset()


@pytest.mark.parametrize(
    ("config", "services", "acts_on"),
    [
        (
            {"press": {"action": "lock.unlock", "target": {"entity_id": "lock.door"}}},
            {"lock.unlock"},
            {"lock.door"},
        ),
        (
            {"turn_on": [{"action": "homeassistant.turn_off", "target": {"entity_id": ["lock.door"]}}]},
            {"homeassistant.turn_off", "lock.*"},
            {"lock.door"},
        ),
        ({"turn_on": [{"action": "{{ what }}"}]}, {ANY_SERVICE}, set()),
        ({"attributes": {"action": "lock.unlock"}}, set(), set()),
        ({"triggers": [{"trigger": "state"}], "actions": [{"action": "lock.unlock"}]}, set(), set()),
        ({"options": ["a", "b"], "turn_off": []}, set(), set()),
    ],
)
def test_the_actions_of_a_template_are_known(config, services, acts_on):
    sneaky = Entity("switch.sneaky", "Sneaky")
    config = {"state": "{{ states('sensor.warmth') }}", **config}
    [found] = find_dependents([sneaky], {}, {sneaky.id: config}, PLACES)
    assert (found.services, found.acts_on) == (services, acts_on)
