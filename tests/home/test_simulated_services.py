"""The services of the simulated home work as in Home Assistant."""

from datetime import timedelta

import pytest

from sash.demo.simulated_home import SimulatedCall
from sash.errors import ServiceFailed
from sash.ports.home import (
    Connected,
    Disconnected,
    HistoryPoint,
)
from tests.home.one_room_home import THINGS, listen

CALLS = [
    ("light.turn_on", {"brightness": 30}, "light.desk", "on", {"brightness": 30}),
    ("light.turn_on", {"brightness_pct": 50}, "light.desk", "on", {"brightness": 127}),
    ("light.turn_on", {"brightness_pct": 0}, "light.desk", "off", {"brightness": None}),
    ("light.turn_on", {"brightness_step_pct": 20}, "light.desk", "on", {"brightness": 151}),
    ("light.turn_on", {"brightness_step": -10}, "light.desk", "on", {"brightness": 90}),
    (
        "light.turn_on",
        {"color_temp_kelvin": 4000},
        "light.desk",
        "on",
        {"color_temp_kelvin": 4000, "color_mode": "color_temp"},
    ),
    (
        "light.turn_on",
        {"rgb_color": [255, 0, 0]},
        "light.desk",
        "on",
        {"rgb_color": [255, 0, 0], "hs_color": [0.0, 100.0]},
    ),
    (
        "light.turn_on",
        {"color_name": "blue"},
        "light.desk",
        "on",
        {"rgb_color": [0, 0, 255], "color_temp_kelvin": None},
    ),
    ("light.turn_on", {"hs_color": [120, 100]}, "light.desk", "on", {"rgb_color": [0, 255, 0]}),
    ("light.turn_on", {"brightness": 30}, "light.shelf", "on", {"brightness": ...}),
    ("light.turn_off", {}, "light.desk", "off", {"brightness": None, "color_temp_kelvin": None}),
    ("light.toggle", {}, "light.desk", "off", {}),
    ("homeassistant.toggle", {}, "light.shelf", "on", {}),
    ("homeassistant.turn_on", {}, "switch.pump", "on", {}),
    ("homeassistant.turn_off", {}, "climate.room", "off", {"hvac_action": "off"}),
    ("switch.turn_on", {}, "switch.pump", "on", {}),
    ("input_boolean.toggle", {}, "input_boolean.guests", "on", {}),
    ("fan.turn_on", {}, "fan.ceiling", "on", {"percentage": 40}),
    ("fan.set_percentage", {"percentage": 70}, "fan.ceiling", "on", {"percentage": 70}),
    ("fan.set_percentage", {"percentage": 0}, "fan.ceiling", "off", {"percentage": 0}),
    ("fan.oscillate", {"oscillating": True}, "fan.ceiling", "off", {"oscillating": True}),
    ("cover.close_cover", {}, "cover.blind", "closed", {"current_position": 0}),
    ("cover.set_cover_position", {"position": 35}, "cover.blind", "open", {"current_position": 35}),
    ("cover.set_cover_position", {"position": 0}, "cover.blind", "closed", {"current_position": 0}),
    ("cover.open_cover", {}, "cover.gate", "open", {"current_position": ...}),
    ("cover.toggle", {}, "cover.gate", "open", {}),
    ("lock.unlock", {}, "lock.door", "unlocked", {}),
    (
        "climate.set_temperature",
        {"temperature": 18},
        "climate.room",
        "heat",
        {"temperature": 18, "hvac_action": "idle"},
    ),
    (
        "climate.set_temperature",
        {"temperature": 22, "hvac_mode": "off"},
        "climate.room",
        "off",
        {"temperature": 22},
    ),
    ("climate.set_hvac_mode", {"hvac_mode": "off"}, "climate.room", "off", {"hvac_action": "off"}),
    ("climate.set_fan_mode", {"fan_mode": "high"}, "climate.room", "heat", {"fan_mode": "high"}),
    ("media_player.media_pause", {}, "media_player.tv", "paused", {}),
    ("media_player.media_stop", {}, "media_player.tv", "idle", {}),
    ("media_player.turn_off", {}, "media_player.tv", "off", {"volume_level": ...}),
    ("media_player.media_next_track", {}, "media_player.tv", "playing", {"media_track": 4}),
    ("media_player.media_previous_track", {}, "media_player.tv", "playing", {"media_track": 2}),
    ("media_player.volume_set", {"volume_level": 0.2}, "media_player.tv", "playing", {"volume_level": 0.2}),
    ("media_player.volume_up", {}, "media_player.tv", "playing", {"volume_level": 0.6}),
    ("media_player.volume_down", {}, "media_player.tv", "playing", {"volume_level": 0.4}),
    (
        "media_player.volume_mute",
        {"is_volume_muted": True},
        "media_player.tv",
        "playing",
        {"is_volume_muted": True},
    ),
    ("media_player.select_source", {"source": "Radio"}, "media_player.tv", "playing", {"source": "Radio"}),
    ("vacuum.start", {}, "vacuum.robot", "cleaning", {}),
    ("vacuum.pause", {}, "vacuum.robot", "paused", {}),
    ("alarm_control_panel.alarm_arm_away", {}, "alarm_control_panel.house", "armed_away", {}),
    ("automation.turn_off", {}, "automation.broken", "off", {}),
    ("todo.add_item", {"item": "Eggs"}, "todo.list", "2", {}),
    ("todo.remove_item", {"item": "Milk"}, "todo.list", "0", {}),
    ("todo.update_item", {"item": "Milk", "status": "completed"}, "todo.list", "0", {}),
    ("todo.update_item", {"item": "Milk", "rename": "Oat milk"}, "todo.list", "1", {}),
]


@pytest.mark.parametrize(("service", "data", "entity_id", "state", "attributes"), CALLS)
async def test_a_service_changes_the_state_as_home_assistant_does(
    home, clock, service, data, entity_id, state, attributes
):
    clock.advance(60)
    await home.call_service(service, data, [entity_id])
    now = await home.get_state(entity_id)
    assert now.state == state
    assert {key: now.attributes.get(key, ...) for key in attributes} == attributes
    before = THINGS[entity_id][0]
    assert now.changed_at == (clock.now() if state != before else clock.now() - timedelta(seconds=7260))


REFUSED = [
    ("light.explode", {}, ["light.desk"], "Action light.explode not found."),
    ("light.turn_off", {}, [], "must contain at least one of entity_id"),
    (
        "light.turn_off",
        {},
        ["light.gone"],
        "Referenced entities light.gone are missing or not currently available",
    ),
    ("light.turn_off", {}, ["light.lost"], "light.lost are missing or not currently available"),
    ("light.turn_off", {}, ["switch.pump"], "switch.pump are missing or not currently available"),
    ("light.turn_on", {"brightness_pct": 140}, ["light.desk"], "must be at most 100 .*Got 140"),
    ("light.turn_on", {"brightness_pct": "half"}, ["light.desk"], "must be a number"),
    ("light.turn_on", {"color_name": "mud"}, ["light.desk"], "must be one of"),
    ("light.turn_on", {"rgb_color": [300, 0, 0]}, ["light.desk"], "three numbers"),
    ("light.turn_on", {"warmth": 1}, ["light.desk"], r"extra keys not allowed @ data\['warmth'\]"),
    ("fan.set_percentage", {}, ["fan.ceiling"], r"required key not provided @ data\['percentage'\]"),
    ("fan.oscillate", {"oscillating": "yes"}, ["fan.ceiling"], "must be true or false"),
    (
        "cover.set_cover_position",
        {"position": 5},
        ["cover.blind", "cover.gate"],
        "cover.gate does not support action",
    ),
    ("homeassistant.turn_on", {}, ["switch.pump", "lock.door"], "does not support entities lock.door"),
    (
        "climate.set_temperature",
        {"temperature": 40},
        ["climate.room"],
        "temperature 40 is not valid. Accepted range is 5 to 25",
    ),
    (
        "climate.set_temperature",
        {"hvac_mode": "heat"},
        ["climate.room"],
        "must contain at least one of temperature",
    ),
    (
        "climate.set_hvac_mode",
        {"hvac_mode": "cool"},
        ["climate.room"],
        "HVAC mode cool is not valid. Valid HVAC modes are: off, heat.",
    ),
    (
        "climate.set_fan_mode",
        {"fan_mode": "storm"},
        ["climate.room"],
        "Fan mode storm is not valid. Valid fan modes are: low, high.",
    ),
    ("media_player.select_source", {"source": "CD"}, ["media_player.tv"], "Source CD is not valid"),
    ("todo.remove_item", {"item": "Gold"}, ["todo.list"], "Unable to find to-do list item: Gold"),
    ("notify.notify", {}, [], "required key not provided"),
]


@pytest.mark.parametrize(("service", "data", "entity_ids", "words"), REFUSED)
async def test_a_refused_call_says_why_and_changes_nothing(home, clock, service, data, entity_ids, words):
    before, start = await home.get_states(), clock.now() - timedelta(hours=1)
    clock.advance(5)
    heard = listen(home)
    with pytest.raises(ServiceFailed, match=words):
        await home.call_service(service, data, entity_ids)
    assert await home.get_states() == before
    assert heard == [Connected()]
    assert await home.get_logbook(start, clock.now()) == []


async def test_those_that_can_be_reached_are_called_and_the_others_are_in_the_log(home):
    await home.call_service("light.turn_off", {}, ["light.desk", "light.lost"])
    assert (await home.get_state("light.desk")).state == "off"
    (record,) = await home.get_log()
    assert "light.lost are missing" in record.message


async def test_entities_may_be_named_in_the_data(home):
    await home.call_service("light.turn_off", {"entity_id": "light.desk"})
    assert (await home.get_state("light.desk")).state == "off"
    assert home.calls == [SimulatedCall("light.turn_off", {}, ("light.desk",))]


async def test_a_light_comes_back_as_it_was(home):
    await home.call_service("light.turn_on", {"brightness": 40}, ["light.desk"])
    await home.call_service("light.turn_off", {}, ["light.desk"])
    await home.call_service("light.turn_on", {}, ["light.desk"])
    assert (await home.get_state("light.desk")).attributes["brightness"] == 40


async def test_a_group_stands_for_its_members_and_follows_them(home, clock):
    start = clock.now()
    clock.advance(60)
    await home.call_service("light.turn_off", {}, ["light.both"])
    assert [(await home.get_state(id)).state for id in ("light.desk", "light.shelf", "light.both")] == [
        "off"
    ] * 3
    history = await home.get_history(["light.both"], start, clock.now())
    assert history == {"light.both": [HistoryPoint(start, "on"), HistoryPoint(clock.now(), "off")]}


async def test_a_script_runs_and_says_when(home, clock):
    await home.call_service("script.turn_on", {}, ["script.wake"])
    assert (await home.get_state("light.desk")).attributes["brightness"] == 26
    script = await home.get_state("script.wake")
    assert (script.state, script.attributes["last_triggered"]) == ("off", clock.now().isoformat())


async def test_an_automation_that_fails_does_so_in_the_log_each_time(home, clock):
    for _ in range(3):
        clock.advance(60)
        await home.call_service("automation.trigger", {}, ["automation.broken"])
    assert (await home.get_state("switch.pump")).state == "on"
    script, automation = await home.get_log()
    assert "Service not found for call_service at pos 2" in script.message
    assert (
        automation.message
        == "Error while executing automation automation.broken: Action notify.old_phone not found."
    )
    assert automation.source == "homeassistant.components.automation.broken"
    assert (automation.level, automation.count) == ("error", 3)
    assert automation.at - automation.first_at == timedelta(seconds=120)


async def test_a_scene_and_a_button_remember_when_they_were_used(home, clock):
    await home.call_service("scene.turn_on", {}, ["scene.dark"])
    await home.call_service("button.press", {}, ["button.bell"])
    for entity_id in ("scene.dark", "button.bell"):
        assert (await home.get_state(entity_id)).state == clock.now().isoformat()
    assert (await home.get_state("cover.blind")).state == "closed"


async def test_a_notification_is_kept(home):
    await home.call_service("notify.notify", {"message": "Dinner"})
    assert home.notifications == [{"message": "Dinner"}]


async def test_a_restart_is_a_short_loss_of_connection(home):
    heard = listen(home)
    await home.call_service("homeassistant.restart", {})
    assert heard == [Connected(), Disconnected("Home Assistant is restarting"), Connected()]


async def test_a_call_can_be_made_to_fail_or_to_do_nothing_once(home):
    home.fail_next("lock.unlock", ServiceFailed("The motor is blocked."))
    home.ignore_next("lock.unlock")
    with pytest.raises(ServiceFailed, match="blocked"):
        await home.call_service("lock.unlock", {}, ["lock.door"])
    await home.call_service("lock.unlock", {}, ["lock.door"])
    assert (await home.get_state("lock.door")).state == "locked"
    await home.call_service("lock.unlock", {}, ["lock.door"])
    assert (await home.get_state("lock.door")).state == "unlocked"
    assert len(home.calls) == 3
