"""Translates the JSON of Home Assistant into the values of the home port."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sash.home.home_assistant.dependents import EntityLookup, find_dependents
from sash.home.home_assistant.exposure import is_exposed
from sash.ports.home import (
    Area,
    Device,
    Entity,
    Floor,
    HistoryPoint,
    HourlyStatistics,
    Layout,
    LogbookEntry,
    LogRecord,
    Service,
    ServiceField,
    State,
    StateChanged,
)
from sash.values.state_words import name_on_off

Json = dict[str, Any]

_LEVELS: dict[str, Literal["warning", "error", "critical"]] = {
    "WARNING": "warning",
    "ERROR": "error",
    "CRITICAL": "critical",
    "FATAL": "critical",
}
# Attributes that are part of the layout: the name, and the members of a group or scene.
LAYOUT_ATTRIBUTES = ("friendly_name", "entity_id")


@dataclass(frozen=True, slots=True)
class Registries:
    """The registries as JSON. `exposed` is None if Home Assistant has no list of exposed entities.

    `configs` are the configurations of automations, scripts and templates by entity id.
    """

    config: Json
    entities: list[Json]
    devices: list[Json]
    areas: list[Json]
    floors: list[Json]
    labels: list[Json]
    exposed: Collection[str] | None
    configs: Json


def read_state(raw: Json) -> State:
    """Convert a state from the JSON of the REST API."""
    return State(
        entity_id=raw["entity_id"],
        state=raw["state"],
        attributes=raw["attributes"],
        changed_at=datetime.fromisoformat(raw["last_changed"]),
        updated_at=datetime.fromisoformat(raw["last_updated"]),
    )


def apply_changes(states: dict[str, State], event: Json) -> Iterator[tuple[State | None, StateChanged]]:
    """Apply an event of `subscribe_entities` to the states. Yield each old state with its change.

    The event holds added entities in "a", changed ones in "c" and removed ones in "r". A change has the new
    values in "+" and the removed attributes in "-".
    """
    for entity_id, raw in (event.get("a") or {}).items():
        old, states[entity_id] = states.get(entity_id), _read_short_state(entity_id, raw)
        yield old, StateChanged(entity_id, states[entity_id])
    for entity_id, change in (event.get("c") or {}).items():
        if (old := states.get(entity_id)) is not None:
            states[entity_id] = _change_state(old, change)
            yield old, StateChanged(entity_id, states[entity_id])
    for entity_id in event.get("r") or ():
        if (old := states.pop(entity_id, None)) is not None:
            yield old, StateChanged(entity_id, None)


def _read_short_state(entity_id: str, raw: Json) -> State:
    changed_at = _read_time(raw["lc"])
    updated_at = _read_time(raw["lu"]) if "lu" in raw else changed_at
    return State(entity_id, raw["s"], raw.get("a") or {}, changed_at, updated_at)


def _change_state(old: State, change: Json) -> State:
    new = change.get("+") or {}
    gone = (change.get("-") or {}).get("a") or ()
    kept = {name: value for name, value in old.attributes.items() if name not in gone}
    updated = new.get("lc", new.get("lu"))
    return State(
        entity_id=old.entity_id,
        state=new.get("s", old.state),
        attributes=kept | (new.get("a") or {}),
        changed_at=_read_time(new["lc"]) if "lc" in new else old.changed_at,
        updated_at=old.updated_at if updated is None else _read_time(updated),
    )


def changes_layout(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether a state change adds, removes or renames an entity, or changes the members of a group.

    `old` and `new` are the attributes before and after the change; None if there is no state.
    """
    if old is None or new is None:
        return True
    return any(old.get(name) != new.get(name) for name in LAYOUT_ATTRIBUTES)


def read_layout(raw: Registries, states: dict[str, State]) -> Layout:
    """Build the layout from the registries. An entity with a state but no registry entry is included."""
    devices = _read_devices(raw.devices)
    entries = {entry["entity_id"]: entry for entry in raw.entities}
    ids = [entity_id for entity_id, entry in entries.items() if not entry.get("disabled_by")]
    ids += [entity_id for entity_id in states if entity_id not in entries]
    labels = _collect_labels(raw)
    entities = tuple(
        _read_entity(
            entity_id, entries.get(entity_id, {}), states.get(entity_id), devices, labels, raw.exposed
        )
        for entity_id in ids
    )
    areas = tuple(
        Area(area["area_id"], area["name"], area.get("floor_id"), _read_aliases(area)) for area in raw.areas
    )
    lookup = _build_lookup(entities, areas, raw.entities)
    return Layout(
        name=str(raw.config.get("location_name") or "Home"),
        entities=entities,
        devices=tuple(devices.values()),
        areas=areas,
        floors=tuple(Floor(floor["floor_id"], floor["name"], _read_aliases(floor)) for floor in raw.floors),
        labels={label["label_id"]: label["name"] for label in raw.labels},
        dependents=tuple(find_dependents(entities, states, raw.configs, lookup)),
        language=str(raw.config.get("language") or "en"),
        time_zone=raw.config.get("time_zone") or None,
        temperature_unit=str((raw.config.get("unit_system") or {}).get("temperature") or "°C"),
    )


def _read_devices(raw: list[Json]) -> dict[str, Device]:
    """Return the enabled devices by id. A sub-device without an area has the area of its parent."""
    areas = {device["id"]: device.get("area_id") for device in raw}
    return {
        device["id"]: Device(
            id=device["id"],
            name=str(device.get("name_by_user") or device.get("name") or ""),
            area_id=device.get("area_id") or areas.get(device.get("parent_device_id") or ""),
            manufacturer=str(device.get("manufacturer") or ""),
            model=str(device.get("model") or ""),
            via_id=device.get("via_device_id") or device.get("parent_device_id"),
        )
        for device in raw
        if not device.get("disabled_by")
    }


def _collect_labels(raw: Registries) -> dict[str, frozenset[str]]:
    """Return the labels of areas and devices by their ids. A device also has the labels of its parent."""
    labels = {area["area_id"]: frozenset(area.get("labels") or ()) for area in raw.areas}
    own = {device["id"]: frozenset(device.get("labels") or ()) for device in raw.devices}
    for device in raw.devices:
        parent_id = device.get("parent_device_id") or ""
        labels[device["id"]] = own[device["id"]] | own.get(parent_id, frozenset())
    return labels


def _read_entity(
    entity_id: str,
    entry: Json,
    state: State | None,
    devices: dict[str, Device],
    labels: dict[str, frozenset[str]],
    exposed: Collection[str] | None,
) -> Entity:
    device = devices.get(entry.get("device_id") or "")
    area_id = entry.get("area_id") or (device.area_id if device else None)
    places = (area_id, device.id if device else None)
    attributes = state.attributes if state else {}
    device_class = entry.get("device_class") or attributes.get("device_class") or ""
    return Entity(
        id=entity_id,
        name=str(attributes.get("friendly_name") or _registered_name(entity_id, entry, device)),
        area_id=area_id,
        device_id=entry.get("device_id"),
        aliases=_read_aliases(entry),
        labels=tuple(
            sorted(
                {
                    *(entry.get("labels") or ()),
                    *(each for place in places for each in labels.get(place or "", ())),
                }
            )
        ),
        exposed=is_exposed(entity_id, entry, str(device_class), exposed),
        platform=str(entry.get("platform") or ""),
    )


def _registered_name(entity_id: str, entry: Json, device: Device | None) -> str:
    """Return the name of an entity without a state: its own, or one derived from its device."""
    if entry.get("name"):
        return str(entry["name"])
    parts = [device.name if device and entry.get("has_entity_name") else "", entry.get("original_name")]
    return " ".join(part for part in parts if part) or entity_id.partition(".")[2].replace("_", " ").title()


def _read_aliases(raw: Json) -> tuple[str, ...]:
    """Return the aliases, sorted. Home Assistant writes null for the name itself, which is left out."""
    return tuple(sorted(alias for alias in raw.get("aliases") or () if alias))


def _build_lookup(entities: Iterable[Entity], areas: Iterable[Area], entries: list[Json]) -> EntityLookup:
    floors = {area.id: area.floor_id for area in areas}
    members: dict[str, dict[str, set[str]]] = {
        key: defaultdict(set) for key in ("device_id", "area_id", "floor_id", "label_id")
    }
    for entity in entities:
        where = (
            ("device_id", entity.device_id),
            ("area_id", entity.area_id),
            ("floor_id", floors.get(entity.area_id or "")),
            *(("label_id", label) for label in entity.labels),
        )
        for key, place in where:
            if place:
                members[key][place].add(entity.id)
    return EntityLookup(
        entities=frozenset(entity.id for entity in entities),
        by_registry_id={entry["id"]: entry["entity_id"] for entry in entries if "id" in entry},
        members={
            key: {place: frozenset(ids) for place, ids in found.items()} for key, found in members.items()
        },
        scripts={
            f"script.{entry.get('unique_id')}": entry["entity_id"]
            for entry in entries
            if entry.get("platform") == "script"
        },
    )


def read_services(raw: Json, translations: dict[str, str]) -> dict[str, Service]:
    """Return the services by name. Most descriptions are in Home Assistant's translations."""
    services = {}
    for domain, items in raw.items():
        for name, item in items.items():
            words = _Words(
                f"component.{domain}.services.{name}",
                translations,
                item.get("description_placeholders") or {},
            )
            services[f"{domain}.{name}"] = Service(
                name=f"{domain}.{name}",
                description=words.describe(item),
                fields=dict(_read_fields(item.get("fields") or {}, words)),
                target=item.get("target"),
                response=_read_response(item.get("response")),
            )
    return services


def _read_response(raw: Json | None) -> Literal["none", "optional", "only"]:
    if raw is None:
        return "none"
    return "optional" if raw.get("optional") else "only"


@dataclass(frozen=True, slots=True)
class _Words:
    """The descriptions of a service and its fields. `placeholders` are values for names in braces."""

    key: str
    translations: dict[str, str]
    placeholders: dict[str, str]

    def describe(self, item: Json, part: str = "") -> str:
        texts = (
            item.get("description"),
            self.translations.get(f"{self.key}{part}.description"),
            item.get("name"),
            self.translations.get(f"{self.key}{part}.name"),
        )
        description = str(next((text for text in texts if text), ""))
        for name, value in self.placeholders.items():
            description = description.replace(f"{{{name}}}", str(value))
        return description


def _read_fields(raw: Json, words: _Words) -> Iterator[tuple[str, ServiceField]]:
    """Yield names and fields. Some fields are nested in sections, which only serve the layout of a form."""
    for name, item in raw.items():
        if isinstance(item.get("fields"), dict):
            yield from _read_fields(item["fields"], words)
        else:
            description = words.describe(item, f".fields.{name}")
            yield name, ServiceField(description, bool(item.get("required")), item.get("selector") or {})


def read_history(raw: list[Json], start: datetime) -> list[HistoryPoint]:
    """Convert the history of one entity. Points that differ only in their attributes are left out."""
    points: list[HistoryPoint] = []
    for item in raw:
        if not points or points[-1].state != item["s"]:
            points.append(
                HistoryPoint(max(start, _read_time(item["lc"] if "lc" in item else item["lu"])), item["s"])
            )
    return points


def read_statistics(raw: Iterable[Json]) -> list[HourlyStatistics]:
    """Convert the long-term statistics of one entity. Their times are in milliseconds."""
    names = ("mean", "min", "max", "sum", "change")
    return [
        HourlyStatistics(
            _read_time(item["start"] / 1000),
            **{name: float(item[name]) for name in names if item.get(name) is not None},
        )
        for item in raw
    ]


def read_logbook(raw: Iterable[Json], states: dict[str, State], users: dict[str, str]) -> list[LogbookEntry]:
    """Convert the logbook, oldest entry first. Names replace the ids of entities and users."""

    def name(entity_id: str) -> str:
        state = states.get(entity_id)
        return str(state.attributes.get("friendly_name") or entity_id) if state else entity_id

    def find_user(item: Json) -> str:
        return users.get(item.get("context_user_id") or "", "")

    def cause(item: Json) -> str:
        by = f" by {user}" if (user := find_user(item)) else ""
        if item.get("context_name"):
            parts = (item["context_name"], item.get("context_message"), by.strip())
            return ", ".join(filter(None, parts))
        if item.get("context_service"):
            return f"{item.get('context_domain')}.{item['context_service']}{by}"
        if item.get("context_entity_id"):
            state = item.get("context_state")
            return name(item["context_entity_id"]) + (f" changed to {state}" if state else "") + by
        return by.strip()

    return [
        LogbookEntry(
            at=_read_time(item["when"]),
            name=str(item.get("name") or name(item.get("entity_id") or "")),
            message=str(item.get("message") or _describe_state(item, states)),
            entity_id=item.get("entity_id"),
            cause=cause(item),
            cause_id=item.get("context_entity_id"),
            user=find_user(item),
        )
        for item in sorted(raw, key=lambda item: float(item["when"]))
    ]


def _describe_state(item: Json, states: dict[str, State]) -> str:
    """Return a message such as "turned on", or "changed to open" for a window."""
    entity_id, state = str(item.get("entity_id")), str(item.get("state"))
    known = states.get(entity_id)
    device_class = str(known.attributes.get("device_class") or "") if known else ""
    named = name_on_off(state, entity_id.partition(".")[0], device_class)
    return f"turned {named}" if named in ("on", "off") else f"changed to {named}"


def read_log(raw: Iterable[Json]) -> list[LogRecord]:
    """Convert the system log, oldest record first. Records below "warning" are left out."""
    return [
        LogRecord(
            at=_read_time(item["timestamp"]),
            first_at=_read_time(item.get("first_occurred") or item["timestamp"]),
            level=_LEVELS[item["level"]],
            source=str(item.get("name") or ":".join(map(str, item.get("source") or ()))),
            message=_read_message(item),
            count=int(item.get("count") or 1),
        )
        for item in sorted(raw, key=lambda item: float(item["timestamp"]))
        if item.get("level") in _LEVELS
    ]


def _read_message(item: Json) -> str:
    """Return the message of a log record, with the last line of its traceback, which names the error."""
    message = item.get("message") or ""
    lines = [message] if isinstance(message, str) else list(map(str, message))
    last = str(item.get("exception") or "").strip().rpartition("\n")[2].strip()
    if last and not any(last in line for line in lines):
        lines.append(last)
    return "\n".join(lines)


def _read_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
