"""Diagnoses an entity: its status, likely causes with evidence, the impact, and recommendations."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from sash.errors import HomeError
from sash.home.history import extract_numbers, format_duration, parse_number
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.home.state_text import read_state_text
from sash.ports.home import NO_STATE, UNAVAILABLE, UNKNOWN, Device, Entity, HistoryPoint, LogRecord, State

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
EMPTY_PERCENT = 10.0
LOW_PERCENT = 20.0
# A light or switch flickers if it changes this often, each time within `FLICKER_GAP` of the change before.
MIN_FLICKERS = 6
FLICKERING_DOMAINS = frozenset({"light", "switch"})
FLICKER_GAP = timedelta(seconds=30)
# A voltage below this part of the median is a dip. A change within `DIP_WINDOW` is related to it.
DIP_RATIO = 0.93
DIP_WINDOW = timedelta(seconds=20)
MIN_DROPOUTS = 3
MAX_VOLTAGE_SENSORS = 5
MAX_EVIDENCE = 5
MAX_MESSAGE_CHARS = 200
# Shorter names are too common to find an entity in the log.
MIN_NAME_LENGTH = 7
# The prefix of loggers of integrations and automations.
COMPONENT_PREFIX = "homeassistant.components."
# A sensor is stuck if it has not changed for this multiple of its usual interval, and for this time.
STALE_FACTOR = 20
STALE_AFTER = timedelta(hours=12)

_NOT_FOUND_PATTERN = re.compile(r"(?:Action|Service|Entity) ([a-z_]+\.[a-z0-9_]+) (?:was )?not found", re.I)

Status = Literal["healthy", "unavailable", "unknown", "warning"]
Confidence = Literal["high", "medium", "low"]
CauseKind = Literal[
    "bridge_down", "unreachable", "unavailable", "battery_empty", "battery_low", "voltage_dips", "flickering",
    "dropouts", "stuck", "no_value", "switched_off", "log",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause of a problem, with evidence and a remedy."""

    kind: CauseKind
    description: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    remedy: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """All facts that the checks use.

    `histories` also holds the histories of related batteries and voltage sensors, by entity id.
    """

    index: HomeIndex
    entity: Entity
    state: State | None
    device: Device | None
    points: Sequence[HistoryPoint]
    histories: dict[str, list[HistoryPoint]]
    log: Sequence[LogRecord]
    now: datetime
    zone: tzinfo | None

    @property
    def siblings(self) -> list[Entity]:
        """The other entities of the same device; empty without a device."""
        if self.device is None:
            return []
        return [e for e in self.index.list_device_entities(self.device.id) if e.id != self.entity.id]

    @property
    def quick_changes(self) -> list[datetime]:
        """The times of changes that followed the change before too quickly to be made by a person."""
        changes = [p.at for n, p in enumerate(self.points) if n and p.state != self.points[n - 1].state]
        return [at for n, at in enumerate(changes) if n and at - changes[n - 1] <= FLICKER_GAP]

    @property
    def is_unavailable(self) -> bool:
        return self.state is None or self.state.state == UNAVAILABLE


async def diagnose_entity(
    live_home: LiveHome, id_or_name: str, now: datetime, zone: tzinfo | None
) -> dict[str, Any]:
    """Return the diagnosis of an entity as JSON values. Raise `EntityNotFound` if there is no such entity."""
    facts = await _collect_facts(live_home, id_or_name, now, zone)
    causes = _list_causes(facts)
    entity, state, index = facts.entity, facts.state, facts.index
    area = index.get_area(entity)
    return {
        "entity_id": entity.id,
        "name": entity.name,
        "status": _find_status(facts, causes),
        "current_state": read_state_text(index, entity.id).text or UNKNOWN,
        "last_changed": state.changed_at.astimezone(zone).isoformat(timespec="seconds") if state else None,
        "device": _describe_device(facts),
        "area": area.name if area else None,
        "root_causes": [
            {k: v for k, v in asdict(cause).items() if k not in ("kind", "remedy")} for cause in causes
        ],
        "impact": _find_impact(facts),
        "recommendations": list(dict.fromkeys(cause.remedy for cause in causes if cause.remedy)),
    }


async def find_causes(live_home: LiveHome, entity_id: str, now: datetime, zone: tzinfo | None) -> list[Cause]:
    """Return the likely causes of the problems of an entity, most likely first; empty if it has none."""
    return _list_causes(await _collect_facts(live_home, entity_id, now, zone))


def _list_causes(facts: EntityFacts) -> list[Cause]:
    causes = [cause for check in _CHECKS for cause in check(facts)]
    return sorted(causes, key=lambda cause: ("high", "medium", "low").index(cause.confidence))


async def _collect_facts(
    live_home: LiveHome, id_or_name: str, now: datetime, zone: tzinfo | None
) -> EntityFacts:
    index = live_home.index
    entity = index.find(id_or_name)
    device = index.get_device(entity)
    siblings = index.list_device_entities(device.id) if device else []
    batteries = [e.id for e in siblings if index.get_device_class(e.id) == "battery"]
    voltage_sensors = _find_voltage_sensors(index, entity)
    histories = await live_home.home.get_history([entity.id, *voltage_sensors], now - DAY, now)
    if batteries:
        histories |= await live_home.home.get_history(batteries, now - WEEK, now)
    try:
        log = await live_home.home.get_log()
    except HomeError:
        log = []
    return EntityFacts(
        index,
        entity,
        index.states.get(entity.id),
        device,
        histories.get(entity.id, []),
        histories,
        [record for record in log if record.at >= now - DAY],
        now,
        zone,
    )


def _find_voltage_sensors(index: HomeIndex, entity: Entity) -> list[str]:
    """Return the ids of some mains voltage sensors. Sensors in the area of the entity come first."""
    found = [
        e
        for e in index.entities.values()
        if e.domain == "sensor" and index.get_device_class(e.id) == "voltage"
    ]
    found.sort(key=lambda sensor: sensor.area_id != entity.area_id)
    return [sensor.id for sensor in found[:MAX_VOLTAGE_SENSORS]]


def _check_availability(facts: EntityFacts) -> Iterator[Cause]:
    """Yield the cause if the entity is unavailable: its bridge, its device, or only the entity."""
    if not facts.is_unavailable:
        return
    index, device = facts.index, facts.device
    since = (
        f"no state since {_format_time(facts, facts.state.changed_at)}" if facts.state else "no state at all"
    )
    bridge = index.get_bridge(device) if device else None
    behind = [e for e in index.list_entities_behind(bridge.id) if e.id != facts.entity.id] if bridge else []
    if bridge and len(behind) > 1 and all(index.get_state(e.id) == UNAVAILABLE for e in behind):
        evidence = (since, f"all {len(behind) + 1} entities behind {bridge.name} are unavailable")
        remedy = f"Check power and network of {bridge.name}, and restart it"
        yield Cause("bridge_down", f"its bridge, {bridge.name}, is down", "high", evidence, remedy=remedy)
    elif device and facts.siblings and all(index.get_state(e.id) == UNAVAILABLE for e in facts.siblings):
        evidence = (since, f"all entities of {device.name} are unavailable")
        yield Cause(
            "unreachable",
            f"the device {device.name} cannot be reached",
            "medium",
            evidence,
            remedy=f"Check the power or battery of {device.name} and whether it is in reach of its network",
        )
    else:
        yield Cause(
            "unavailable",
            "it is not available",
            "low",
            (since,),
            remedy="Check the device and the integration it comes from",
        )


def _check_battery(facts: EntityFacts) -> Iterator[Cause]:
    for sibling in (facts.entity, *facts.siblings):
        if facts.index.get_device_class(sibling.id) != "battery" or sibling.domain != "sensor":
            continue
        times, values = extract_numbers(facts.histories.get(sibling.id, ()))
        current = parse_number(facts.index.get_state(sibling.id))
        level = values[-1] if current is None and values else current
        if level is None or level > LOW_PERCENT:
            continue
        evidence = [f"{sibling.name} was {level:g} % last"]
        if len(values) > 1 and values[0] > level:
            evidence.append(f"it fell from {values[0]:g} % since {_format_time(facts, times[0])}")
        name = facts.device.name if facts.device else facts.entity.name
        if level <= EMPTY_PERCENT and facts.is_unavailable:
            remedy = f"Replace the battery of {name}"
            yield Cause("battery_empty", "its battery is empty", "high", tuple(evidence), remedy=remedy)
        else:
            remedy = f"Replace the battery of {name} soon"
            yield Cause("battery_low", "its battery is low", "medium", tuple(evidence), remedy=remedy)


def _check_flicker(facts: EntityFacts) -> Iterator[Cause]:
    """Yield a cause if the entity changes rapidly. It is the mains voltage if that dips at the same times."""
    if facts.entity.domain not in FLICKERING_DOMAINS:
        return
    quick = facts.quick_changes
    if len(quick) < MIN_FLICKERS:
        return
    flickers = (
        f"{len(quick)} changes within seconds in the last day, the last at {_format_time(facts, quick[-1])}"
    )
    for sensor_id, points in facts.histories.items():
        if facts.index.get_device_class(sensor_id) != "voltage":
            continue
        times, values = extract_numbers(points)
        usual = median(values) if values else 0.0
        dips = [(at, v) for at, v in zip(times, values, strict=True) if v < usual * DIP_RATIO]
        together = [dip for dip in dips if any(abs(dip[0] - at) <= DIP_WINDOW for at in quick)]
        if together and len(together) * 2 >= len(dips):
            lowest = min(value for _, value in together)
            name = facts.index.entities[sensor_id].name
            yield Cause(
                "voltage_dips",
                "it flickers when the mains voltage dips",
                "high",
                (flickers, f"{name} fell to {lowest:g} V {len(together)} times at the same moments"),
                remedy="Have the circuit and its connections checked by an electrician: a loose contact or a "
                "large consumer on the same circuit makes the voltage dip",
            )
            return
    remedy = "Check the lamp, its socket and its connections, and what else switches it"
    yield Cause("flickering", "it flickers", "medium", (flickers,), remedy=remedy)


def _check_dropouts(facts: EntityFacts) -> Iterator[Cause]:
    """Yield a cause if the entity lost its connection several times and has it again."""
    gone = [p for n, p in enumerate(facts.points) if n and p.state == UNAVAILABLE]
    if len(gone) < MIN_DROPOUTS or facts.is_unavailable or len(facts.quick_changes) >= MIN_FLICKERS:
        return
    evidence = (
        f"unavailable {len(gone)} times in the last day, the last at {_format_time(facts, gone[-1].at)}",
    )
    remedy = "Move it closer to its bridge or router, or add a repeater between them"
    yield Cause("dropouts", "its connection is not reliable", "medium", evidence, remedy=remedy)


def _check_staleness(facts: EntityFacts) -> Iterator[Cause]:
    """Yield a cause if a sensor has stopped sending new values."""
    times = [point.at for point in facts.points]
    if facts.entity.domain != "sensor" or facts.state is None or facts.is_unavailable or len(times) < 4:
        return
    gap = median((later - earlier).total_seconds() for earlier, later in pairwise(times))
    silent = facts.now - facts.state.updated_at
    if silent > max(STALE_AFTER, timedelta(seconds=gap) * STALE_FACTOR):
        usual = format_duration(timedelta(seconds=gap))
        evidence = (f"it used to change every {usual}, and has not for {format_duration(silent)}",)
        yield Cause(
            "stuck", "it is stuck", "medium", evidence, remedy="Restart the device; its battery may be low"
        )


def _check_missing_value(facts: EntityFacts) -> Iterator[Cause]:
    if (
        facts.state is not None
        and facts.state.state == UNKNOWN
        and facts.entity.domain not in _VALUELESS_DOMAINS
    ):
        remedy = "Wait for its first value, or reload the integration"
        yield Cause("no_value", "it has no value yet", "low", (), remedy=remedy)


def _check_switched_off(facts: EntityFacts) -> Iterator[Cause]:
    if facts.entity.domain == "automation" and facts.index.get_state(facts.entity.id) == "off":
        yield Cause(
            "switched_off", "the automation is switched off", "high", (), remedy="Switch the automation on"
        )


def _check_log(facts: EntityFacts) -> Iterator[Cause]:
    """Yield a cause if the system log has records that name the entity."""
    records = [record for record in facts.log if _mentions(record, facts)]
    if not records:
        return
    worst: Confidence = "medium" if any(record.level != "warning" for record in records) else "low"
    if facts.entity.domain == "automation" and worst == "medium":
        worst = "high"
    shown = sorted(records, key=lambda record: record.at)[-MAX_EVIDENCE:]
    evidence = tuple(
        f"{record.level}, {record.count} times, last {_format_time(facts, record.at)}: "
        + facts.index.redact(record.message)[:MAX_MESSAGE_CHARS]
        for record in shown
    )
    missing = _NOT_FOUND_PATTERN.search(" ".join(facts.index.redact(record.message) for record in shown))
    remedy = "Fix the problem that the log reports" if worst != "low" else ""
    if missing:
        remedy = f"It uses {missing[1]}, which no longer exists: replace or remove it"
    yield Cause("log", "the house's log reports problems with it", worst, evidence, remedy=remedy)


def _mentions(record: LogRecord, facts: EntityFacts) -> bool:
    """Return whether a log record names the entity or its device."""
    names = [facts.entity.id, facts.entity.name, facts.device.name if facts.device else ""]
    distinctive = [re.escape(name) for name in names if "." in name or len(name) >= MIN_NAME_LENGTH]
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(distinctive)})(?!\w)", re.I)
    return pattern.search(f"{record.source.removeprefix(COMPONENT_PREFIX)} {record.message}") is not None


# Entities of these domains have no value until their first use.
_VALUELESS_DOMAINS = frozenset({"button", "scene", "input_button", "event", "script"})

_CHECKS = (
    _check_battery,
    _check_availability,
    _check_flicker,
    _check_dropouts,
    _check_staleness,
    _check_missing_value,
    _check_switched_off,
    _check_log,
)


def _find_status(facts: EntityFacts, causes: list[Cause]) -> Status:
    if facts.is_unavailable:
        return "unavailable"
    if facts.index.get_state(facts.entity.id) == UNKNOWN and facts.entity.domain not in _VALUELESS_DOMAINS:
        return "unknown"
    return "warning" if any(cause.confidence != "low" for cause in causes) else "healthy"


def _describe_device(facts: EntityFacts) -> dict[str, Any] | None:
    device = facts.device
    if device is None:
        return None
    bridge = facts.index.get_bridge(device)
    about = {"name": device.name, "manufacturer": device.manufacturer, "model": device.model}
    return about | ({"via": bridge.name} if bridge else {})


def _find_impact(facts: EntityFacts) -> dict[str, Any]:
    """Return the other entities and automations that a problem of this entity affects, as JSON values."""
    index = facts.index
    dependents = index.list_dependents(facts.entity.id)
    affected = [
        d.entity_id for d in dependents if d.kind in ("group", "template") and d.entity_id in index.entities
    ]
    if facts.is_unavailable:
        affected += [e.id for e in facts.siblings if index.get_state(e.id) in NO_STATE]
    automations = [
        {"name": d.name, "kind": d.kind}
        | ({"entity_id": d.entity_id} if d.entity_id in index.entities else {})
        for d in dependents
        if d.kind in ("automation", "script", "scene")
    ]
    return {"affected_entities": list(dict.fromkeys(affected)), "affected_automations": automations}


def _format_time(facts: EntityFacts, at: datetime) -> str:
    is_recent = facts.now - at < DAY
    return at.astimezone(facts.zone).strftime("%a %H:%M" if is_recent else "%a %d %b %H:%M")
