"""Numbers that add up."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from sash.values.codec import decode, encode
from sash.values.stats import Stats, bucket, summary

NUMBERS = [f.name for f in fields(Stats) if f.name not in ("durations", "errors")]


def some_stats():
    return st.builds(
        Stats,
        **{name: st.integers(0, 9) for name in NUMBERS if name != "cost_usd"},
        cost_usd=st.integers(0, 9).map(float),
        durations=st.dictionaries(st.integers(0, 5), st.integers(1, 3)),
        errors=st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)),
    )


@given(some_stats(), some_stats())
def test_every_number_is_added_to_its_like(one, two):
    for name in NUMBERS:
        assert getattr(one + two, name) == getattr(one, name) + getattr(two, name)


@given(some_stats(), some_stats(), some_stats())
def test_adding_is_in_any_order_the_same_and_nothing_changes_nothing(one, two, three):
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Stats() == one


@given(some_stats())
def test_they_are_written_and_read(stats):
    assert decode(Stats, encode(stats)) == stats


def test_adding_changes_neither():
    one, two = Stats(errors={"a": 1}), Stats(errors={"a": 2})
    assert (one + two).errors == {"a": 3}
    assert (one.errors, two.errors) == ({"a": 1}, {"a": 2})


def test_percentiles_are_right_to_the_width_of_a_bucket():
    total = Stats()
    for milliseconds in range(1, 1001):
        total += Stats(duration_ms=milliseconds, durations={bucket(milliseconds): 1})
    said = summary(total)
    assert said["mean_ms"] in (500, 501)
    assert 0.8 * 950 <= said["p95_ms"] <= 1.2 * 950


def test_nothing_has_no_shares():
    assert not any(summary(Stats()).values())
