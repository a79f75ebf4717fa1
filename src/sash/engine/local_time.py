"""Dates and times as the user sees them, in one time zone."""

from datetime import datetime, tzinfo

from sash.values.clock import Clock


class LocalTime:
    """Converts times to `zone`; None is the time zone of the machine."""

    def __init__(self, clock: Clock, zone: tzinfo | None) -> None:
        self._clock = clock
        self.zone = zone

    def today(self) -> datetime:
        """Return the start of the current day in `zone`."""
        now = self._clock.now().astimezone(self.zone)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)

    def format(self, at: datetime) -> str:
        """Return a time as a model reads it, such as `Mon 2026-11-16 08:30`."""
        return f"{at.astimezone(self.zone):%a %Y-%m-%d %H:%M}"
