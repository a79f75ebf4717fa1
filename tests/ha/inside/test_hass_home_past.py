"""The history, statistics, logbook and system log of the home inside Home Assistant."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from homeassistant.auth.models import User
from homeassistant.components.recorder.db_schema import States
from homeassistant.components.recorder.models import StatisticMeanType
from homeassistant.components.recorder.statistics import async_import_statistics
from homeassistant.core import HomeAssistant
from homeassistant.helpers.recorder import get_instance, session_scope
from homeassistant.setup import async_setup_component
from homeassistant.util.ulid import bytes_to_ulid
from pytest_homeassistant_custom_component.components.recorder.common import async_wait_recording_done

from custom_components.sash.hass_home import HassHome
from sash.errors import HomeError
from sash.ports.home import HourlyStatistics
from sash.values.continuations import TurnCaller
from sash.values.ids import new_id

LAMP = "light.kitchen_lights"
METER = "sensor.energy"
HOUR = timedelta(hours=1)
STATISTICS_AT = datetime(2026, 11, 1, 6, tzinfo=UTC)


def last_hour() -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - HOUR, now + timedelta(minutes=1)


@pytest.fixture
async def logbook(recorder_mock: Any, house: HomeAssistant) -> HomeAssistant:
    """The house with a recorder and a logbook."""
    assert await async_setup_component(house, "logbook", {})
    await async_wait_recording_done(house)
    return house


@pytest.fixture
async def anna(hass: HomeAssistant) -> User:
    return await hass.auth.async_create_user("Anna")


class TestHistory:
    async def test_it_has_what_a_light_did(
        self, recorder_mock: Any, hass: HomeAssistant, hass_home: HassHome
    ):
        hass.states.async_set(LAMP, "unknown")
        await async_wait_recording_done(hass)
        start = datetime.now(UTC)
        for state in ("on", "off", "off", "on"):
            hass.states.async_set(LAMP, state, {"n": state})
        hass.states.async_set(LAMP, "on", {"n": "another attribute"})
        await async_wait_recording_done(hass)
        history = await hass_home.get_history([LAMP, "light.nowhere", "what"], start, start + HOUR)
        assert [point.state for point in history[LAMP]] == ["unknown", "on", "off", "on"]
        assert history[LAMP][0].at == start
        assert [point.at for point in history[LAMP]] == sorted(point.at for point in history[LAMP])
        assert history["light.nowhere"] == history["what"] == []
        assert await hass_home.get_history([LAMP], start + HOUR, start + 2 * HOUR) != {}
        assert await hass_home.get_history([], start, start + HOUR) == {}

    async def test_a_span_may_be_in_any_time_zone(
        self, recorder_mock: Any, hass: HomeAssistant, hass_home: HassHome
    ):
        hass.states.async_set(LAMP, "on")
        await async_wait_recording_done(hass)
        start, end = (moment.astimezone(ZoneInfo("Asia/Tokyo")) for moment in last_hour())
        assert [point.state for point in (await hass_home.get_history([LAMP], start, end))[LAMP]] == ["on"]

    async def test_a_broken_recorder_is_a_clear_error(
        self,
        recorder_mock: Any,
        hass: HomeAssistant,
        hass_home: HassHome,
        monkeypatch: pytest.MonkeyPatch,
    ):
        def fail(*_: object, **__: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("homeassistant.components.recorder.history.get_significant_states", fail)
        with pytest.raises(HomeError, match="Home Assistant's recorder could not answer: disk full"):
            await hass_home.get_history([LAMP], *last_hour())


class TestStatistics:
    async def test_they_have_a_row_for_each_hour(
        self, recorder_mock: Any, hass: HomeAssistant, hass_home: HassHome
    ):
        assert await async_setup_component(hass, "sensor", {})
        import_statistics(hass)
        await async_wait_recording_done(hass)
        span = STATISTICS_AT + HOUR, STATISTICS_AT + 3 * HOUR
        found = await hass_home.get_statistics([METER, "sensor.warmth", "sensor.none"], *span)
        assert found == {
            METER: [HourlyStatistics(STATISTICS_AT + n * HOUR, sum=10.0 * n, change=10.0) for n in (1, 2)],
            "sensor.warmth": [
                HourlyStatistics(STATISTICS_AT + n * HOUR, mean=20.0 + n, min=19.0, max=25.0) for n in (1, 2)
            ],
            "sensor.none": [],
        }
        assert await hass_home.get_statistics([], *span) == {}


def import_statistics(hass: HomeAssistant) -> None:
    """Write four hours of a meter and of a measurement."""
    shared = {"name": None, "source": "recorder"}
    async_import_statistics(
        hass,
        {
            **shared,
            "statistic_id": METER,
            "mean_type": StatisticMeanType.NONE,
            "has_sum": True,
            "unit_class": "energy",
            "unit_of_measurement": "kWh",
        },
        [{"start": STATISTICS_AT + n * HOUR, "sum": 10.0 * n, "state": 10.0 * n} for n in range(4)],
    )
    async_import_statistics(
        hass,
        {
            **shared,
            "statistic_id": "sensor.warmth",
            "mean_type": StatisticMeanType.ARITHMETIC,
            "has_sum": False,
            "unit_class": "temperature",
            "unit_of_measurement": "°C",
        },
        [{"start": STATISTICS_AT + n * HOUR, "mean": 20.0 + n, "min": 19.0, "max": 25.0} for n in range(4)],
    )


class TestLogbook:
    async def test_it_says_who_did_it(self, logbook: HomeAssistant, hass_home: HassHome, anna: User):
        turn_id = new_id()
        caller = TurnCaller(anna.id, certainty="signed_in")
        await hass_home.call_service("light.turn_off", {}, [LAMP], caller=caller, turn_id=turn_id)
        await hass_home.call_service("switch.turn_on", {}, ["switch.decorative_lights"], turn_id=turn_id)
        await hass_home.call_service("switch.turn_off", {}, ["switch.decorative_lights"], caller=caller)
        await async_wait_recording_done(logbook)
        for entity_ids in ([LAMP], []):
            entries = await hass_home.get_logbook(*last_hour(), entity_ids)
            [done] = [entry for entry in entries if entry.cause == "light.turn_off by Anna"]
            assert (done.name, done.message, done.entity_id) == ("Kitchen Lights", "turned off", LAMP)
        assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
        assert [entry.cause for entry in entries if entry.entity_id == "switch.decorative_lights"][-1] == (
            "switch.turn_off by Anna"
        )

    async def test_two_calls_of_one_turn_have_causes_of_their_own(
        self, logbook: HomeAssistant, hass_home: HassHome, anna: User
    ):
        caller, turn_id = TurnCaller(anna.id), new_id()
        await hass_home.call_service("light.turn_off", {}, [LAMP], caller=caller, turn_id=turn_id)
        await hass_home.call_service("switch.turn_on", {}, ["switch.ac"], caller=caller, turn_id=turn_id)
        await async_wait_recording_done(logbook)
        causes = {entry.entity_id: entry.cause for entry in await hass_home.get_logbook(*last_hour())}
        assert causes[LAMP] == "light.turn_off by Anna"
        assert causes["switch.ac"] == "switch.turn_on by Anna"

    async def test_the_recorder_keeps_the_turn_of_a_change(self, logbook: HomeAssistant, hass_home: HassHome):
        turn_id = new_id()
        await hass_home.call_service("light.turn_off", {}, [LAMP], turn_id=turn_id)
        await async_wait_recording_done(logbook)

        def find_turns() -> set[str]:
            with session_scope(hass=logbook, read_only=True) as session:
                rows = session.query(States.context_parent_id_bin).all()
                return {bytes_to_ulid(parent) for (parent,) in rows if parent}

        assert await get_instance(logbook).async_add_executor_job(find_turns) == {turn_id}

    async def test_it_says_that_an_automation_did_it(self, logbook: HomeAssistant, hass_home: HassHome):
        await hass_home.call_service("light.turn_off", {}, ["light.bed_light"])
        for service in ("switch.turn_on", "switch.turn_off"):
            await hass_home.call_service(service, {}, ["switch.ac"])
        await logbook.async_block_till_done()
        await async_wait_recording_done(logbook)
        entries = await hass_home.get_logbook(*last_hour(), ["light.bed_light"])
        assert (entries[-1].message, entries[-1].cause, entries[-1].cause_id) == (
            "turned on",
            "Bed light follows AC, triggered by state of switch.ac",
            "automation.bed_light_follows_ac",
        )

    async def test_a_person_has_the_name_of_the_person(
        self, logbook: HomeAssistant, hass_home: HassHome, anna: User
    ):
        logbook.states.async_set("person.anna", "home", {"user_id": anna.id, "friendly_name": "Anna L."})
        await hass_home.call_service("light.turn_off", {}, [LAMP], caller=TurnCaller(anna.id))
        await async_wait_recording_done(logbook)
        entries = await hass_home.get_logbook(*last_hour(), [LAMP])
        assert entries[-1].cause == "light.turn_off by Anna L."

    async def test_entities_that_it_does_not_show_have_no_entries(
        self, logbook: HomeAssistant, hass_home: HassHome
    ):
        """A sensor with a unit changes all the time, so Home Assistant leaves it out."""
        hidden = ["sensor.outside_temperature", "what"]
        assert await hass_home.get_logbook(*last_hour(), hidden) == []


class TestSystemLog:
    async def test_it_has_what_was_written_to_it(self, hass: HomeAssistant, hass_home: HassHome):
        assert await async_setup_component(hass, "system_log", {})
        logger = logging.getLogger("boiler")
        for _ in range(2):
            logger.warning("the boiler is cold")
        try:
            raise ValueError("no gas")
        except ValueError:
            logger.exception("the boiler is out")
        await hass.async_block_till_done()
        cold, out = [record for record in await hass_home.get_log() if record.source == "boiler"]
        assert (cold.level, cold.message, cold.count) == ("warning", "the boiler is cold", 2)
        assert cold.first_at <= cold.at
        assert (out.level, out.message) == ("error", "the boiler is out\nValueError: no gas")


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("recorder", lambda home: home.get_history([LAMP], *last_hour())),
        ("recorder", lambda home: home.get_statistics([LAMP], *last_hour())),
        ("logbook", lambda home: home.get_logbook(*last_hour())),
        ("system log", lambda home: home.get_log()),
    ],
)
async def test_what_is_not_set_up_is_said_so(hass_home: HassHome, name: str, ask: Any):
    with pytest.raises(HomeError, match=f"Home Assistant's {name} is not set up: add"):
        await ask(hass_home)
