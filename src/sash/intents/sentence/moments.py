"""Places the times of a sentence on a calendar."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from sash.intents.sentence.time_words import MONTHS, PARTS, WEEKDAYS, Date, TimeWords

_DAY_OFFSETS: Mapping[str, int] = {
    "day_before_yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tomorrow": 1,
    "day_after_tomorrow": 2,
}

_HALF_DAY = timedelta(hours=12)
_NIGHTS = frozenset({"night", "last_night"})
# "At seven last night" is in the evening.
_FIRST_HOURS: Mapping[str, int] = {"night": 8, "last_night": 6}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time. Both ends are aware of their zone."""

    start: datetime
    end: datetime


def find_moment(words: TimeWords, now: datetime, *, prefers_morning: bool = False) -> datetime | None:
    """Return the future moment that a time means; None if it names none.

    An hour without a part of the day is the next one on the clock: "at seven" in the afternoon is 19:00.
    """
    if words.duration_s is not None and words.role in ("in", None, "at"):
        return now + timedelta(seconds=words.duration_s)
    if words.hour is None:
        return _find_part_moment(words, now)
    hour, minute = _apply_part(words), words.minute
    day = find_day_of(words, now, is_future=True)
    if day is not None:
        if prefers_morning is False and words.part is None and not words.is_exact and day == now.date():
            hour = hour + 12 if hour < 12 and _at(now, day, hour, minute) <= now else hour
        return _at(now, day, hour, minute)
    moment = _at(now, now.date(), hour, minute)
    is_ambiguous = words.part is None and not words.is_exact and 1 <= hour < 12 and not prefers_morning
    if is_ambiguous and moment <= now:
        moment += timedelta(hours=12)
    if moment <= now:
        moment += timedelta(days=1)
    return moment


def _find_part_moment(words: TimeWords, now: datetime) -> datetime | None:
    """Return the beginning of a part of a day, such as "tomorrow morning"; None without one."""
    day = find_day_of(words, now, is_future=True)
    if day is None and words.part is None:
        return None
    hours = {"morning": 8, "afternoon": 15, "evening": 19, "night": 22}
    moment = _at(now, day or now.date(), hours.get(words.part or "morning", 8), 0)
    return moment if moment > now or day else moment + timedelta(days=1)


def find_past_span(words: TimeWords, now: datetime) -> Span | None:
    """Return the stretch of the past that a time means; None if it names none."""
    if words.until is not None:
        return _find_span_between(words, words.until, now)
    if words.duration_s is not None:
        start = now - timedelta(seconds=words.duration_s)
        return Span(start, start) if words.role == "ago" else Span(start, now)
    if words.hour is not None:
        moment = find_past_moment(words, now)
        return (
            Span(moment, now)
            # "After three" is read as "in three" in the languages that say both with one word.
            if words.role in ("since", "in")
            else Span(_start_of(moment), moment)
            if words.role in ("until", "before")
            else Span(moment, moment)
        )
    span = _find_day_span(words, now)
    if span is None:
        return None
    return Span(span.start, now) if words.role == "since" else Span(span.start, min(span.end, now))


def _find_span_between(words: TimeWords, until: TimeWords, now: datetime) -> Span | None:
    """Return the last time between two others: "between 8 and 9", "from Monday until Wednesday"."""
    if words.hour is None:
        first, last = _find_day_span(words, now), _find_day_span(until, now)
        return Span(first.start, min(last.end, now)) if first and last and first.start < last.end else None
    end = find_past_moment(until, now)
    start = find_past_moment(words, now)
    if start > end and words.day is None and words.part is None:
        start -= timedelta(days=1)
    # "Between 6 and 8 in the evening": the same half of the day counts for both.
    if end - start > _HALF_DAY and not words.is_exact and (words.hour or 0) < 12:
        start += _HALF_DAY
    return Span(start, end) if start < end else None


def find_past_moment(words: TimeWords, now: datetime) -> datetime:
    """Return the last moment before now with the hour of a time, on its day if it names one."""
    hour = _apply_part(words)
    day = find_day_of(words, now, is_future=False)
    if words.part in _NIGHTS and words.day in (None, "today"):
        day = now.date()
        if _at(now, day, hour, words.minute) > now:
            day -= timedelta(days=1)
    moment = _at(now, day or now.date(), hour, words.minute)
    # Of the past, "three o'clock" is the last one, also in a sentence with the hours of 24.
    is_full_hour = not words.is_exact or words.minute == 0
    is_ambiguous = words.part is None and is_full_hour and 1 <= hour < 12
    if is_ambiguous and (afternoon := moment + timedelta(hours=12)) <= now:
        moment = afternoon
    return moment if moment <= now or day is not None else moment - timedelta(days=1)


def _find_day_span(words: TimeWords, now: datetime) -> Span | None:
    today = _start_of(now)
    if words.day in ("this_week", "last_week"):
        monday = today - timedelta(days=now.weekday())
        return Span(monday, now) if words.day == "this_week" else Span(monday - timedelta(days=7), monday)
    if words.day in ("this_month", "last_month"):
        first = today.replace(day=1)
        last_first = (first - timedelta(days=1)).replace(day=1)
        return Span(first, now) if words.day == "this_month" else Span(last_first, first)
    if words.day == "this_year":
        return Span(today.replace(month=1, day=1), now)
    if words.day == "last_year":
        new_year = today.replace(month=1, day=1)
        return Span(new_year.replace(year=now.year - 1), new_year)
    if words.day in MONTHS:
        return _find_month(MONTHS.index(words.day) + 1, today)
    if words.day == "weekend":
        saturday = today - timedelta(days=(now.weekday() - 5) % 7)
        return Span(saturday, min(saturday + timedelta(days=2), now))
    day = find_day_of(words, now, is_future=False)
    if day is None and words.part is None:
        return None
    start = _at(now, day or now.date(), 0, 0)
    if words.part is None:
        return Span(start, start + timedelta(days=1))
    first_hour, last_hour = PARTS[words.part]
    span = Span(start + timedelta(hours=first_hour), start + timedelta(hours=last_hour))
    if span.start >= now and words.day is None:
        span = Span(span.start - timedelta(days=1), span.end - timedelta(days=1))
    return span


def _find_month(month: int, today: datetime) -> Span:
    """Return the last month of this number that has begun."""
    year = today.year if month <= today.month else today.year - 1
    first = today.replace(year=year, month=month, day=1)
    return Span(first, (first + timedelta(days=31)).replace(day=1))


def _apply_part(words: TimeWords) -> int:
    """Return the hour of 24: nine in the evening is 21."""
    hour = words.hour or 0
    if words.part in ("afternoon", "evening") and hour < 12:
        return hour + 12
    if words.part in ("morning", *_NIGHTS) and hour == 12:
        return 0
    if words.part in _NIGHTS and _FIRST_HOURS[words.part] <= hour < 12:
        return hour + 12
    return hour


def find_day_of(words: TimeWords, now: datetime, *, is_future: bool) -> date | None:
    """Return the date that a time names: its date, or a day such as "tomorrow". None without one."""
    if words.date is None:
        return find_day(words.day, now, is_future=is_future)
    return _find_date(words.date, now.date(), is_future=is_future) if words.date.exists else None


def _find_date(named: Date, today: date, *, is_future: bool) -> date | None:
    """Return the next or the last day with a date. A leap day may be eight years away."""
    step = 1 if is_future else -1
    years = range(today.year, today.year + 9 * step, step) if named.year is None else (named.year,)
    for year in years:
        with suppress(ValueError):
            day = date(year, named.month, named.day)
            if named.year is not None or (day >= today if is_future else day <= today):
                return day
    return None


def find_day(day: str | None, now: datetime, *, is_future: bool) -> date | None:
    """Return the date of a day such as "tomorrow" or "monday"; None for other words."""
    if day is not None and day in _DAY_OFFSETS:
        offset: date = now.date() + timedelta(days=_DAY_OFFSETS[day])
        return offset
    if day in WEEKDAYS:
        distance = (WEEKDAYS.index(day) - now.weekday()) % 7
        return now.date() + timedelta(days=distance if is_future else distance - 7 if distance else 0)
    return None


def _at(now: datetime, day: date, hour: int, minute: int) -> datetime:
    start = datetime.combine(day, time(0), now.tzinfo)
    days, hour = divmod(hour, 24)
    return (start + timedelta(days=days)).replace(hour=hour, minute=minute)


def _start_of(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
