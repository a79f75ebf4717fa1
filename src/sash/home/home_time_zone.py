"""The time zone of a home, which is known only when the home is connected."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo


class HomeTimeZone(tzinfo):
    """Behaves as the zone that `find` returns at the moment; None is the time zone of the machine."""

    def __init__(self, find: Callable[[], tzinfo | None]) -> None:
        self._find = find

    def fromutc(self, at: datetime) -> datetime:
        return at.replace(tzinfo=UTC).astimezone(self._find()).replace(tzinfo=self)

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return self._place(at).utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:
        return self._place(at).dst()

    def tzname(self, at: datetime | None) -> str | None:
        return self._place(at).tzname()

    def _place(self, at: datetime | None) -> datetime:
        """Return the same wall-clock time in the zone, or now."""
        if at is None:
            return datetime.now(UTC).astimezone(self._find())
        local, zone = at.replace(tzinfo=None), self._find()
        return local.astimezone() if zone is None else local.replace(tzinfo=zone)
