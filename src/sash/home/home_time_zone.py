"""The time zone of a home, which is known only when the home is connected."""

import weakref
from datetime import UTC, datetime, timedelta, tzinfo

from sash.home.live_home import LiveHome


class HomeTimeZone(tzinfo):
    """Behaves as the zone of a home, or as that of the machine while the home's is unknown."""

    def __init__(self, home: LiveHome) -> None:
        # Caches have time zones in their keys. They must not keep a home that is closed.
        self._home = weakref.ref(home)

    def fromutc(self, at: datetime) -> datetime:
        return at.replace(tzinfo=UTC).astimezone(self._find()).replace(tzinfo=self)

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return self._place(at).utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:
        return self._place(at).dst()

    def tzname(self, at: datetime | None) -> str | None:
        return self._place(at).tzname()

    def _find(self) -> tzinfo | None:
        home = self._home()
        return None if home is None else home.time_zone

    def _place(self, at: datetime | None) -> datetime:
        """Return the same wall-clock time in the zone, or now."""
        if at is None:
            return datetime.now(UTC).astimezone(self._find())
        local, zone = at.replace(tzinfo=None), self._find()
        return local.astimezone() if zone is None else local.replace(tzinfo=zone)
