"""Checks the database of a config entry as `sash doctor` does, and shows what it finds as a repair."""

from datetime import datetime, timedelta

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir
from homeassistant.helpers.event import async_call_later, async_track_time_interval

from sash.stores.backend import StoreCheck
from sash.stores.sqlite.check import check_file

from .const import DOMAIN
from .database_files import find_database

STORE_DAMAGED = "store_damaged"
# The check reads the whole file, so the first one waits until Home Assistant has started.
FIRST_CHECK = timedelta(minutes=10)
INTERVAL = timedelta(days=1)


class StoreIssue:
    """Creates and deletes the issue for a damaged database."""

    def __init__(self, hass: HomeAssistant, entry: ConfigEntry) -> None:
        self._hass = hass
        self._entry = entry

    @callback
    def open(self) -> CALLBACK_TYPE:
        """Check the database every day. Return a function that stops this."""
        stop_first = async_call_later(self._hass, FIRST_CHECK, self._check)
        stop_later = async_track_time_interval(self._hass, self._check, INTERVAL)

        @callback
        def close() -> None:
            stop_first()
            stop_later()

        return close

    async def _check(self, _: datetime) -> None:
        """Check the database now, and create or delete the issue."""
        found = await check_database(self._hass, self._entry)
        issue_id = f"{STORE_DAMAGED}_{self._entry.entry_id}"
        if found.status != "wrong":
            ir.async_delete_issue(self._hass, DOMAIN, issue_id)
            return
        ir.async_create_issue(
            self._hass,
            DOMAIN,
            issue_id,
            is_fixable=True,
            severity=ir.IssueSeverity.ERROR,
            translation_key=STORE_DAMAGED,
            translation_placeholders={"title": self._entry.title, "found": found.found},
            data={"kind": STORE_DAMAGED, "entry_id": self._entry.entry_id},
        )


async def check_database(hass: HomeAssistant, entry: ConfigEntry) -> StoreCheck:
    """Check that the database of an entry is intact."""
    return await hass.async_add_executor_job(check_file, find_database(hass, entry.entry_id))
