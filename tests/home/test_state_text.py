"""States in words that a person reads."""

from datetime import UTC, datetime

import pytest

from sash.home.index import HomeIndex
from sash.home.state_text import make_state_text, read_state_text, write_state
from sash.ports.home import Entity, Layout, State
from sash.values.state_words import choose_state_words

NOW = datetime(2026, 1, 31, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "attributes", "shown"),
    [
        ("21.5", {"unit_of_measurement": "°C"}, "21.5 °C"),
        ("20.123456", {"unit_of_measurement": "°C"}, "20.12 °C"),
        ("-0.5000", {}, "-0.5"),
        ("230", {"unit_of_measurement": "V"}, "230 V"),
        ("1.2.3", {}, "1.2.3"),
        ("armed_home", {}, "armed (home)"),
        ("unavailable", {"unit_of_measurement": "°C"}, "not available"),
        ("on", {"device_class": "window"}, "open"),
        ("on", {}, "on"),
    ],
)
def test_a_state_is_written_in_words(state, attributes, shown):
    entity = Entity("sensor.one", "One")
    index = HomeIndex(Layout("Home", (entity,)), [State(entity.id, state, attributes, NOW, NOW)])
    assert write_state(index, entity) == shown


def test_the_language_of_the_home_is_the_default():
    entity = Entity("lock.door", "Tür")
    index = HomeIndex(Layout("Haus", (entity,), language="de"), [State(entity.id, "locked", {}, NOW, NOW)])
    assert (write_state(index, entity), write_state(index, entity, "en-GB")) == ("abgeschlossen", "locked")


def test_an_entity_without_a_state_is_unknown():
    entity = Entity("lock.door", "Tür")
    index = HomeIndex(Layout("Haus", (entity,), language="de"), [])
    assert write_state(index, entity) == "unbekannt"


HEATED = {"current_temperature": 20.5, "temperature": 22}


@pytest.mark.parametrize(
    ("entity_id", "state", "attributes", "shown"),
    [
        ("binary_sensor.one", "on", {"device_class": "window"}, "open"),
        ("binary_sensor.one", "off", {"device_class": "motion"}, "clear"),
        ("binary_sensor.one", "on", {}, "on"),
        ("update.one", "on", {"device_class": "firmware"}, "update available"),
        ("sensor.one", "21.5", {"unit_of_measurement": "°C"}, "21.5 °C"),
        ("sensor.one", "unavailable", {"unit_of_measurement": "°C"}, "unavailable"),
        ("climate.one", "heat", {**HEATED, "hvac_action": "heating"}, "heating, 20.5 → 22 °C"),
        ("climate.one", "heat", HEATED, "heat, 20.5 → 22 °C"),
        ("climate.one", "off", HEATED, "off, 20.5 °C"),
        (
            "climate.one",
            "heat_cool",
            {"target_temp_low": 19, "target_temp_high": 23},
            "heat_cool, → 19–23 °C",
        ),
        ("climate.one", "dry", {}, "dry"),
        ("climate.one", "unavailable", HEATED, "unavailable"),
        ("scene.one", "2026-11-16T07:52:19+00:00", {}, ""),
        ("button.one", "unknown", {}, ""),
        ("button.one", "unavailable", {}, "unavailable"),
    ],
)
def test_a_model_reads_a_state_in_plain_english(entity_id, state, attributes, shown):
    assert str(make_state_text(State(entity_id, state, attributes, NOW, NOW))) == shown


def test_a_thermostat_has_the_unit_of_the_home():
    entity = Entity("climate.one", "One")
    layout = Layout("Home", (entity,), temperature_unit="°F")
    known = HomeIndex(layout, [State(entity.id, "heat", {"temperature": 70}, NOW, NOW)])
    assert str(read_state_text(known, entity.id)) == "heat, → 70 °F"


@pytest.mark.parametrize(
    ("state", "device_class", "named"),
    [("open", "window", "offen"), ("on", "window", "offen"), ("heating, 20.5 °C", "", "heizt, 20.5 °C")],
)
def test_the_words_of_a_model_have_names_in_other_languages(state, device_class, named):
    assert choose_state_words("de").name_state(state, device_class) == named
