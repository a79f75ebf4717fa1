"""The adapter against a real Home Assistant."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sash.errors import HomeError, HomeUnauthorized, HomeUnavailable, ServiceFailed
from sash.home.remote import RemoteHome, Timing
from sash.ports.home import ANY_SERVICE, Connected, Disconnected, LayoutChanged, StateChanged
from tests.ha.instance import HIDDEN
from tests.home.event_watcher import EventWatcher

WITHIN_S = 20


@pytest.fixture
async def connect(house):
    opened = []

    async def connect(token=None, until=Connected):
        timing = Timing(retry_s=0.05, max_retry_s=0.2, starting_s=0.05, exposure_s=0.5)
        home = RemoteHome(house.url, token or house.token, timing=timing)
        opened.append(home)
        watcher = EventWatcher(home)
        await home.open()
        await watcher.until(until, within_s=WITHIN_S)
        return home, watcher

    yield connect
    for home in opened:
        await home.close()


@pytest.fixture
async def home(connect):
    home, _ = await connect()
    return home


async def until(question, wanted):
    """Ask again until what Home Assistant writes a little later is there."""
    async with asyncio.timeout(WITHIN_S):
        while not wanted(answer := await question()):
            await asyncio.sleep(0.1)
        return answer


def hour():
    now = datetime.now(UTC)
    return now - timedelta(hours=1), now + timedelta(minutes=1)


class TestLayout:
    async def test_entities_have_their_area_names_and_labels(self, home):
        layout = await home.get_layout()
        entities = {entity.id: entity for entity in layout.entities}
        areas = {area.id: area for area in layout.areas}
        floors = {floor.id: floor.name for floor in layout.floors}
        kitchen = entities["light.kitchen_lights"]
        assert kitchen.name == "Kitchen Lights"
        assert kitchen.aliases == ("Cooking lights",)
        assert kitchen.platform == "demo"
        assert areas[kitchen.area_id].name == "Kitchen"
        assert floors[areas[kitchen.area_id].floor_id] == "Ground floor"
        assert [layout.labels[label] for label in entities["light.bed_light"].labels] == ["Cosy"]
        assert (layout.name, layout.language) == ("Test Home", "en")
        assert areas[entities["automation.bed_light_follows_ac"].area_id].name == "Bedroom"
        devices = {device.id: device for device in layout.devices}
        assert devices[kitchen.device_id].name == "Kitchen Lights"

    async def test_every_entity_with_a_state_is_in_the_layout(self, home):
        layout = await home.get_layout()
        states = {state.entity_id for state in await home.get_states()}
        assert len(states) > 100
        assert states <= {entity.id for entity in layout.entities}
        assert all(entity.name for entity in layout.entities)

    async def test_what_is_not_exposed_is_said_so(self, home):
        exposed = {entity.id: entity.exposed for entity in (await home.get_layout()).entities}
        assert not exposed[HIDDEN]
        assert not exposed["lock.front_door"]
        assert exposed["light.kitchen_lights"]
        assert exposed["sensor.outside_temperature"]

    async def test_without_an_administrators_token_the_same_is_exposed(self, home, connect, house):
        """Entities without a place in the registry are the exception: their note is the administrators' only."""
        guest, _ = await connect(house.guest_token)
        mine, theirs = await home.get_layout(), await guest.get_layout()
        registered = {entity.id for entity in mine.entities if entity.platform}
        assert {e.id for e in mine.entities if e.exposed} & registered == {
            e.id for e in theirs.entities if e.exposed
        } & registered
        unknown = {d.kind for d in theirs.dependents if d.services == {ANY_SERVICE}}
        assert unknown == {"automation", "script"}
        with pytest.raises(HomeError, match="not an administrator"):
            await guest.get_log()

    async def test_automations_scripts_groups_and_scenes_use_entities(self, home):
        uses = {(d.kind, d.name): d.uses for d in (await home.get_layout()).dependents}
        assert uses["automation", "Bed light follows AC"] == {"switch.ac", "light.bed_light"}
        assert uses["automation", "Cool evening"] == {
            "sensor.outside_temperature",
            "cover.hall_window",
            "light.kitchen_lights",
            "light.ceiling_lights",
        }
        assert uses["script", "Good night"] == {"lock.front_door", "scene.dinner"}
        assert uses["group", "Downstairs"] == {"light.kitchen_lights", "light.ceiling_lights"}
        assert uses["scene", "Dinner"] == {"light.kitchen_lights", "light.ceiling_lights"}

    @pytest.mark.parametrize("entity_id", ["binary_sensor.basement_floor_wet", "lock.kitchen_door"])
    async def test_what_is_shown_or_hidden_is_noticed(self, connect, house, entity_id):
        """The lock is in no registry, and no event tells of it."""
        home, watcher = await connect()
        await home.get_layout()
        for shown in (True, False):
            await house.ask(
                {
                    "type": "homeassistant/expose_entity",
                    "assistants": ["conversation"],
                    "entity_ids": [entity_id],
                    "should_expose": shown,
                }
            )
            await watcher.until(LayoutChanged, within_s=WITHIN_S)
            exposed = {entity.id: entity.exposed for entity in (await home.get_layout()).entities}
            assert exposed[entity_id] is shown

    @pytest.mark.parametrize(
        "questions",
        [
            [
                {"type": "config/area_registry/create", "name": "Attic"},
                {"type": "config/area_registry/delete", "area_id": "attic"},
            ],
            [
                {"type": "config/label_registry/create", "name": "New"},
                {"type": "config/label_registry/delete", "label_id": "new"},
            ],
            [{"type": "config/entity_registry/update", "entity_id": HIDDEN, "icon": "mdi:lamp"}],
            [{"type": "call_service", "domain": "automation", "service": "reload"}],
        ],
        ids=lambda questions: questions[0]["type"],
    )
    async def test_a_change_of_the_layout_is_told(self, connect, house, questions):
        _, watcher = await connect()
        await house.ask(*questions)
        await watcher.until(LayoutChanged, within_s=WITHIN_S)


class TestStates:
    async def test_a_service_call_changes_a_state_and_tells_it(self, connect):
        home, watcher = await connect()
        for service, state in (("turn_off", "off"), ("turn_on", "on")):
            await home.call_service(f"light.{service}", {}, ["light.ceiling_lights"])
            assert (await home.get_state("light.ceiling_lights")).state == state
        await home.call_service("light.turn_on", {"brightness": 77}, ["light.ceiling_lights"])
        changed = await watcher.until(
            StateChanged, lambda e: e.state and e.state.attributes.get("brightness") == 77, within_s=WITHIN_S
        )
        fresh = await home.get_state("light.ceiling_lights")
        assert changed == StateChanged("light.ceiling_lights", fresh)
        assert fresh in await home.get_states()

    async def test_the_states_that_were_told_are_those_that_are_asked_for(self, home):
        for state in (await home.get_states())[::10]:
            fresh = await home.get_state(state.entity_id)
            assert (fresh.state, fresh.attributes) == (state.state, state.attributes)

    async def test_an_attribute_that_goes_away_is_gone(self, connect):
        home, watcher = await connect()
        await home.call_service("light.turn_on", {"brightness": 55}, ["light.kitchen_lights"])
        await home.call_service("light.turn_off", {}, ["light.kitchen_lights"])
        off = await watcher.until(
            StateChanged, lambda e: e.entity_id == "light.kitchen_lights" and e.state.state == "off"
        )
        assert off.state == await home.get_state("light.kitchen_lights")

    async def test_there_is_no_such_entity(self, home):
        assert await home.get_state("light.nowhere") is None

    async def test_an_entity_that_appears_is_told(self, connect, house):
        home, watcher = await connect()
        await house.ask(
            {
                "type": "call_service",
                "domain": "scene",
                "service": "create",
                "service_data": {"scene_id": "fresh", "entities": {"light.bed_light": "on"}},
            }
        )
        await watcher.until(StateChanged, lambda e: e.entity_id == "scene.fresh", within_s=WITHIN_S)
        await watcher.until(LayoutChanged, within_s=WITHIN_S)
        assert "scene.fresh" in {entity.id for entity in (await home.get_layout()).entities}


class TestServices:
    async def test_services_have_words_fields_and_targets(self, home):
        services = await home.get_services()
        turn_on = services["light.turn_on"]
        assert "light" in turn_on.description
        assert turn_on.target == {"entity": [{"domain": ["light"]}]}
        assert turn_on.fields["brightness_pct"].selector["number"]["max"] == 100
        assert "short or long" in turn_on.fields["flash"].description
        assert services["climate.set_hvac_mode"].fields["hvac_mode"].selector
        assert services["homeassistant.restart"].target is None
        assert services["script.good_night"].domain == "script"

    @pytest.mark.parametrize(
        ("service", "data", "words"),
        [
            ("climate.set_temperature", {"temperature": 1000}, "Accepted range is 7 to 35"),
            ("light.turn_on", {"brightness": "very"}, "expected int"),
            ("light.no_such_thing", {}, "Service light.no_such_thing not found"),
            ("light", {}, "not found"),
        ],
    )
    async def test_a_refused_service_says_why(self, home, service, data, words):
        with pytest.raises(ServiceFailed, match=words):
            await home.call_service(service, data, ["climate.hvac"])


class TestPast:
    async def test_history_has_what_a_light_did(self, home):
        start = datetime.now(UTC)
        for service in ("turn_off", "turn_on", "turn_off"):
            await home.call_service(f"light.{service}", {}, ["light.entrance_color_white_lights"])
        end = start + timedelta(minutes=1)
        history = await until(
            lambda: home.get_history(["light.entrance_color_white_lights"], start, end),
            lambda found: (
                [p.state for p in found["light.entrance_color_white_lights"]][-3:] == ["off", "on", "off"]
            ),
        )
        points = history["light.entrance_color_white_lights"]
        assert points[0].at == start
        assert [point.at for point in points] == sorted(point.at for point in points)

    async def test_there_is_no_history_of_what_does_not_exist(self, home):
        assert await home.get_history(["light.nowhere"], *hour()) == {"light.nowhere": []}

    async def test_the_logbook_says_that_the_automation_did_it(self, home):
        await home.call_service("light.turn_off", {}, ["light.bed_light"])
        await home.call_service("switch.turn_on", {}, ["switch.ac"])
        await home.call_service("switch.turn_off", {}, ["switch.ac"])
        entries = await until(
            lambda: home.get_logbook(*hour(), ["light.bed_light"]),
            lambda found: any("Bed light follows AC" in entry.cause for entry in found),
        )
        done = next(entry for entry in entries if "Bed light follows AC" in entry.cause)
        assert (done.name, done.message, done.entity_id) == ("Bed Light", "turned on", "light.bed_light")
        assert done.cause == "Bed light follows AC, triggered by state of switch.ac, by Owner"
        everything = await home.get_logbook(*hour())
        assert [entry.at for entry in everything] == sorted(entry.at for entry in everything)
        assert any(entry.cause == "switch.turn_off by Owner" for entry in everything)

    async def test_the_log_has_what_was_written_to_it(self, home):
        for _ in range(2):
            await home.call_service(
                "system_log.write", {"message": "the boiler is cold", "level": "warning", "logger": "boiler"}
            )
        record = next(record for record in await home.get_log() if record.source == "boiler")
        assert (record.level, record.message) == ("warning", "the boiler is cold")
        assert record.count >= 2
        assert record.first_at <= record.at


class TestConnection:
    async def test_a_wrong_token_is_refused(self, connect, house):
        home, watcher = await connect(house.token[:-4] + "AAAA", until=Disconnected)
        with pytest.raises(HomeUnauthorized, match="refuses the token"):
            await home.get_states()
        assert house.token[:-4] not in str(watcher.events)

    async def test_it_comes_back_by_itself_when_home_assistant_restarts(self, connect, house):
        home, watcher = await connect()
        await home.call_service("light.turn_on", {"brightness": 33}, ["light.living_room_rgbww_lights"])
        await house.stop()
        await watcher.until(Disconnected, within_s=WITHIN_S)
        with pytest.raises(HomeUnavailable, match="cannot be reached"):
            await home.call_service("light.turn_off", {}, ["light.bed_light"])
        await house.start()
        await watcher.until(Connected, within_s=WITHIN_S)
        state = next(s for s in await home.get_states() if s.entity_id == "light.living_room_rgbww_lights")
        assert state == await home.get_state("light.living_room_rgbww_lights")
        assert state.attributes.get("brightness") != 33
        assert "light.kitchen_lights" in {entity.id for entity in (await home.get_layout()).entities}
        await home.call_service("light.turn_off", {}, ["light.bed_light"])
        await home.call_service("light.turn_on", {}, ["light.bed_light"])
        await watcher.until(StateChanged, lambda event: event.entity_id == "light.bed_light")
