"""The current time, from a clock that tests can replace."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Returns the current time as an aware UTC `datetime`."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
