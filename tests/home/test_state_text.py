"""States in words that a person reads."""

from datetime import UTC, datetime

import pytest

from sash.home.index import HomeIndex
from sash.home.state_text import write_state
from sash.ports.home import Entity, Layout, State

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
