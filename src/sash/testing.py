"""Parts for the tests of those who build on Sash."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the time by `seconds`, which may be negative as when a clock is set back."""
        self._now += timedelta(seconds=seconds)
