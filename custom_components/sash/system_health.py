"""The state of Sash on Home Assistant's page for system health."""

from typing import Any

from homeassistant.components import system_health
from homeassistant.core import HomeAssistant, callback
from homeassistant.loader import async_get_integration

from .const import CONF_PROVIDER, DOMAIN, PROVIDER_LOCAL
from .database_files import find_database, measure_database
from .entry_data import SashConfigEntry
from .provider import provider_address
from .store_counts import count_open_turns, count_records

OPENAI_ADDRESS = "https://api.openai.com/v1"


@callback
def async_register(hass: HomeAssistant, register: system_health.SystemHealthRegistration) -> None:
    """Register the function that returns the state."""
    register.async_register_info(read_system_health)


async def read_system_health(hass: HomeAssistant) -> dict[str, Any]:
    """Return the state of all config entries together. A provider is checked while the page is open."""
    entries: list[SashConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    counts = [await count_records(entry.runtime_data.store) for entry in entries]
    open_turns = [await count_open_turns(entry.runtime_data.store) for entry in entries]
    paths = [find_database(hass, entry.entry_id) for entry in entries]
    size = await hass.async_add_executor_job(lambda: sum(map(measure_database, paths)))
    info: dict[str, Any] = {
        "version": str((await async_get_integration(hass, DOMAIN)).version),
        "providers": len(entries),
        "database_size": f"{size / (1 << 20):.1f} MB",
        "sessions": sum(count.sessions for count in counts),
        "turns": sum(count.turns for count in counts),
        "open_turns": sum(open_turns),
    }
    addresses = [
        provider_address(entry.data) or OPENAI_ADDRESS
        for entry in entries
        if entry.data[CONF_PROVIDER] != PROVIDER_LOCAL
    ]
    if addresses:
        info["can_reach_provider"] = _check_addresses(hass, addresses)
    return info


async def _check_addresses(hass: HomeAssistant, addresses: list[str]) -> str | dict[str, str]:
    """Return "ok", or the failure of the first provider that cannot be reached."""
    checked: str | dict[str, str] = "ok"
    for address in dict.fromkeys(addresses):
        checked = await system_health.async_check_can_reach_url(hass, address)
        if checked != "ok":
            return checked
    return checked
