"""The words of a sentence that name a time, before it is placed on a calendar."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Role = Literal["in", "at", "since", "until", "before", "for", "ago"]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
# The hours of the parts of a day, from and to.
PARTS: Mapping[str, tuple[int, int]] = {
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (-4, 6),
    # "Last night" begins with the evening.
    "last_night": (-6, 6),
}


# The days of the months. The 29th of February comes only in some years.
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Date(NamedTuple):
    """A day of a month, which may not exist. `year` is None if it is not said."""

    month: int
    day: int
    year: int | None = None

    @property
    def exists(self) -> bool:
        return 1 <= self.day <= _MONTH_DAYS[self.month - 1]


class Number(NamedTuple):
    """A number in a sentence. `minute` is set for "7:30", and `dotted_minute` for "7.30"."""

    value: float
    start: int
    end: int
    minute: int | None = None
    dotted_minute: int | None = None


@dataclass(frozen=True, slots=True)
class TimeWords:
    """The time that a clause names, before it is placed on a calendar.

    `role` is the preposition: in ten minutes, since noon, for an hour. `is_bare` is True for an hour without
    a word that makes it a time, as in "at seven", and for minutes without a unit, as in "after nine".
    `is_exact` is True for an hour of 24. `until` is the second time of "between eight and nine".
    """

    role: Role | None = None
    day: str | None = None
    date: Date | None = None
    part: str | None = None
    hour: int | None = None
    minute: int = 0
    duration_s: float | None = None
    is_bare: bool = False
    is_exact: bool = False
    is_repeated: bool = False
    is_later: bool = False
    until: "TimeWords | None" = None
    places: frozenset[int] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not (
            self.day
            or self.date
            or self.part
            or self.hour is not None
            or self.duration_s is not None
            or self.is_repeated
            or self.is_later
        )

    def merge(self, other: "TimeWords") -> "TimeWords":
        """Return this time with what only the other one says: "tomorrow, at seven"."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        base, more = (self, other) if self.hour is not None or self.duration_s is not None else (other, self)
        return replace(
            base,
            day=base.day or more.day,
            date=base.date or more.date,
            part=base.part or more.part,
            is_repeated=base.is_repeated or more.is_repeated,
            places=base.places | more.places,
        )

    @property
    def length_s(self) -> float | None:
        """The seconds of a timer. The Dutch "van één uur" is its length, and no time of the day."""
        if self.role != "since" or self.hour is None:
            return self.duration_s
        return self.hour * 3600 + self.minute * 60 + (self.duration_s or 0)

    @property
    def is_invalid(self) -> bool:
        """Whether there is no such time of day, as 25 o'clock, or no such date, as the 30th of February."""
        if self.date is not None and not self.date.exists:
            return True
        return self.hour is not None and not (0 <= self.hour <= 24 and 0 <= self.minute < 60)


NO_TIME = TimeWords()
