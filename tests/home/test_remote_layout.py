"""A remote home reads its layout from the registries."""

import asyncio

import pytest

from sash.errors import HomeError, HomeUnavailable
from sash.home.remote.websocket import Timing
from sash.ports.home import Connected, Disconnected, LayoutChanged
from tests.home.fake_home_assistant import CONFIG, ERROR
from tests.home.remote_home import Pauses

ENTRIES = {
    "light.lamp": {
        "entity_id": "light.lamp",
        "id": "0" * 32,
        "device_id": "d1",
        "area_id": None,
        "labels": ["cosy"],
        "aliases": [None, "Reading light"],
        "options": {},
        "platform": "hue",
    },
    "sensor.gone": {
        "entity_id": "sensor.gone",
        "device_id": "d2",
        "area_id": "hall",
        "has_entity_name": True,
        "original_name": "Power",
        "aliases": [],
    },
    "light.named": {"entity_id": "light.named", "name": "My name", "original_name": "Theirs"},
    "light.disabled": {"entity_id": "light.disabled", "disabled_by": "user"},
}


def furnish(hub):
    hub.answers |= {
        "config/entity_registry/list": [
            {key: value for key, value in entry.items() if key != "aliases"} for entry in ENTRIES.values()
        ],
        "config/entity_registry/get_entries": lambda question: {
            name: ENTRIES[name] for name in question["entity_ids"]
        },
        "config/device_registry/list": [
            {
                "id": "d1",
                "name": "Hue",
                "name_by_user": "My Hue",
                "area_id": "kitchen",
                "manufacturer": "Philips",
            },
            {"id": "d2", "name": "Plug", "parent_device_id": "d1"},
            {"id": "d3", "name": "Off", "disabled_by": "user"},
        ],
        "config/area_registry/list": [
            {"area_id": "kitchen", "name": "Kitchen", "floor_id": "ground", "aliases": ["Galley"]},
            {"area_id": "hall", "name": "Hall", "floor_id": None, "aliases": []},
        ],
        "config/floor_registry/list": [
            {"floor_id": "ground", "name": "Ground floor", "aliases": ["Downstairs"]}
        ],
        "config/label_registry/list": [{"label_id": "cosy", "name": "Cosy"}],
        "homeassistant/expose_entity/list": {
            "exposed_entities": {"light.lamp": {"conversation": True}, "sun.sun": {"cloud.alexa": True}}
        },
        "automation/config": lambda question: (
            {"config": {"triggers": [{"entity_id": ["light.lamp", "automation.evening"]}]}}
            if question["entity_id"] == "automation.evening"
            else (ERROR, "not_found", "Entity not found")
        ),
    }
    hub.states |= {
        "sun.sun": {"s": "below_horizon", "a": {}, "lc": 1.0},
        "automation.evening": {"s": "on", "a": {"friendly_name": "Evening"}, "lc": 1.0},
        "automation.broken": {"s": "on", "a": {}, "lc": 1.0},
        "group.all": {"s": "on", "a": {"entity_id": ["light.lamp"]}, "lc": 1.0},
        "scene.dinner": {"s": "x", "a": {"entity_id": ["light.lamp", "light.named"]}, "lc": 1.0},
    }


class TestLayout:
    async def test_the_registries_come_together(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        layout = await home.get_layout()
        entities = {entity.id: entity for entity in layout.entities}
        lamp = entities["light.lamp"]
        assert (lamp.name, lamp.area_id, lamp.device_id, lamp.platform) == ("Lamp", "kitchen", "d1", "hue")
        assert (lamp.aliases, lamp.labels) == (("Reading light",), ("cosy",))
        assert entities["sensor.gone"].name == "Plug Power"
        assert entities["sensor.gone"].area_id == "hall"
        assert entities["light.named"].name == "My name"
        assert entities["sun.sun"].name == "Sun"
        assert "light.disabled" not in entities
        assert set(hub.states) <= set(entities)
        devices = {device.id: device for device in layout.devices}
        assert (devices["d1"].name, devices["d1"].manufacturer) == ("My Hue", "Philips")
        assert (devices["d2"].area_id, devices["d2"].via_id) == ("kitchen", "d1")
        assert "d3" not in devices
        assert [(area.id, area.floor_id, area.aliases) for area in layout.areas] == [
            ("kitchen", "ground", ("Galley",)),
            ("hall", None, ()),
        ]
        assert (layout.floors[0].name, layout.floors[0].aliases) == ("Ground floor", ("Downstairs",))
        assert (layout.labels, layout.name, layout.language) == ({"cosy": "Cosy"}, "Hub House", "de")

    async def test_an_entity_has_the_labels_of_its_device_and_its_area(self, hub, connect):
        furnish(hub)
        bridge, plug, *others = hub.answers["config/device_registry/list"]
        hub.answers["config/device_registry/list"] = [
            bridge | {"labels": ["hub"]},
            plug | {"labels": ["plugs"]},
            *others,
        ]
        kitchen, hall = hub.answers["config/area_registry/list"]
        hub.answers["config/area_registry/list"] = [
            kitchen | {"labels": ["food"]},
            hall | {"labels": ["way"]},
        ]
        home, _ = await connect(hub.url)
        labels = {entity.id: entity.labels for entity in (await home.get_layout()).entities}
        assert labels["light.lamp"] == ("cosy", "food", "hub")
        # A sub-device has the labels of its parent. The area of the entity is another than that of its device.
        assert labels["sensor.gone"] == ("hub", "plugs", "way")
        assert labels["light.named"] == ()

    async def test_automations_groups_and_scenes_depend_on_what_they_use(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        found = {(d.entity_id, d.name, d.kind): d.uses for d in (await home.get_layout()).dependents}
        assert found == {
            ("automation.broken", "Broken", "automation"): set(),
            ("automation.evening", "Evening", "automation"): {"light.lamp"},
            ("group.all", "All", "group"): {"light.lamp"},
            ("scene.dinner", "Dinner", "scene"): {"light.lamp", "light.named"},
        }

    async def test_only_what_home_assistant_lists_is_exposed(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        exposed = [entity.id for entity in (await home.get_layout()).entities if entity.exposed]
        assert exposed == ["light.lamp"]

    async def test_what_is_shown_or_hidden_without_an_event_is_noticed(self, hub, connect):
        furnish(hub)
        home, watcher = await connect(hub.url, timing=Timing(exposure_s=0.01))
        await home.get_layout()
        hub.answers["homeassistant/expose_entity/list"] = {
            "exposed_entities": {"sun.sun": {"conversation": True}}
        }
        await watcher.until(LayoutChanged)
        assert [entity.id for entity in (await home.get_layout()).entities if entity.exposed] == ["sun.sun"]
        looked = hub.kinds().count("homeassistant/expose_entity/list")
        async with asyncio.timeout(10):
            while hub.kinds().count("homeassistant/expose_entity/list") < looked + 3:
                await asyncio.sleep(0)
        assert watcher.events.count(LayoutChanged()) == 1

    @pytest.mark.parametrize("why", ["not an administrator", "no conversation"])
    async def test_without_a_list_its_note_or_else_its_rule_decides(
        self, hub, connect, why, caplog, monkeypatch
    ):
        furnish(hub)
        monkeypatch.setitem(ENTRIES, "switch.shown", {"entity_id": "switch.shown"})
        monkeypatch.setitem(
            ENTRIES,
            "switch.hidden",
            {"entity_id": "switch.hidden", "options": {"conversation": {"should_expose": False}}},
        )
        monkeypatch.setitem(
            ENTRIES,
            "lock.shown",
            {"entity_id": "lock.shown", "options": {"conversation": {"should_expose": True}}},
        )
        monkeypatch.setitem(
            ENTRIES, "switch.config", {"entity_id": "switch.config", "entity_category": "config"}
        )
        furnish(hub)
        hub.states |= {
            "sensor.warmth": {"s": "20", "a": {"device_class": "temperature"}, "lc": 1.0},
            "sensor.energy": {"s": "20", "a": {"device_class": "energy"}, "lc": 1.0},
            "lock.front": {"s": "locked", "a": {}, "lc": 1.0},
        }
        if why == "not an administrator":
            hub.answers["auth/current_user"] = {"id": "u9", "name": "Kid", "is_admin": False}
            hub.answers["homeassistant/expose_entity/list"] = (ERROR, "unauthorized", "Unauthorized")
        else:
            hub.answers["get_config"] = {**CONFIG, "components": []}
            hub.answers["homeassistant/expose_entity/list"] = {"exposed_entities": {}}
        home, _ = await connect(hub.url)
        exposed = {entity.id for entity in (await home.get_layout()).entities if entity.exposed}
        assert exposed == {
            "light.lamp",
            "light.named",
            "switch.shown",
            "lock.shown",
        }

    async def test_who_is_no_administrator_asks_for_nothing_forbidden_and_is_told_once(
        self, hub, connect, caplog
    ):
        furnish(hub)
        hub.answers["auth/current_user"] = {"id": "u9", "name": "Kid", "is_admin": False}
        home, watcher = await connect(hub.url)
        layout = await home.get_layout()
        hub.cut()
        await watcher.until(Disconnected)
        await watcher.until(Connected)
        await home.get_layout()
        assert {dependent.kind for dependent in layout.dependents if dependent.uses} == {"group", "scene"}
        assert not {"homeassistant/expose_entity/list", "automation/config"} & set(hub.kinds())
        assert "automation_reloaded" not in [question.get("event_type") for question in hub.asked]
        assert caplog.text.count("not an administrator") == 1

    async def test_a_layout_that_is_written_in_another_way_is_a_clear_error(self, hub, connect):
        furnish(hub)
        hub.answers["config/area_registry/list"] = [{"id": "kitchen"}]
        home, watcher = await connect(hub.url)
        with pytest.raises(HomeError, match="not understood"):
            await home.get_layout()
        assert watcher.events == [Connected()]

    async def test_a_cut_while_the_layout_is_read_fails_it(self, hub, connect):
        furnish(hub)
        hub.answers["automation/config"] = lambda _: hub.cut()
        home, _ = await connect(hub.url, sleep=Pauses(1))
        with pytest.raises(HomeUnavailable, match="lost"):
            await asyncio.wait_for(home.get_layout(), 10)
