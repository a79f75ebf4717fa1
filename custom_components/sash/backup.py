"""Lets a backup of Home Assistant have a consistent copy of each database.

A backup reads the file of a database and its write-ahead log one after the other, while turns may write. Both
fit together as long as SQLite moves no data from the log into the file, and begins no new log. A reader that
stays at an old state of the database prevents both. So turns go on during a backup: they only append to the
log. The copy has all turns up to the moment in which the log is read.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path

from homeassistant.core import CALLBACK_TYPE, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.event import async_call_later
from homeassistant.util.hass_dict import HassKey

from .const import DOMAIN
from .database_files import find_database

# The log grows while it is held. The hold of a backup that never reports its end is released after this time.
MAX_HOLD_S = 2 * 60 * 60
BUSY_TIMEOUT_S = 5.0


class LogHolds:
    """Holds the logs of databases, from `open` to `close`."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._readers: list[sqlite3.Connection] = []
        self._stop_timer: CALLBACK_TYPE | None = None

    async def open(self) -> None:
        """Hold the logs of all config entries. Raise `HomeAssistantError` if a database cannot be read."""
        await self.close()
        entries = self._hass.config_entries.async_entries(DOMAIN)
        paths = [find_database(self._hass, entry.entry_id) for entry in entries]
        try:
            for path in paths:
                reader = await self._hass.async_add_executor_job(_hold_log, path)
                if reader is not None:
                    self._readers.append(reader)
        except sqlite3.Error as error:
            await self.close()
            raise HomeAssistantError(
                translation_domain=DOMAIN,
                translation_key="backup_failed",
                translation_placeholders={"message": str(error)},
            ) from error

        async def close(_: object) -> None:
            await self.close()

        self._stop_timer = async_call_later(self._hass, MAX_HOLD_S, close)

    async def close(self) -> None:
        """Release all logs. A second call has no effect."""
        if self._stop_timer is not None:
            self._stop_timer()
            self._stop_timer = None
        readers, self._readers = self._readers, []
        for reader in readers:
            await self._hass.async_add_executor_job(reader.close)


_HOLDS: HassKey[LogHolds] = HassKey(f"{DOMAIN}_log_holds")


async def async_pre_backup(hass: HomeAssistant) -> None:
    """Hold the logs of all databases until the backup has ended."""
    await hass.data.setdefault(_HOLDS, LogHolds(hass)).open()


async def async_post_backup(hass: HomeAssistant) -> None:
    """Release the logs."""
    await hass.data.setdefault(_HOLDS, LogHolds(hass)).close()


def _hold_log(path: Path) -> sqlite3.Connection | None:
    """Return a reader that stays at the present state of a database, or None if there is no database."""
    if not path.exists():
        return None
    uri = f"{path.as_uri()}?mode=rw"  # SQLite would create a missing file
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    try:
        # A short log makes a short backup. Readers may prevent this, and then the log stays as it is.
        with suppress(sqlite3.OperationalError):
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # the reader begins with its first query
    except sqlite3.Error:
        db.close()
        raise
    return db
