"""Reads the services of Home Assistant with their descriptions."""

from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers.service import async_get_all_descriptions
from homeassistant.helpers.translation import async_get_translations

from sash.home.home_assistant.home_assistant_json import read_services
from sash.ports.home import Service

from .json_values import to_json_value


class ServiceDescriptions:
    """The services by name. They are built again only if Home Assistant describes them differently."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._source: tuple[dict[str, Any], dict[str, str]] | None = None
        self._services: dict[str, Service] = {}

    async def get(self) -> dict[str, Service]:
        """Return the services by name, described in English."""
        descriptions = await async_get_all_descriptions(self._hass)
        translations = await async_get_translations(self._hass, "en", "services")
        # Home Assistant makes a new object when a service is added, removed or described again.
        if self._source is None or self._source[0] is not descriptions or self._source[1] != translations:
            services = await self._hass.async_add_executor_job(_read, descriptions, translations)
            self._source, self._services = (descriptions, translations), services
        return dict(self._services)


def _read(descriptions: dict[str, Any], translations: dict[str, str]) -> dict[str, Service]:
    return read_services(to_json_value(descriptions), translations)
