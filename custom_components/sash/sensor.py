"""Sensors that show what the agents of a config entry use."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import override

from homeassistant.components.sensor import (
    SensorDeviceClass,
    SensorEntity,
    SensorEntityDescription,
    SensorStateClass,
)
from homeassistant.const import PERCENTAGE, EntityCategory, UnitOfTime
from homeassistant.core import HomeAssistant
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.update_coordinator import CoordinatorEntity

from .const import CONF_PROVIDER, DOMAIN, PROVIDER_LOCAL
from .entry_data import SashConfigEntry
from .sash_events import find_cost
from .usage import Usage, UsageCoordinator

PARALLEL_UPDATES = 0


@dataclass(frozen=True, kw_only=True)
class UsageSensorDescription(SensorEntityDescription):
    """A sensor and the number that it shows.

    `is_daily` numbers begin anew at midnight. A provider without a model has no sensor that `needs_model`.
    """

    read: Callable[[Usage], float | None]
    is_daily: bool = False
    needs_model: bool = False


def _read_cached_share(usage: Usage) -> float | None:
    tokens = usage.today.input_tokens
    return round(100 * usage.today.cached_tokens / tokens, 1) if tokens else None


SENSORS = (
    UsageSensorDescription(
        key="tokens_today",
        translation_key="tokens_today",
        native_unit_of_measurement="tokens",
        state_class=SensorStateClass.TOTAL,
        entity_category=EntityCategory.DIAGNOSTIC,
        read=lambda usage: usage.today.total_tokens,
        needs_model=True,
        is_daily=True,
    ),
    UsageSensorDescription(
        key="cost_today",
        translation_key="cost_today",
        device_class=SensorDeviceClass.MONETARY,
        native_unit_of_measurement="USD",
        state_class=SensorStateClass.TOTAL,
        suggested_display_precision=4,
        entity_category=EntityCategory.DIAGNOSTIC,
        read=lambda usage: find_cost(usage.today),
        needs_model=True,
        is_daily=True,
    ),
    UsageSensorDescription(
        key="cached_share_today",
        translation_key="cached_share_today",
        native_unit_of_measurement=PERCENTAGE,
        state_class=SensorStateClass.MEASUREMENT,
        suggested_display_precision=0,
        entity_category=EntityCategory.DIAGNOSTIC,
        read=_read_cached_share,
        needs_model=True,
    ),
    UsageSensorDescription(
        key="window_fill",
        translation_key="window_fill",
        native_unit_of_measurement=PERCENTAGE,
        state_class=SensorStateClass.MEASUREMENT,
        suggested_display_precision=0,
        entity_category=EntityCategory.DIAGNOSTIC,
        entity_registry_enabled_default=False,
        read=lambda usage: usage.window_fill,
        needs_model=True,
    ),
    UsageSensorDescription(
        key="last_turn_duration",
        translation_key="last_turn_duration",
        device_class=SensorDeviceClass.DURATION,
        native_unit_of_measurement=UnitOfTime.MILLISECONDS,
        suggested_unit_of_measurement=UnitOfTime.SECONDS,
        suggested_display_precision=1,
        state_class=SensorStateClass.MEASUREMENT,
        entity_category=EntityCategory.DIAGNOSTIC,
        entity_registry_enabled_default=False,
        read=lambda usage: usage.last_turn_ms,
    ),
    UsageSensorDescription(
        key="open_turns",
        translation_key="open_turns",
        state_class=SensorStateClass.MEASUREMENT,
        entity_category=EntityCategory.DIAGNOSTIC,
        entity_registry_enabled_default=False,
        read=lambda usage: usage.open_turns,
    ),
)


async def async_setup_entry(
    hass: HomeAssistant, entry: SashConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add the sensors of a config entry."""
    coordinator = entry.runtime_data.usage
    has_model = entry.data[CONF_PROVIDER] != PROVIDER_LOCAL
    shown = [description for description in SENSORS if has_model or not description.needs_model]
    async_add_entities(UsageSensor(coordinator, description) for description in shown)


class UsageSensor(CoordinatorEntity[UsageCoordinator], SensorEntity):
    """One number of the use of a config entry. It belongs to the device of the provider."""

    entity_description: UsageSensorDescription
    _attr_has_entity_name = True

    def __init__(self, coordinator: UsageCoordinator, description: UsageSensorDescription) -> None:
        super().__init__(coordinator)
        self.entity_description = description
        entry = coordinator.config_entry
        self._attr_unique_id = f"{entry.entry_id}_{description.key}"
        self._attr_device_info = DeviceInfo(
            identifiers={(DOMAIN, entry.entry_id)},
            name=entry.title,
            manufacturer="Sash",
            entry_type=DeviceEntryType.SERVICE,
        )

    @property
    @override
    def native_value(self) -> float | None:
        return self.entity_description.read(self.coordinator.data)

    @property
    @override
    def last_reset(self) -> datetime | None:
        return self.coordinator.data.day_start if self.entity_description.is_daily else None
