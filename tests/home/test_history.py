"""Summaries and plots of histories, including unusual ones."""

import json
from datetime import timedelta

import pytest

from sash.home.history import is_numeric, summarize_history
from sash.home.history_plot import MAX_TICKS, draw_history, find_ticks
from sash.ports.home import HistoryPoint
from tests.home.small_home import NOW

START = NOW - timedelta(hours=10)


def points(*states):
    return [HistoryPoint(START + timedelta(hours=n), state) for n, state in enumerate(states)]


def summary(*states):
    return summarize_history(points(*states), START, NOW, "°C", None)


def test_a_mean_counts_for_how_long_a_value_lasted():
    assert summary("10", "20")["mean"] == pytest.approx((10 * 1 + 20 * 9) / 10)


def test_what_was_away_is_no_number_and_is_counted():
    told = summary("10", "unavailable", "20")
    assert (told["min"], told["max"], told["times_unavailable"]) == (10, 20, 1)


def test_states_are_told_by_how_long_they_lasted():
    told = summary("on", "off", "on", "off")
    assert told["lasted"] == {"off": "8 h 0 min", "on": "2 h 0 min"}
    assert (told["changes"], len(told["last_changes"])) == (3, 3)


def test_a_past_of_many_texts_stays_small():
    many = [HistoryPoint(START + timedelta(seconds=n), f"text {n} " * 100) for n in range(2000)]
    told = summarize_history(many, START, NOW, "", None)
    assert len(json.dumps(told)) < 8000


def test_no_past_is_said_to_be_none():
    assert summarize_history([], START, NOW, "", None) == {"note": "no history in this time"}


ODD = [
    (),
    ("1",),
    ("5", "5", "5"),
    ("unavailable", "unavailable"),
    ("1", "nan", "2"),
    ("inf", "1"),
    ("1e16", "10000000000000002", "10000000000000004"),
    ("1e-12", "2e-12"),
    ("0", "5e-324"),
    ("-1.7e308", "1.7e308"),
    ("-20", "-10"),
    ("on", "5", "off"),
    ("", "x"),
]


@pytest.mark.parametrize("states", ODD, ids=str)
def test_odd_pasts_are_told_and_drawn(states):
    json.dumps(summary(*states), allow_nan=False)
    assert draw_history({"it": points(*states)}, {}, START, NOW).startswith(b"\x89PNG")


def test_one_value_that_is_none_makes_no_text_of_numbers():
    assert is_numeric(points("1", "nan", "2"))
    assert not is_numeric(points("1", "on"))


@pytest.mark.parametrize("days", [0.1, 1, 7, 10, 92, 365, 40_000])
def test_a_time_axis_has_few_ticks(days):
    start = NOW - timedelta(days=days)
    ticks = find_ticks(start, NOW, None)
    assert 2 <= len(ticks) <= MAX_TICKS + 1
    assert all(start < tick < NOW for tick in ticks)


def test_a_week_is_drawn_with_days():
    assert draw_history({"it": points("1", "2")}, {"it": "V"}, NOW - timedelta(days=7), NOW).startswith(
        b"\x89PNG"
    )
