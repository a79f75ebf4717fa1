"""The conversations of a provider that was removed.

Home Assistant asks before it removes a config entry, but its question says nothing about conversations, and
an integration cannot add to it. Users expect that a removed integration leaves no data behind. They also
remove and add an integration to repair it, and then weeks of conversations would be lost. So nothing is
deleted without an answer: a repair asks whether to delete the conversations or to keep the file.

The issue is persistent, so it is there after a restart. If no other provider is left, Home Assistant does not
load Sash then, and shows its own flow with the step `confirm` instead of ours. That flow deletes nothing, so
the text of this step says so and names the file.
"""

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir

from .const import DOMAIN
from .database_files import delete_database, find_database, has_records

LEFTOVER_DATA = "leftover_data"


async def offer_deletion(hass: HomeAssistant, entry: ConfigEntry) -> None:
    """Create the issue that asks what to do with the data of an entry. Delete data without conversations."""
    path = find_database(hass, entry.entry_id)
    if not await hass.async_add_executor_job(has_records, path):
        await hass.async_add_executor_job(delete_database, path)
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{LEFTOVER_DATA}_{entry.entry_id}",
        is_fixable=True,
        is_persistent=True,
        severity=ir.IssueSeverity.WARNING,
        translation_key=LEFTOVER_DATA,
        translation_placeholders={"title": entry.title, "file": str(path)},
        data={
            "kind": LEFTOVER_DATA,
            "entry_id": entry.entry_id,
            "title": entry.title,
            "file": str(path),
        },
    )


async def delete_leftover_data(hass: HomeAssistant, entry_id: str) -> None:
    """Delete the database of an entry that does not exist any more."""
    if hass.config_entries.async_get_entry(entry_id) is None:
        await hass.async_add_executor_job(delete_database, find_database(hass, entry_id))
