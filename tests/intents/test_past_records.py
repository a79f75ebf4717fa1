"""The facts that are read from histories and statistics."""

from datetime import UTC, datetime, timedelta

from sash.intents.past.asked_states import find_asked_state
from sash.intents.past.measurements import Sample, count_increases, measure
from sash.intents.past.state_periods import StateRecord, read_record
from sash.intents.sentence.moments import Span
from sash.ports.home import HistoryPoint, HourlyStatistics

START = datetime(2026, 1, 17, tzinfo=UTC)


def at(hour: float) -> datetime:
    return START + timedelta(hours=hour)


def read(*points: tuple[float, str], act: str = "open", end: float = 24) -> StateRecord:
    asked = find_asked_state(act, "binary_sensor", "door")
    assert asked is not None
    record = read_record([HistoryPoint(at(h), state) for h, state in points], asked, START, at(end))
    assert record is not None
    return record


def test_a_short_gap_does_not_count_as_another_opening() -> None:
    record = read((0, "off"), (8, "on"), (9, "unavailable"), (9.1, "on"), (10, "off"))
    assert [(p.start, p.end) for p in record.begun] == [(at(8), at(10))]


def test_a_state_after_a_long_gap_did_not_begin_with_a_change() -> None:
    record = read((0, "on"), (2, "unavailable"), (6, "on"), (7, "off"))
    assert record.begun == ()
    assert record.total == timedelta(hours=3)


def test_a_state_at_the_start_of_the_record_has_no_time_of_change() -> None:
    record = read((0, "on"), (2, "off"))
    assert record.begun == ()
    assert record.periods[0].end == at(2)


def test_a_late_record_tells_its_beginning() -> None:
    assert read((5, "off")).recorded_from == at(5)
    assert read((0.5, "off")).recorded_from is None


def test_no_points_are_no_record() -> None:
    asked = find_asked_state("open", "binary_sensor", "door")
    assert asked is not None
    assert read_record([], asked, START, at(1)) is None


def test_a_lock_has_no_open_state_and_a_player_that_is_paused_is_on() -> None:
    assert find_asked_state("open", "lock", "") is None
    playing = find_asked_state("on", "media_player", "tv")
    assert playing is not None
    assert playing.matches("paused")
    assert not playing.matches("standby")
    assert not playing.matches("unavailable")


def test_a_meter_that_was_replaced_counts_on_from_zero() -> None:
    assert count_increases([Sample(at(0), 10), Sample(at(1), 12), Sample(at(2), 1), Sample(at(3), 3)]) == 5


def test_extremes_are_found_in_full_hours_and_in_the_points_after_them() -> None:
    hours = [HourlyStatistics(at(0), 5.0, 4.0, 6.0), HourlyStatistics(at(1), 7.0, 6.0, 8.0)]
    measured = measure(
        hours, [HistoryPoint(at(2), "9"), HistoryPoint(at(2.1), "unknown")], Span(at(0), at(2.5))
    )
    assert measured is not None
    assert (measured.lowest, measured.highest, measured.mean) == (Sample(at(0), 4), Sample(at(2), 9), 6)
