"""The entry of the satellites comes from the configuration file."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult

from . import DOMAIN


class PuckConfigFlow(ConfigFlow, domain=DOMAIN):
    """Adds the satellites."""

    async def async_step_import(self, _: dict[str, Any] | None = None) -> ConfigFlowResult:
        return self.async_create_entry(title="Pucks", data={})
