"""Finds the configurations of automations, scripts and templates."""

from collections.abc import Iterator, Mapping
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers.entity_component import DATA_INSTANCES
from homeassistant.helpers.entity_platform import async_get_platforms
from homeassistant.helpers.template import Template

_RAW_KEYS = ("raw_configs", "raw_blueprint_inputs")


def find_configs(hass: HomeAssistant) -> dict[str, Any]:
    """Return the configurations by entity id. Their blueprints are filled in.

    The configuration of an automation or script that Home Assistant could not load may be None.
    """
    components = hass.data.get(DATA_INSTANCES, {})
    configs = {
        entity.entity_id: getattr(entity, "raw_config", None)
        for domain in ("automation", "script")
        if domain in components
        for entity in components[domain].entities
    }
    return configs | dict(_find_templates(hass))


def _find_templates(hass: HomeAssistant) -> Iterator[tuple[str, Any]]:
    """Yield the entity ids and configurations of template entities."""
    for platform in async_get_platforms(hass, "template"):
        for entity_id, entity in platform.entities.items():
            if platform.config_entry:
                yield entity_id, dict(platform.config_entry.options)
            else:
                # A template of the configuration files keeps its configuration in a private attribute. Its
                # raw configuration also has the other templates of the same file.
                config = vars(entity).get("_config") or {}
                yield entity_id, _read_templates({k: v for k, v in config.items() if k not in _RAW_KEYS})


def _read_templates(value: Any) -> Any:
    """Return a configuration with the texts of its templates."""
    if isinstance(value, Template):
        return value.template
    if isinstance(value, Mapping):
        return {str(key): _read_templates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_read_templates(item) for item in value]
    return value
