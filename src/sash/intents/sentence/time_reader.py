"""Reads the times of a sentence, such as "in ten minutes", "tomorrow at 9 AM" or "since noon"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sash.intents.sentence.time_words import MONTHS, PARTS, WEEKDAYS, Date, Number, Role, TimeWords
from sash.intents.words.phrases import Match, choose_matches, make_match

UNIT_S: Mapping[str, float] = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
}
_FIXED_S: Mapping[str, float] = {
    "half_minute": 30,
    "half_hour": 1800,
    "quarter_hour": 900,
    "three_quarter_hour": 2700,
    "hour_and_half": 5400,
    "one_hour": 3600,
    "one_minute": 60,
}
_MAX_BARE_MINUTES = 90
# The words between a day and its month: "28 th of february".
_MAX_BETWEEN_DATE = 2
_YEARS = range(1970, 2200)
# A century. A longer duration would leave the calendar.
MAX_DURATION_S = 100 * 365 * 86400.0
_DAYS = frozenset(
    {
        "today",
        "yesterday",
        "tomorrow",
        "day_before_yesterday",
        "day_after_tomorrow",
        "this_week",
        "last_week",
        "this_month",
        "last_month",
        "this_year",
        "last_year",
        "weekend",
        *WEEKDAYS,
        *MONTHS,
    }
)
# The day and the part of the day of phrases that mean both.
_DAY_PARTS: Mapping[str, tuple[str, str]] = {
    "tonight": ("today", "evening"),
    "last_night": ("today", "last_night"),
    "overnight": ("today", "night"),
    "this_morning": ("today", "morning"),
    "this_afternoon": ("today", "afternoon"),
    "yesterday_evening": ("yesterday", "evening"),
    "yesterday_morning": ("yesterday", "morning"),
    "tomorrow_morning": ("tomorrow", "morning"),
    "tomorrow_evening": ("tomorrow", "evening"),
}
# These begin a time after "between", beside numbers.
_MOMENTS = frozenset({"noon", "midnight", "half_past", "half_to", "quarter_past", "quarter_to", *WEEKDAYS})
# The words between two times, by the word before them.
_JOINS: Mapping[str, str] = {"between": "between_and", "from_hour": "from_until"}
BETWEEN_JOINS = frozenset(_JOINS.values())
_DURATION_ROLES: Sequence[Role] = ("in", "for", "ago", "since", "until", "before", "at")
_CLOCK_ROLES: Sequence[Role] = ("at", "since", "until", "before", "in", "for", "ago")
ROLES = frozenset(_CLOCK_ROLES)
_CLOCK_PREPOSITIONS = frozenset({"at", "since", "until", "before"})
# "to_hour" is "at" only with the word for hours: "à sept heures", but "à 20".
HOUR_ROLES = frozenset({"at", "since", "until", "before", "to_hour"})
# A phrase after the hour: minutes to add.
_FRACTIONS_AFTER: Mapping[str, int] = {"and_half": 30, "and_quarter": 15, "less_quarter": -15}
# A phrase before the hour: minutes to add, and whether they belong to the hour before it.
_FRACTIONS: Mapping[str, tuple[int, int]] = {
    "half_past": (30, 0),
    "half_to": (30, -1),
    "quarter_past": (15, 0),
    "quarter_to": (45, -1),
    "quarter_of": (15, -1),
    "three_quarters_of": (45, -1),
}


def read_time(matches: Sequence[Match], numbers: Sequence[Number], end: int | None = None) -> TimeWords:
    """Return the time of a clause, from its phrases of times and units and its numbers.

    `end` is the place after the last word of the clause.
    """
    return _TimeReader(matches, numbers, end).read()


def find_between(matches: Sequence[Match], numbers: Sequence[Number]) -> tuple[Match, Match] | None:
    """Return the words before the two times of "between eight and nine"; None without them."""
    starts = {number.start for number in numbers}
    starts |= {match.start for match in matches if match.kind == "time" and match.value in _MOMENTS}
    usable = sorted((m for m in matches if m.kind == "time" and m.end in starts), key=lambda m: m.places)
    for first in usable:
        joins = [m for m in usable if m.value == _JOINS.get(first.value) and m.start > first.end]
        if joins:
            # "Between ten and half past ten": the last "and" joins, but "from six to ten to eight" the first.
            return first, joins[-1 if first.value == "between" else 0]
    return None


def read_times_between(
    matches: Sequence[Match], numbers: Sequence[Number], end: int | None = None
) -> TimeWords | None:
    """Return the time of a question such as "was it on between eight and nine"; None without two times."""
    if (found := find_between(matches, numbers)) is None:
        return None
    first, second = found
    before = [m for m in matches if m.end <= second.start and set(m.places).isdisjoint(first.places)]
    after = [m for m in matches if m.start >= second.end]
    left = _TimeReader(
        [*before, make_match("time.at", first.places)],
        [n for n in numbers if n.end <= second.start],
        second.start,
    ).read()
    right = _TimeReader(
        [*after, make_match("time.at", second.places)], [n for n in numbers if n.start >= second.end], end
    ).read()
    if left.is_empty or right.is_empty or (left.hour is None) != (right.hour is None):
        return None
    if left.hour is not None:
        # The day and its part are said once: "between 8 and 9 yesterday evening".
        day, part = left.day or right.day, left.part or right.part
        right = replace(right, day=right.day or day, part=right.part or part)
        left = replace(left, day=day, part=part)
    places = left.places | right.places | {*first.places, *second.places}
    return replace(left, until=replace(right, places=frozenset()), role="at", places=places)


class _TimeReader:
    def __init__(self, matches: Sequence[Match], numbers: Sequence[Number], end: int | None) -> None:
        self._end = end
        # The words of a number are part of longer phrases, such as "an hour".
        self._times = choose_matches(m for m in matches if m.kind not in ("join", "refer"))
        # A preposition may have several roles: "vor zwei Tagen", "vor acht Uhr", "fünf vor acht".
        chosen = {match.places for match in self._times}
        self._all = [match for match in matches if match.kind == "time" and match.places in chosen]
        taken = {place for match in self._times if match.kind == "time" for place in match.places}
        self._numbers = [number for number in numbers if number.start not in taken]
        self._minutes = self._find_minutes()
        minutes = {number.start for number in self._minutes.values()}
        self._numbers = [number for number in self._numbers if number.start not in minutes]
        self._joins = {match.places for match in matches if match.kind == "join"}
        # "5 more minutes", "another 5 minutes".
        self._more = {
            match.start for match in matches if match.tag == "refer.more" and len(match.places) == 1
        }
        self._used: set[int] = set()
        self._found = TimeWords()

    def read(self) -> TimeWords:
        self._read_date()
        self._read_durations()
        self._read_clock()
        self._read_days()
        if self._found.is_empty:
            return self._found
        return replace(self._found, places=frozenset(self._used))

    def _read_date(self) -> None:
        """Read a day of a month: "february 28", "the 28th of february 2027"."""
        for month in self._times:
            if month.kind != "time" or month.value not in MONTHS:
                continue
            numbers = [n for n in self._numbers if n.minute is None and n.value % 1 == 0]
            day = next((n for n in numbers if n.value <= 99 and self._is_day_of(n, month)), None)
            if day is None:
                continue
            last = max(day.end, month.end)
            year = next((n for n in numbers if n.start == last and n.value in _YEARS), None)
            self._used.update(range(min(day.start, month.start), year.end if year else last))
            named = Date(MONTHS.index(month.value) + 1, int(day.value), int(year.value) if year else None)
            self._found = replace(self._found, date=named)
            self._numbers = [n for n in self._numbers if n not in (day, year)]
            return

    def _is_day_of(self, number: Number, month: Match) -> bool:
        """Return whether a number stands beside a month: "february 28", "28 de febrero", "28 th of"."""
        if number.start == month.end:
            return True
        between = range(number.end, month.start)
        taken = {place for m in self._all if m.value in ROLES for place in m.places}
        return 0 <= month.start - number.end <= _MAX_BETWEEN_DATE and taken.isdisjoint(between)

    def _read_durations(self) -> None:
        total, first, last = 0.0, None, 0
        for start, end, seconds in self._list_durations():
            if first is not None and not self._is_beside(last, start):
                continue
            total, last = total + seconds, end
            first = start if first is None else first
            self._used.update(range(start, end))
        if first is None:
            return
        role = self._find_role(first, last, _DURATION_ROLES)
        is_bare = any(self._is_minutes(number) for number in self._numbers)
        self._found = replace(self._found, duration_s=min(total, MAX_DURATION_S), role=role, is_bare=is_bare)

    def _is_beside(self, end: int, start: int) -> bool:
        """Return whether two durations are one: "1 hour 5 minutes", "1 hour, and 5 minutes".

        "1 hour and then 5 minutes" are two.
        """
        between = tuple(range(end, start))
        are_joined = all((place,) in self._joins for place in between) and between not in self._joins
        return len(between) <= 1 or (len(between) == 2 and are_joined)

    def _list_durations(self) -> Iterator[tuple[int, int, float]]:
        for match in self._times:
            if match.kind == "time" and match.value in _FIXED_S:
                yield match.start, match.end, _FIXED_S[match.value]
            elif match.kind == "unit" and match.value in UNIT_S:
                first = match.start - 1 if match.start - 1 in self._more else match.start
                number = next((n for n in self._numbers if n.end in (match.start, first)), None)
                if number is None or number.minute is not None or self._is_clock(number.start, match):
                    continue
                half = self._find_at(match.end, "and_half")
                value = number.value + (0.5 if half else 0)
                yield number.start, half.end if half else match.end, value * UNIT_S[match.value]

        if bare := next((number for number in self._numbers if self._is_minutes(number)), None):
            yield bare.start, bare.end, bare.value * 60

    def _is_minutes(self, number: Number) -> bool:
        """Return whether a number at the end of a clause means minutes: "turn it off in 5"."""
        is_after_in = any(m.value == "in" and m.end == number.start for m in self._all)
        is_short = number.minute is None and 0 < number.value <= _MAX_BARE_MINUTES
        return number.end == self._end and is_short and is_after_in

    def _find_at(self, place: int, *values: str) -> Match | None:
        return next((m for m in self._all if m.start == place and m.value in values), None)

    def _is_clock(self, start: int, unit: Match) -> bool:
        """Return whether a word for hours means the time of day: "om zeven uur", but not "over zeven uur"."""
        is_clock = any(m.value == "clock" and m.places == unit.places for m in self._all)
        before = {m.value for m in self._all if m.end == start}
        after = {m.value for m in self._all if m.start == unit.end}
        return (
            is_clock
            and bool(before & {*HOUR_ROLES, *_FRACTIONS} or after & {*PARTS, "and_quarter", "less_quarter"})
            and "ago" not in after
        )

    def _find_role(self, start: int, end: int, roles: Sequence[Role]) -> Role | None:
        """Return the first of some roles that a word before or after a time has."""
        for role in roles:
            for match in self._all:
                is_after = match.start == end and role in ("ago", "for")
                if match.value == role and (match.end == start or is_after):
                    self._used.update(match.places)
                    return role
        return None

    def _read_clock(self) -> None:
        for name, hour in (("noon", 12), ("midnight", 24)):
            if match := self._find(name):
                minutes, end = self._read_minutes(match.end)
                hour, minute = divmod(hour * 60 + minutes, 60)
                self._set_clock(match.start, end, hour, minute, is_exact=True)
                return
        for number in self._numbers:
            if not self._used.isdisjoint(range(number.start, number.end)):
                continue
            if self._read_hour(number):
                return

    def _read_hour(self, number: Number) -> bool:
        """Read a number as a time of day, if a word or its form says so."""
        start, end = number.start, number.end
        hour, minute = int(number.value), number.minute or 0
        is_time, is_exact = number.minute is not None, number.minute is not None
        roles = {m.value for m in self._all if m.end == start and m.value in _CLOCK_PREPOSITIONS}
        is_clock = bool(roles) or self._find_at(end, "clock") is not None
        if is_written_with_dot := number.dotted_minute is not None and is_clock:
            minute = number.dotted_minute or 0
        before = next((m for m in self._times if m.kind == "time" and m.end == start), None)
        after = next((m for m in self._all if m.start == end and m.value == "clock"), None)
        if any(m.kind == "unit" and m.start == end and m.value != "hour" for m in self._times):
            return False
        if before is not None and before.value in _FRACTIONS:
            more, hours = _FRACTIONS[before.value]
            hour, minute, start, is_time = hour + hours, more, before.start, True
        if start in self._minutes:
            hour, minute = divmod(hour * 60 + minute + int(self._minutes[start].value), 60)
            start, is_time = self._minutes[start].start, True
        if after is not None:
            end, is_time = after.end, True
        if is_clock or is_time:
            more, end = self._read_minutes(end)
            hour, minute = divmod(hour * 60 + minute + more, 60)
        part = next(
            (m for m in self._times if m.kind == "time" and m.start == end and m.value in PARTS), None
        )
        is_bare = not (is_time or minute or is_written_with_dot) and part is None
        if is_bare and (not roles or number.value > 24):
            return False
        if number.value != int(number.value) and not is_written_with_dot:
            return False
        self._set_clock(start, end, hour, minute, is_exact=is_exact, is_bare=is_bare)
        return True

    def _read_minutes(self, start: int) -> tuple[int, int]:
        """Return the minutes after an hour, and the place after them: "y media", "moins dix", "thirty"."""
        if fraction := self._find_at(start, *_FRACTIONS_AFTER):
            return _FRACTIONS_AFTER[fraction.value], fraction.end
        sign = self._find_at(start, "and_minutes", "less_minutes")
        place = sign.end if sign else start
        number = next((n for n in self._numbers if n.start == place), None)
        if number is None or number.minute is not None or not 0 < number.value < 60 or number.value % 1:
            return 0, start
        if any(m.kind == "unit" and m.start == number.end for m in self._times):
            return 0, start
        minutes = int(number.value)
        return (-minutes if sign and sign.value == "less_minutes" else minutes), number.end

    def _find_minutes(self) -> dict[int, Number]:
        """Return the minutes of "ten past seven" by the place of the hour: -10 in "ten to seven"."""
        found = {}
        hours = {number.start for number in self._numbers if number.value <= 24}
        hours |= {match.start for match in self._times if match.value in _FRACTIONS}
        for sign in self._all:
            if sign.value not in ("past", "before_hour") or sign.end not in hours:
                continue
            end = next(
                (m.start for m in self._times if m.end == sign.start and m.value == "minute"), sign.start
            )
            for number in self._numbers:
                if number.end == end and 0 < number.value < 60:
                    value = number.value if sign.value == "past" else -number.value
                    found[sign.end] = Number(value, number.start, sign.end)
        return found

    def _set_clock(
        self, start: int, end: int, hour: int, minute: int, *, is_exact: bool, is_bare: bool = False
    ) -> None:
        self._used.update(range(start, end))
        if before := next((m for m in self._all if m.value == "to_hour" and m.end == start), None):
            self._used.update(before.places)
        role = self._find_role(start, end, _CLOCK_ROLES) or "at"
        if self._found.duration_s is not None:
            role = self._found.role or role
        self._found = replace(
            self._found, hour=hour, minute=minute, role=role, is_exact=is_exact, is_bare=is_bare
        )

    def _read_days(self) -> None:
        for match in self._times:
            if match.kind != "time" or not self._used.isdisjoint(match.places):
                continue
            if match.value in _DAY_PARTS:
                day, part = _DAY_PARTS[match.value]
                self._add(match, day=self._found.day or day, part=part)
            elif match.value == "tomorrow" and self._found.day in WEEKDAYS:
                # German, Dutch and Spanish have one word for tomorrow and for the morning.
                self._add(match, part="morning")
            elif match.value in _DAYS and self._found.date is None:
                self._add(match, day=match.value)
            elif match.value in PARTS:
                self._add(match, part=match.value)
            elif match.value == "every":
                self._add(match, is_repeated=True)
            elif match.value == "later":
                self._add(match, is_later=True)
        if self._found.role is None and not self._found.is_empty:
            self._add_role_of_day()

    def _add_role_of_day(self) -> None:
        for match in self._all:
            if match.value in ("since", "until", "before") and match.end in self._used:
                self._used.update(match.places)
                self._found = replace(self._found, role=match.value)  # type: ignore[arg-type]

    def _add(self, match: Match, **changes: object) -> None:
        self._used.update(match.places)
        self._found = replace(self._found, **changes)  # type: ignore[arg-type]

    def _find(self, value: str) -> Match | None:
        return next((m for m in self._times if m.kind == "time" and m.value == value), None)
