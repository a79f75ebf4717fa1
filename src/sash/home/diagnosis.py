"""What is wrong with an entity, why, what that affects, and what to do about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from sash.errors import HomeError
from sash.home.history import as_number, in_words, numbers
from sash.home.index import Index
from sash.home.live import LiveHome
from sash.ports.home import NO_STATE, UNAVAILABLE, UNKNOWN, Device, Entity, LogRecord, Point, State

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
EMPTY_PERCENT = 10.0
LOW_PERCENT = 20.0
# So many changes, each so soon after the last, are no use but flicker.
FLICKERS = 6
FLICKERING = frozenset({"light", "switch"})
FLICKER_GAP = timedelta(seconds=30)
# A dip is a value so far below the usual one; it belongs to what happens around it.
DIP = 0.93
TOGETHER = timedelta(seconds=20)
DROPOUTS = 3
MAX_VOLTAGES = 5
MAX_EVIDENCE = 5
LONGEST_MESSAGE = 200
SHORTEST_NAME = 6
# Before the name of an integration, or the id of an automation, in the log.
COMPONENTS = "homeassistant.components."
# A sensor that says something so often, and then nothing for so much longer, is stuck.
STALE_FACTOR = 20
STALE_AFTER = timedelta(hours=12)

_missing = re.compile(r"(?:Action|Service|Entity) ([a-z_]+\.[a-z0-9_]+) (?:was )?not found", re.I)

Status = Literal["healthy", "unavailable", "unknown", "warning"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why something is wrong, why that is believed, and what can be done."""

    description: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    remedy: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Patient:
    """All that is known about one entity."""

    index: Index
    entity: Entity
    state: State | None
    device: Device | None
    points: Sequence[Point]
    others: dict[str, list[Point]]
    log: Sequence[LogRecord]
    now: datetime
    zone: tzinfo | None

    @property
    def siblings(self) -> list[Entity]:
        """The other entities of the same device."""
        if self.device is None:
            return []
        return [e for e in self.index.of_device(self.device.id) if e.id != self.entity.id]

    @property
    def quick_changes(self) -> list[datetime]:
        """When it has changed faster than anybody would switch it."""
        changes = [p.at for n, p in enumerate(self.points) if n and p.state != self.points[n - 1].state]
        return [at for n, at in enumerate(changes) if n and at - changes[n - 1] <= FLICKER_GAP]

    @property
    def is_away(self) -> bool:
        return self.state is None or self.state.state == UNAVAILABLE


async def diagnose(known: LiveHome, entity_id: str, now: datetime, zone: tzinfo | None) -> dict[str, Any]:
    """Examine an entity."""
    patient = await _examine(known, entity_id, now, zone)
    causes = [cause for examine in _EXAMINATIONS for cause in examine(patient)]
    causes.sort(key=lambda cause: ("high", "medium", "low").index(cause.confidence))
    entity, state, index = patient.entity, patient.state, patient.index
    area = index.area(entity)
    return {
        "entity_id": entity.id,
        "name": entity.name,
        "status": _status(patient, causes),
        "current_state": index.state(entity.id),
        "last_changed": state.changed_at.astimezone(zone).isoformat(timespec="seconds") if state else None,
        "device": _device(patient),
        "area": area.name if area else None,
        "root_causes": [{k: v for k, v in asdict(cause).items() if k != "remedy"} for cause in causes],
        "impact": _impact(patient),
        "recommendations": list(dict.fromkeys(cause.remedy for cause in causes if cause.remedy)),
    }


async def _examine(known: LiveHome, entity_id: str, now: datetime, zone: tzinfo | None) -> Patient:
    index = known.index
    entity = index.find(entity_id)
    device = index.device(entity)
    siblings = index.of_device(device.id) if device else []
    batteries = [e.id for e in siblings if _kind(index, e.id) == "battery"]
    history = await known.home.history([entity.id, *_voltages(index, entity)], now - DAY, now)
    if batteries:
        history |= await known.home.history(batteries, now - WEEK, now)
    try:
        log = await known.home.log()
    except HomeError:
        log = []
    return Patient(
        index,
        entity,
        index.states.get(entity.id),
        device,
        history.get(entity.id, []),
        history,
        [record for record in log if record.at >= now - DAY],
        now,
        zone,
    )


def _voltages(index: Index, entity: Entity) -> list[str]:
    """Return the sensors of the mains voltage, those in the same area first."""
    found = [e for e in index.entities.values() if e.domain == "sensor" and _kind(index, e.id) == "voltage"]
    found.sort(key=lambda sensor: sensor.area_id != entity.area_id)
    return [sensor.id for sensor in found[:MAX_VOLTAGES]]


def _kind(index: Index, entity_id: str) -> str:
    state = index.states.get(entity_id)
    return str(state.attributes.get("device_class") or "") if state else ""


def _away(patient: Patient) -> Iterator[Cause]:
    """It is not there: the bridge, the device, or the entity alone."""
    if not patient.is_away:
        return
    index, device = patient.index, patient.device
    since = f"no state since {_at(patient, patient.state.changed_at)}" if patient.state else "no state at all"
    bridge = index.bridge(device) if device else None
    behind = [e for e in index.behind(bridge.id) if e.id != patient.entity.id] if bridge else []
    if bridge and len(behind) > 1 and all(index.state(e.id) == UNAVAILABLE for e in behind):
        evidence = (since, f"all {len(behind) + 1} entities behind {bridge.name} are unavailable")
        remedy = f"Check power and network of {bridge.name}, and restart it"
        yield Cause(f"{bridge.name}, by which it is reached, is down", "high", evidence, remedy=remedy)
    elif device and patient.siblings and all(index.state(e.id) == UNAVAILABLE for e in patient.siblings):
        evidence = (since, f"all entities of {device.name} are unavailable")
        yield Cause(
            f"the device {device.name} cannot be reached",
            "medium",
            evidence,
            remedy=f"Check the power or battery of {device.name} and whether it is in reach of its network",
        )
    else:
        yield Cause(
            "it is not available",
            "low",
            (since,),
            remedy="Check the device and the integration it comes from",
        )


def _battery(patient: Patient) -> Iterator[Cause]:
    """Its battery is empty, or soon will be."""
    for sibling in (patient.entity, *patient.siblings):
        if _kind(patient.index, sibling.id) != "battery" or sibling.domain != "sensor":
            continue
        times, values = numbers(patient.others.get(sibling.id, ()))
        current = as_number(patient.index.state(sibling.id))
        level = values[-1] if current is None and values else current
        if level is None or level > LOW_PERCENT:
            continue
        evidence = [f"{sibling.name} was {level:g} % last"]
        if len(values) > 1 and values[0] > level:
            evidence.append(f"it fell from {values[0]:g} % since {_at(patient, times[0])}")
        name = patient.device.name if patient.device else patient.entity.name
        if level <= EMPTY_PERCENT and patient.is_away:
            remedy = f"Replace the battery of {name}"
            yield Cause("its battery is empty", "high", tuple(evidence), remedy=remedy)
        else:
            remedy = f"Replace the battery of {name} soon"
            yield Cause("its battery is low", "medium", tuple(evidence), remedy=remedy)


def _flicker(patient: Patient) -> Iterator[Cause]:
    """It changes faster than anybody would switch it; if the voltage dips then, that is why."""
    if patient.entity.domain not in FLICKERING:
        return
    quick = patient.quick_changes
    if len(quick) < FLICKERS:
        return
    flickers = f"{len(quick)} changes within seconds in the last day, the last at {_at(patient, quick[-1])}"
    for sensor_id, points in patient.others.items():
        if _kind(patient.index, sensor_id) != "voltage":
            continue
        times, values = numbers(points)
        usual = median(values) if values else 0.0
        dips = [(at, v) for at, v in zip(times, values, strict=True) if v < usual * DIP]
        together = [dip for dip in dips if any(abs(dip[0] - at) <= TOGETHER for at in quick)]
        if together and len(together) * 2 >= len(dips):
            lowest = min(value for _, value in together)
            name = patient.index.entities[sensor_id].name
            yield Cause(
                "it flickers when the mains voltage dips",
                "high",
                (flickers, f"{name} fell to {lowest:g} V {len(together)} times at the same moments"),
                remedy="Have the circuit and its connections checked by an electrician: a loose contact or a "
                "large consumer on the same circuit makes the voltage dip",
            )
            return
    remedy = "Check the lamp, its socket and its connections, and what else switches it"
    yield Cause("it flickers", "medium", (flickers,), remedy=remedy)


def _dropouts(patient: Patient) -> Iterator[Cause]:
    """It comes and goes."""
    gone = [p for n, p in enumerate(patient.points) if n and p.state == UNAVAILABLE]
    if len(gone) < DROPOUTS or patient.is_away or len(patient.quick_changes) >= FLICKERS:
        return
    evidence = (f"unavailable {len(gone)} times in the last day, the last at {_at(patient, gone[-1].at)}",)
    remedy = "Move it closer to its bridge or router, or add a repeater between them"
    yield Cause("its connection is not reliable", "medium", evidence, remedy=remedy)


def _stale(patient: Patient) -> Iterator[Cause]:
    """A sensor that used to say something again and again says nothing more."""
    times = [point.at for point in patient.points]
    if patient.entity.domain != "sensor" or patient.state is None or patient.is_away or len(times) < 4:
        return
    gap = median((later - earlier).total_seconds() for earlier, later in pairwise(times))
    silent = patient.now - patient.state.updated_at
    if silent > max(STALE_AFTER, timedelta(seconds=gap) * STALE_FACTOR):
        evidence = (
            f"it used to change every {in_words(timedelta(seconds=gap))}, and has not for {in_words(silent)}",
        )
        yield Cause("it is stuck", "medium", evidence, remedy="Restart the device; its battery may be low")


def _no_value(patient: Patient) -> Iterator[Cause]:
    if (
        patient.state is not None
        and patient.state.state == UNKNOWN
        and patient.entity.domain not in _TIMELESS
    ):
        remedy = "Wait for its first value, or reload the integration"
        yield Cause("it has no value yet", "low", (), remedy=remedy)


def _switched_off(patient: Patient) -> Iterator[Cause]:
    if patient.entity.domain == "automation" and patient.index.state(patient.entity.id) == "off":
        yield Cause("the automation is switched off", "high", (), remedy="Switch the automation on")


def _logged(patient: Patient) -> Iterator[Cause]:
    """The house's log speaks of it."""
    records = [record for record in patient.log if _speaks_of(record, patient)]
    if not records:
        return
    worst: Confidence = "medium" if any(record.level != "warning" for record in records) else "low"
    if patient.entity.domain == "automation" and worst == "medium":
        worst = "high"
    shown = sorted(records, key=lambda record: record.at)[-MAX_EVIDENCE:]
    evidence = tuple(
        f"{record.level}, {record.count} times, last {_at(patient, record.at)}: "
        + patient.index.hide(record.message)[:LONGEST_MESSAGE]
        for record in shown
    )
    missing = _missing.search(" ".join(patient.index.hide(record.message) for record in shown))
    remedy = "Correct what the log complains of" if worst != "low" else ""
    if missing:
        remedy = f"It uses {missing[1]}, which is not there any more: replace it, or take it out"
    yield Cause("the house's log has complaints about it", worst, evidence, remedy=remedy)


def _speaks_of(record: LogRecord, patient: Patient) -> bool:
    """Whether a line names the entity, or its device if that has a name that is none of many words."""
    names = [patient.entity.id, patient.entity.name, patient.device.name if patient.device else ""]
    telling = [re.escape(name) for name in names if "." in name or len(name) > SHORTEST_NAME]
    named = re.compile(rf"(?<![\w.])(?:{'|'.join(telling)})(?!\w)", re.I)
    return named.search(f"{record.source.removeprefix(COMPONENTS)} {record.message}") is not None


# What has no value until it was used for the first time.
_TIMELESS = frozenset({"button", "scene", "input_button", "event", "script"})

_EXAMINATIONS = (_battery, _away, _flicker, _dropouts, _stale, _no_value, _switched_off, _logged)


def _status(patient: Patient, causes: list[Cause]) -> Status:
    if patient.is_away:
        return "unavailable"
    if patient.index.state(patient.entity.id) == UNKNOWN and patient.entity.domain not in _TIMELESS:
        return "unknown"
    return "warning" if any(cause.confidence != "low" for cause in causes) else "healthy"


def _device(patient: Patient) -> dict[str, Any] | None:
    device = patient.device
    if device is None:
        return None
    bridge = patient.index.bridge(device)
    about = {"name": device.name, "manufacturer": device.manufacturer, "model": device.model}
    return about | ({"via": bridge.name} if bridge else {})


def _impact(patient: Patient) -> dict[str, Any]:
    """Say what else does not work while this does not."""
    index = patient.index
    dependants = index.dependants(patient.entity.id)
    affected = [
        d.entity_id for d in dependants if d.kind in ("group", "template") and d.entity_id in index.entities
    ]
    if patient.is_away:
        affected += [e.id for e in patient.siblings if index.state(e.id) in NO_STATE]
    automations = [
        {"name": d.name, "kind": d.kind}
        | ({"entity_id": d.entity_id} if d.entity_id in index.entities else {})
        for d in dependants
        if d.kind in ("automation", "script", "scene")
    ]
    return {"affected_entities": list(dict.fromkeys(affected)), "affected_automations": automations}


def _at(patient: Patient, at: datetime) -> str:
    recent = patient.now - at < DAY
    return at.astimezone(patient.zone).strftime("%a %H:%M" if recent else "%a %d %b %H:%M")
