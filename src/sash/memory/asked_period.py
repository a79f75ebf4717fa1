"""Reads the time that a question is about: "yesterday", "in March", "vor zwei Wochen"."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sash.memory.recall_lexicon import RecallLexicon
from sash.memory.recall_ranking import Period

_MAX_NUMBER = 999
_YEARS, _LONGEST_MONTH = range(1990, 2100), 31
_ALL_DAY = timedelta(days=1)
# The first month of each season. A season has three months.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
# "What did we want for Christmas?" may be about what was said before it, so these words are also looked for.
_ALSO_TOPICS = frozenset({*_SEASONS, "christmas", "new_year", "easter"})
_DAYS_OF = {"last_days": 1, "last_weeks": 7}

_Days = tuple[datetime, datetime]
_Found = tuple[_Days, range | set[int]]


def read_period(
    said: Sequence[str], lexicon: RecallLexicon, now: datetime
) -> tuple[Period | None, frozenset[int]]:
    """Return the time that some words name, and the indexes of those of them that are no topic."""
    reader = _PeriodReader(said, lexicon, now)
    for read in (
        reader.read_date,
        reader.read_month,
        reader.read_phrase,
        reader.read_weekday,
        reader.read_year,
    ):
        if (found := read()) is not None:
            (start, end), indexes = found
            if any(said[at - 1] in lexicon.since for at in indexes if at):
                end = now
            return Period(start.timestamp(), end.timestamp()), frozenset(indexes)
    return None, frozenset()


class _PeriodReader:
    def __init__(self, said: Sequence[str], lexicon: RecallLexicon, now: datetime) -> None:
        self._said = said
        self._lexicon = lexicon
        self._now = now
        self._today = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def read_date(self) -> _Found | None:
        """Read a day that is written with numbers: "2026-04-03", "am 3.4."."""
        for n, word in enumerate(self._said):
            numbers = self._said[n : n + 3]
            if _is_year(word) and len(numbers) == 3 and _is_month(numbers[1]) and _is_day(numbers[2]):
                return self._find_date(int(word), int(numbers[1]), int(numbers[2])), range(n, n + 3)
            before = self._said[n - 1] if n else ""
            if before not in self._lexicon.date_marks or len(numbers) < 2:
                continue
            if _is_day(word) and _is_month(numbers[1]):
                has_year = len(numbers) == 3 and _is_year(numbers[2])
                year = int(numbers[2]) if has_year else None
                return self._find_past_date(year, int(numbers[1]), int(word)), range(n, n + 2 + has_year)
        return None

    def read_phrase(self) -> _Found | None:
        for kind, taken, value in self._list_phrases():
            if kind in _SEASONS and (year := self._read_year(taken.stop)) is not None:
                return self._make_months(year, _SEASONS[kind], 3), range(0)
            if (days := self._find_days(kind, value)) is not None:
                return days, taken if kind not in _ALSO_TOPICS else range(0)
        return None

    def _list_phrases(self) -> Iterator[tuple[str, range, int]]:
        """Yield the kinds, places and numbers of the times that the words name, the longest ones first."""
        words = {*self._said, "#"}
        for phrase, kind in self._lexicon.dates:
            if not words.issuperset(phrase):
                continue
            for start in range(len(self._said) - len(phrase) + 1):
                if (value := self._match(phrase, start, kind)) is not None:
                    yield kind, range(start, start + len(phrase)), value

    def _read_year(self, at: int) -> int | None:
        """Return the year among the two words from a place on: "summer of 2024"."""
        return next((int(word) for word in self._said[at : at + 2] if _is_year(word)), None)

    def _match(self, phrase: Sequence[str], start: int, kind: str) -> int | None:
        """Return the number or weekday in a phrase that the words from `start` on match; 0 if it has none."""
        value = 0
        for part, word in zip(phrase, self._said[start:], strict=False):
            if part == "#":
                is_day = kind == "last_weekday"
                known = self._lexicon.weekdays if is_day else self._lexicon.numbers
                is_digits = word.isdecimal() and len(word) < 4 and not is_day
                number = int(word) if is_digits else known.get(word)
                if number is None:
                    return None
                value = number
            elif part != word:
                return None
        return value

    def read_month(self) -> _Found | None:
        """Read a month, and its day: "in March", "am 3. April"."""
        for n, word in enumerate(self._said):
            month = self._lexicon.months.get(word)
            before = self._said[n - 1] if n else ""
            if month is None:
                continue
            near = {at: self._said[at] for at in (n - 1, n + 1, n + 2) if 0 <= at < len(self._said)}
            days = {at: self._read_day(each) for at, each in near.items() if at != n + 2}
            day_at = next((at for at, day in days.items() if day), None)
            year_at = next((at for at, each in near.items() if at > n and _is_year(each)), None)
            is_other_word = word in self._lexicon.other_months and before not in self._lexicon.before_month
            if is_other_word and day_at is None:
                continue
            last_year = next(
                (taken for kind, taken, _ in self._list_phrases() if kind == "last_year"), range(0)
            )
            year = None if year_at is None else int(near[year_at])
            if last_year:
                year = self._today.year - 1
            indexes = {n, *(at for at in (day_at, year_at) if at is not None), *last_year}
            return self._find_past_date(year, month, days[day_at] if day_at is not None else None), indexes
        return None

    def read_year(self) -> _Found | None:
        """Read a year: "in 2024"."""
        for n, word in enumerate(self._said):
            if n and _is_year(word) and self._said[n - 1] in self._lexicon.before_month:
                return self._make_months(int(word), 1, 12), {n}
        return None

    def _read_day(self, word: str) -> int | None:
        """Return the number of a day of a month: "3", "3rd"."""
        endings = (ending for ending in self._lexicon.ordinal_endings if word[:1].isdecimal())
        number = next((word.removesuffix(each) for each in endings if word.endswith(each)), word)
        return int(number) if _is_day(number) else None

    def _find_past_date(self, year: int | None, month: int, day: int | None) -> _Days:
        """Return a day or a month. Without a year it is the last one that has begun."""
        days = self._find_date(year or self._today.year, month, day)
        if year is None and days[0] > self._now:
            return self._find_date(self._today.year - 1, month, day)
        return days

    def _find_date(self, year: int, month: int, day: int | None) -> _Days:
        """Return a day, or the month if it has no such day."""
        try:
            date = self._date(year, month, day or 0)
        except ValueError:
            return self._make_months(year, month, 1)
        return date, date + _ALL_DAY

    def read_weekday(self) -> _Found | None:
        """Read the last day of this name: "on Monday". It may also be the topic: "the pizza on Monday"."""
        for n, word in enumerate(self._said):
            if (weekday := self._lexicon.weekdays.get(word)) is not None and len(word) > 3:
                return self._find_last(weekday), {n}
        return None

    def _find_last(self, weekday: int) -> _Days:
        date = self._today - timedelta(days=(self._today.weekday() - weekday - 1) % 7 + 1)
        return date, date + _ALL_DAY

    def _find_days(self, kind: str, value: int) -> _Days | None:
        today, monday = self._today, self._today - timedelta(days=self._today.weekday())
        if kind.endswith("_ago") and kind != "a_few_days_ago":
            return self._count_back(kind, value)
        if kind in ("last_days", "last_weeks", "last_months"):
            return self._find_last_days(kind, value)
        simple = {
            "today": (today, today + _ALL_DAY),
            "this_morning": (today, today + _ALL_DAY),
            "yesterday": (today - _ALL_DAY, today),
            "last_night": (today - _ALL_DAY, today),
            "day_before_yesterday": (today - 2 * _ALL_DAY, today - _ALL_DAY),
            "this_week": (monday, self._now),
            "last_week": (monday - 7 * _ALL_DAY, monday),
            "week_before_last": (monday - 14 * _ALL_DAY, monday - 7 * _ALL_DAY),
            "last_weekend": self._find_weekend(monday),
            "a_few_days_ago": (today - 14 * _ALL_DAY, self._now),
        }
        if kind in simple:
            return simple[kind]
        if kind == "last_weekday":
            return self._find_last(value)
        return self._find_part_of_year(kind)

    def _find_weekend(self, monday: datetime) -> _Days:
        return monday - 2 * _ALL_DAY, monday

    def _find_last_days(self, kind: str, value: int) -> _Days | None:
        """Return the time since some days, weeks or months ago."""
        if not 0 < value <= _MAX_NUMBER:
            return None
        if kind == "last_months":
            months = self._today.year * 12 + self._today.month - 1 - value
            return self._date(months // 12, months % 12 + 1, 1), self._now
        return self._today - value * _DAYS_OF[kind] * _ALL_DAY, self._now

    def _count_back(self, kind: str, value: int) -> _Days | None:
        if not 0 < value <= _MAX_NUMBER:
            return None
        if kind == "days_ago":
            date = self._today - value * _ALL_DAY
            return date, date + _ALL_DAY
        if kind == "weeks_ago":
            date = self._today - 7 * value * _ALL_DAY
            return date - 4 * _ALL_DAY, date + 4 * _ALL_DAY
        if kind == "months_ago":
            months = self._today.year * 12 + self._today.month - 1 - value
            return self._make_months(months // 12, months % 12 + 1, 1)
        return self._make_months(self._today.year - value, 1, 12)

    def _find_part_of_year(self, kind: str) -> _Days | None:
        year, month = self._today.year, self._today.month
        months = {"this_month": 0, "last_month": 1, "month_before_last": 2}
        if kind in months:
            count = year * 12 + month - 1 - months[kind]
            return self._make_months(count // 12, count % 12 + 1, 1)
        if kind in ("this_year", "last_year"):
            return self._make_months(year - (kind == "last_year"), 1, 12)
        if kind in _SEASONS:
            first = _SEASONS[kind]
            return self._make_months(year - (first > month), first, 3)
        if kind == "easter":
            return self._find_past(_find_easter(self._today, year), _find_easter(self._today, year - 1), 2)
        if kind == "christmas":
            return self._find_past(self._date(year, 12, 24), self._date(year - 1, 12, 24), 3)
        if kind == "new_year":
            return self._date(year - 1, 12, 31), self._date(year, 1, 2)
        return None

    def _find_past(self, this_year: datetime, last_year: datetime, days: int) -> _Days:
        first = this_year if this_year <= self._now else last_year
        return first, first + days * _ALL_DAY

    def _date(self, year: int, month: int, day: int) -> datetime:
        return self._today.replace(year=year, month=month, day=day)

    def _make_months(self, year: int, month: int, count: int) -> _Days:
        end = year * 12 + month - 1 + count
        return self._date(year, month, 1), self._date(end // 12, end % 12 + 1, 1)


def _is_day(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2 and 0 < int(word) <= _LONGEST_MONTH


def _is_month(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2 and 0 < int(word) <= 12


def _is_year(word: str) -> bool:
    return word.isdecimal() and len(word) == 4 and int(word) in _YEARS


def _find_easter(like: datetime, year: int) -> datetime:
    """Return Easter Sunday of a year, by the rule of Gauss in the form of Butcher."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return like.replace(year=year, month=month, day=day + 1)
