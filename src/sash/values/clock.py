"""Where the time comes from, so that a test can bring its own."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Anything that tells the time as an aware UTC `datetime`."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
