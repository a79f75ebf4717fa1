"""Home Assistant's JSON, translated into the values of the home port."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sash.home.remote.dependants import Places, find_dependants
from sash.home.remote.exposure import is_exposed
from sash.ports.home import (
    Area,
    Device,
    Entity,
    Floor,
    Layout,
    LogbookEntry,
    LogRecord,
    Point,
    Service,
    ServiceField,
    State,
    StateChanged,
)

Json = dict[str, Any]

_LEVELS: dict[str, Literal["warning", "error", "critical"]] = {
    "WARNING": "warning",
    "ERROR": "error",
    "CRITICAL": "critical",
    "FATAL": "critical",
}
# Attributes that belong to the layout: an entity's name, and the members of a group or a scene.
_LAYOUT_ATTRIBUTES = ("friendly_name", "entity_id")


@dataclass(frozen=True, slots=True)
class Registries:
    """All that Home Assistant says of what a house is made of; `exposed` is None if it does not say."""

    config: Json
    entities: list[Json]
    devices: list[Json]
    areas: list[Json]
    floors: list[Json]
    labels: list[Json]
    exposed: Collection[str] | None
    configs: Json


def read_state(raw: Json) -> State:
    """Read a state as the REST API writes it."""
    return State(
        entity_id=raw["entity_id"],
        state=raw["state"],
        attributes=raw["attributes"],
        changed_at=datetime.fromisoformat(raw["last_changed"]),
        updated_at=datetime.fromisoformat(raw["last_updated"]),
    )


def apply_changes(states: dict[str, State], event: Json) -> Iterator[tuple[State | None, StateChanged]]:
    """Bring states up to date by an event of `subscribe_entities`; say what changed, and what was before.

    Entities are added ("a"), changed ("c") by what is new ("+") and gone ("-") in them, or removed ("r").
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
    """The times are equal unless there are two."""
    changed_at = _time(raw["lc"])
    updated_at = _time(raw["lu"]) if "lu" in raw else changed_at
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
        changed_at=_time(new["lc"]) if "lc" in new else old.changed_at,
        updated_at=old.updated_at if updated is None else _time(updated),
    )


def changes_layout(old: State | None, new: State | None) -> bool:
    """Say whether a change of state is one of the layout as well."""
    if old is None or new is None:
        return True
    return any(old.attributes.get(name) != new.attributes.get(name) for name in _LAYOUT_ATTRIBUTES)


def read_layout(raw: Registries, states: dict[str, State]) -> Layout:
    """Put the registries together; what has only a state is an entity too."""
    devices = _read_devices(raw.devices)
    entries = {entry["entity_id"]: entry for entry in raw.entities}
    ids = [entity_id for entity_id, entry in entries.items() if not entry.get("disabled_by")]
    ids += [entity_id for entity_id in states if entity_id not in entries]
    entities = tuple(
        _read_entity(entity_id, entries.get(entity_id, {}), states.get(entity_id), devices, raw.exposed)
        for entity_id in ids
    )
    areas = tuple(
        Area(area["area_id"], area["name"], area.get("floor_id"), _names(area)) for area in raw.areas
    )
    places = _find_places(entities, areas, raw.entities)
    return Layout(
        name=str(raw.config.get("location_name") or "Home"),
        entities=entities,
        devices=tuple(devices.values()),
        areas=areas,
        floors=tuple(Floor(floor["floor_id"], floor["name"], _names(floor)) for floor in raw.floors),
        labels={label["label_id"]: label["name"] for label in raw.labels},
        dependants=tuple(find_dependants(entities, states, raw.configs, places)),
        language=str(raw.config.get("language") or "en"),
    )


def _read_devices(raw: list[Json]) -> dict[str, Device]:
    """A part of a device is where the device is, unless it has an area of its own."""
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


def _read_entity(
    entity_id: str,
    entry: Json,
    state: State | None,
    devices: dict[str, Device],
    exposed: Collection[str] | None,
) -> Entity:
    device = devices.get(entry.get("device_id") or "")
    attributes = state.attributes if state else {}
    device_class = entry.get("device_class") or attributes.get("device_class") or ""
    return Entity(
        id=entity_id,
        name=str(attributes.get("friendly_name") or _registered_name(entity_id, entry, device)),
        area_id=entry.get("area_id") or (device.area_id if device else None),
        device_id=entry.get("device_id"),
        aliases=_names(entry),
        labels=tuple(sorted(entry.get("labels") or ())),
        exposed=is_exposed(entity_id, entry, str(device_class), exposed),
        platform=str(entry.get("platform") or ""),
    )


def _registered_name(entity_id: str, entry: Json, device: Device | None) -> str:
    """The name of an entity that has no state to say it: its own, or its device's with its part of it."""
    if entry.get("name"):
        return str(entry["name"])
    parts = [device.name if device and entry.get("has_entity_name") else "", entry.get("original_name")]
    return " ".join(part for part in parts if part) or entity_id.partition(".")[2].replace("_", " ").title()


def _names(raw: Json) -> tuple[str, ...]:
    """Return the aliases; one that is null stands for the name itself."""
    return tuple(sorted(alias for alias in raw.get("aliases") or () if alias))


def _find_places(entities: Iterable[Entity], areas: Iterable[Area], entries: list[Json]) -> Places:
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
    return Places(
        entities=frozenset(entity.id for entity in entities),
        by_registry_id={entry["id"]: entry["entity_id"] for entry in entries if "id" in entry},
        members={
            key: {place: frozenset(ids) for place, ids in found.items()} for key, found in members.items()
        },
    )


def read_services(raw: Json, words: dict[str, str]) -> dict[str, Service]:
    """Read the services; `words` are Home Assistant's translations, where most descriptions are."""
    services = {}
    for domain, items in raw.items():
        for name, item in items.items():
            key = f"component.{domain}.services.{name}"
            services[f"{domain}.{name}"] = Service(
                name=f"{domain}.{name}",
                description=_describe(item, key, words),
                fields=dict(_read_fields(item.get("fields") or {}, key, words)),
                target=item.get("target"),
            )
    return services


def _read_fields(raw: Json, key: str, words: dict[str, str]) -> Iterator[tuple[str, ServiceField]]:
    """Some fields stand in a section, which is there for the eye only."""
    for name, item in raw.items():
        if isinstance(item.get("fields"), dict):
            yield from _read_fields(item["fields"], key, words)
        else:
            description = _describe(item, f"{key}.fields.{name}", words)
            yield name, ServiceField(description, bool(item.get("required")), item.get("selector") or {})


def _describe(item: Json, key: str, words: dict[str, str]) -> str:
    for text in (item.get("description"), words.get(f"{key}.description"), item.get("name")):
        if text:
            return str(text)
    return words.get(f"{key}.name", "")


def read_history(raw: list[Json], start: datetime) -> list[Point]:
    """Read what an entity's state was; what only had other attributes is no point."""
    points: list[Point] = []
    for item in raw:
        if not points or points[-1].state != item["s"]:
            points.append(Point(max(start, _time(item["lc"] if "lc" in item else item["lu"])), item["s"]))
    return points


def read_logbook(raw: Iterable[Json], states: dict[str, State], users: dict[str, str]) -> list[LogbookEntry]:
    """Read the logbook, which names entities by their id only and users by a number."""

    def name(entity_id: str) -> str:
        state = states.get(entity_id)
        return str(state.attributes.get("friendly_name") or entity_id) if state else entity_id

    def cause(item: Json) -> str:
        if item.get("context_name"):
            return ", ".join(filter(None, (item["context_name"], item.get("context_message"))))
        user = users.get(item.get("context_user_id") or "", "")
        by = f" by {user}" if user else ""
        if item.get("context_service"):
            return f"{item.get('context_domain')}.{item['context_service']}{by}"
        if item.get("context_entity_id"):
            state = item.get("context_state")
            return name(item["context_entity_id"]) + (f" changed to {state}" if state else "") + by
        return by.strip()

    return [
        LogbookEntry(
            at=_time(item["when"]),
            name=str(item.get("name") or name(item.get("entity_id") or "")),
            message=str(item.get("message") or _in_words(str(item.get("state")))),
            entity_id=item.get("entity_id"),
            cause=cause(item),
            cause_id=item.get("context_entity_id"),
        )
        for item in sorted(raw, key=lambda item: float(item["when"]))
    ]


def _in_words(state: str) -> str:
    return f"turned {state}" if state in ("on", "off") else f"changed to {state}"


def read_log(raw: Iterable[Json]) -> list[LogRecord]:
    """Read the lines of the system log, oldest first; one stands for up to five wordings of the same."""
    return [
        LogRecord(
            at=_time(item["timestamp"]),
            first_at=_time(item.get("first_occurred") or item["timestamp"]),
            level=_LEVELS[item["level"]],
            source=str(item.get("name") or ":".join(map(str, item.get("source") or ()))),
            message=_read_message(item),
            count=int(item.get("count") or 1),
        )
        for item in sorted(raw, key=lambda item: float(item["timestamp"]))
        if item.get("level") in _LEVELS
    ]


def _read_message(item: Json) -> str:
    """The last line of a traceback says what went wrong."""
    message = item.get("message") or ""
    lines = [message] if isinstance(message, str) else list(map(str, message))
    last = str(item.get("exception") or "").strip().rpartition("\n")[2].strip()
    if last and not any(last in line for line in lines):
        lines.append(last)
    return "\n".join(lines)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
