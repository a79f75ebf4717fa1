"""Diagnostics of a config entry, without keys, names and words of conversations."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from homeassistant.components.diagnostics import REDACTED, async_redact_data
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import CONF_API_KEY, CONF_PROMPT
from homeassistant.core import HomeAssistant
from homeassistant.loader import async_get_integration

from sash.engine.runtime import Runtime
from sash.errors import HomeUnavailable, SashError
from sash.stores.sqlite.database import SCHEMA_VERSION
from sash.values.stats import summary

from .const import CONF_API_BASE, CONF_AZURE_ENDPOINT, DOMAIN
from .database_files import find_database, measure_database
from .entry_data import SashConfigEntry
from .store_counts import count_records
from .store_issue import check_database

ERROR_DAYS = 7
# A prompt may have names of people, and a title is chosen by the user.
_SECRET_OPTIONS = (CONF_API_KEY, CONF_PROMPT)
_ADDRESSES = (CONF_API_BASE, CONF_AZURE_ENDPOINT)


async def async_get_config_entry_diagnostics(hass: HomeAssistant, entry: SashConfigEntry) -> dict[str, Any]:
    """Return what helps to find the cause of a problem."""
    data, path = entry.runtime_data, find_database(hass, entry.entry_id)
    integration = await async_get_integration(hass, DOMAIN)
    usage = data.usage.data
    return {
        "version": str(integration.version),
        "provider": _redact_settings(entry.data),
        "agents": [_describe_subentry(subentry) for subentry in entry.subentries.values()],
        "model": data.runtime.model.name,
        "home": _count_home(data.runtime),
        "store": {
            "schema": SCHEMA_VERSION,
            "bytes": await hass.async_add_executor_job(measure_database, path),
            "check": (await check_database(hass, entry)).status,
            **await _count_records(entry),
        },
        "turns": {
            "open": usage.open_turns,
            "running": data.runtime.running_turns,
            "unwritten_ends": data.runtime.unwritten_ends,
            "today": summary(usage.today),
        },
    }


async def _count_records(entry: SashConfigEntry) -> dict[str, Any]:
    """Return the counts of the store, and the errors of the last days by code."""
    data = entry.runtime_data
    try:
        counts = await count_records(data.store)
        return {**counts._asdict(), f"errors_{ERROR_DAYS}_days": await data.usage.sum_errors(ERROR_DAYS)}
    except SashError as error:
        return {"error": error.code}


def _describe_subentry(subentry: ConfigSubentry) -> dict[str, Any]:
    return {
        "id": subentry.subentry_id,
        "type": subentry.subentry_type,
        "options": _redact_settings(subentry.data),
    }


def _redact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    redacted: dict[str, Any] = async_redact_data(dict(settings), _SECRET_OPTIONS)
    for key in _ADDRESSES:
        if redacted.get(key):
            redacted[key] = _redact_address(str(redacted[key]))
    return redacted


def _redact_address(address: str) -> str:
    """Return an address without the user, the password and the query."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"
    except ValueError:
        return REDACTED


def _count_home(runtime: Runtime) -> dict[str, Any]:
    """Return the sizes of the home's index. The home has no index while it starts."""
    try:
        index = None if runtime.home is None else runtime.home.index
    except HomeUnavailable as error:
        return {"problem": error.code}
    if index is None:
        return {}
    domains: dict[str, int] = {}
    for entity_id in index.entities:
        domain = entity_id.partition(".")[0]
        domains[domain] = domains.get(domain, 0) + 1
    return {
        "exposed_entities": len(index.entities),
        "areas": len(index.areas),
        "floors": len(index.floors),
        "entities_by_domain": dict(sorted(domains.items())),
        "language": index.language,
    }
