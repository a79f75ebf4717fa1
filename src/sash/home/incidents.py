"""Finds recent incidents in the log and in the history, and which incidents are consequences of others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal

from sash.home.history import format_duration
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.ports.home import ENTITY_ID_PATTERN, UNAVAILABLE, HistoryPoint, LogRecord

Severity = Literal["warning", "error", "critical"]

TIMEFRAMES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
SEVERITIES: tuple[Severity, ...] = ("warning", "error", "critical")
# A related incident that starts within this time counts as a consequence.
CASCADE_WINDOW = timedelta(seconds=90)
MAX_INCIDENTS = 12
MAX_CASCADES = 4
MAX_CONSEQUENCES = 8
MAX_EXAMINED_ENTITIES = 50
MAX_OUTAGES = 300
MAX_RECOMMENDATIONS = 5
MAX_MESSAGE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Incident:
    """A record of the log, or an entity that was unavailable.

    `device_ids` are the devices and bridges of its entities. `began_earlier` is True if the incident began
    before the examined timeframe.
    """

    kind: Literal["log", "outage"]
    first_at: datetime
    last_at: datetime
    severity: Severity
    source: str
    message: str
    count: int
    entities: tuple[str, ...]
    device_ids: frozenset[str]
    began_earlier: bool = False

    def merge(self, later: "Incident") -> "Incident":
        """Return this incident combined with its repetition: the higher severity, and the later message."""
        worst = max(self.severity, later.severity, key=SEVERITIES.index)
        last_at, count = max(self.last_at, later.last_at), self.count + later.count
        return replace(
            later,
            first_at=self.first_at,
            last_at=last_at,
            severity=worst,
            count=count,
            began_earlier=self.began_earlier,
        )


async def analyze_incidents(
    live_home: LiveHome, timeframe: str, severity: Severity, now: datetime, zone: tzinfo | None
) -> dict[str, Any]:
    """Return the incidents of a timeframe as JSON, from a minimum severity on.

    A consequence of another incident is listed in a cascade, not as an incident of its own.
    """
    index, start = live_home.index, now - TIMEFRAMES[timeframe]
    log = [record for record in await live_home.home.get_log() if record.at >= start]
    outages = await _find_outages(live_home, index, log, start, now)
    incidents = _merge_repetitions([*(_read_record(index, record, start) for record in log), *outages])
    wanted = SEVERITIES[SEVERITIES.index(severity) :]
    incidents = [incident for incident in incidents if incident.severity in wanted]
    incidents.sort(key=lambda incident: incident.first_at)
    cascades = _find_cascades(index, incidents)
    consequences = {id(incident) for _, following in cascades for incident in following}
    independent = [incident for incident in incidents if id(incident) not in consequences]
    newest = sorted(independent, key=lambda incident: incident.last_at, reverse=True)[:MAX_INCIDENTS]
    return {
        "timeframe": timeframe,
        "severity": severity,
        "total_incidents": len(incidents),
        "incidents": [_describe(incident, zone) for incident in newest],
        "cascades": [
            {
                "at": _format_time(root.first_at, zone),
                "began_with": root.message,
                "followed_by": [incident.message for incident in following[:MAX_CONSEQUENCES]],
                "incidents": len(following) + 1,
            }
            for root, following in cascades[-MAX_CASCADES:]
        ],
        "recommendations": _build_recommendations(index, incidents, cascades),
    }


def _read_record(index: HomeIndex, record: LogRecord, start: datetime) -> Incident:
    text = f"{record.source} {record.message}"
    mentioned = [found for found in ENTITY_ID_PATTERN.findall(text) if found in index.entities]
    lower = text.lower()
    mentioned += [e.id for e in index.entities.values() if len(e.name) > 6 and e.name.lower() in lower]
    entities = tuple(dict.fromkeys(mentioned))
    bridges = [bridge.id for bridge in index.bridges if len(bridge.name) > 3 and bridge.name.lower() in lower]
    return Incident(
        "log",
        max(record.first_at, start),
        record.at,
        record.level,
        index.redact(record.source),
        index.redact(record.message)[:MAX_MESSAGE_CHARS],
        record.count,
        entities,
        _find_devices(index, entities).union(bridges),
        began_earlier=record.first_at < start,
    )


async def _find_outages(
    live_home: LiveHome, index: HomeIndex, log: Sequence[LogRecord], start: datetime, now: datetime
) -> list[Incident]:
    """Return the times in which entities were unavailable, as incidents.

    Only entities that are unavailable now, appear in the log, or are behind a bridge are examined.
    """
    text = " ".join(f"{record.source} {record.message}" for record in log)
    suspects = [key for key, state in index.states.items() if state.state == UNAVAILABLE]
    suspects += [found for found in ENTITY_ID_PATTERN.findall(text) if found in index.entities]
    suspects += [entity.id for device in index.bridges for entity in index.list_entities_behind(device.id)]
    wanted = list(dict.fromkeys(suspects))[:MAX_EXAMINED_ENTITIES]
    if not wanted:
        return []
    histories = await live_home.home.get_history(wanted, start, now)
    gaps = [(begin, end, key) for key, points in histories.items() for begin, end in _list_gaps(points)]
    latest = sorted(gaps, key=lambda gap: gap[0])[-MAX_OUTAGES:]
    return [_build_outage(index, key, begin, end, start, now) for begin, end, key in latest]


def _build_outage(
    index: HomeIndex, key: str, begin: datetime, end: datetime | None, start: datetime, now: datetime
) -> Incident:
    entity, state = index.entities[key], index.states.get(key)
    began_earlier = begin <= start
    if end is not None:
        words = f"was unavailable for {format_duration(end - begin)}"
    elif began_earlier and state is not None:
        words = f"has been unavailable for {format_duration(now - min(begin, state.changed_at))}"
    else:
        words = f"has been unavailable for {format_duration(now - begin)}"
    return Incident(
        "outage",
        begin,
        end or now,
        "warning" if end else "error",
        entity.platform or entity.domain,
        f"{entity.name} {words}",
        1,
        (key,),
        _find_devices(index, (key,)),
        began_earlier,
    )


def _list_gaps(points: Sequence[HistoryPoint]) -> Iterable[tuple[datetime, datetime | None]]:
    """Yield the start and end of each unavailable time. The end is None if it still lasts."""
    begin = None
    for point in points:
        if point.state == UNAVAILABLE and begin is None:
            begin = point.at
        elif point.state != UNAVAILABLE and begin is not None:
            yield begin, point.at
            begin = None
    if begin is not None:
        yield begin, None


def _merge_repetitions(incidents: Iterable[Incident]) -> list[Incident]:
    """Return the incidents with repetitions merged.

    Repetitions are equal log messages, and outages of one entity that began in the same hour.
    """
    found: dict[tuple[str, ...], Incident] = {}
    for incident in sorted(incidents, key=lambda incident: incident.first_at):
        key = (
            (*incident.entities, f"{incident.first_at:%j %H}")
            if incident.kind == "outage"
            else (incident.source, incident.message)
        )
        before = found.get(key)
        found[key] = incident if before is None else before.merge(incident)
    return list(found.values())


def _find_cascades(index: HomeIndex, incidents: Sequence[Incident]) -> list[tuple[Incident, list[Incident]]]:
    """Return each root incident with its consequences: related incidents that started soon after it.

    An incident that fits several roots belongs to the earliest one.
    """
    cascades: list[tuple[Incident, list[Incident]]] = []
    taken: set[int] = set()
    for n, root in enumerate(incidents):
        if n in taken or root.began_earlier:
            continue
        consequences = []
        for m in range(n + 1, len(incidents)):
            if incidents[m].first_at - root.first_at > CASCADE_WINDOW:
                break
            if m not in taken and not incidents[m].began_earlier and _is_related(index, root, incidents[m]):
                consequences.append(m)
        if consequences:
            taken.update(consequences)
            cascades.append((root, [incidents[m] for m in consequences]))
    return cascades


def _is_related(index: HomeIndex, root: Incident, other: Incident) -> bool:
    """Return whether the incidents share a source or a device, or `other` is about a dependent of `root`."""
    if root.source == other.source or root.device_ids & other.device_ids:
        return True
    dependents = {d.entity_id for key in root.entities for d in index.list_dependents(key)}
    return not dependents.isdisjoint(other.entities)


def _find_devices(index: HomeIndex, entity_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids of the devices of entities, and of the bridges that connect them."""
    devices = [device for key in entity_ids if (device := index.get_device(index.entities[key]))]
    return frozenset({d.id for d in devices} | {d.via_id for d in devices if d.via_id})


def _build_recommendations(
    index: HomeIndex, incidents: Sequence[Incident], cascades: Sequence[tuple[Incident, list[Incident]]]
) -> list[str]:
    advice = []
    for root, consequences in cascades:
        what = root.entities[0] if root.entities else root.source
        advice.append(f"Begin with {what}: {len(consequences)} other incidents followed from it")
    unavailable = [
        key
        for key in dict.fromkeys(key for i in incidents for key in i.entities)
        if index.get_state(key) == UNAVAILABLE
    ]
    advice += [
        f"Check {index.entities[key].name} ({key}): it is unavailable; diagnose_entity says more"
        for key in unavailable
    ]
    often = sorted((i for i in incidents if i.severity != "warning"), key=lambda i: -i.count)
    advice += [f"Look into {i.source}: {i.count} times “{i.message[:80]}”" for i in often]
    return list(dict.fromkeys(advice))[:MAX_RECOMMENDATIONS]


def _describe(incident: Incident, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "severity": incident.severity,
        "source": incident.source,
        "message": incident.message,
        "count": incident.count,
        "first_at": _format_time(incident.first_at, zone),
        "last_at": _format_time(incident.last_at, zone),
        "entities": list(incident.entities[:MAX_CONSEQUENCES]),
    }


def _format_time(at: datetime, zone: tzinfo | None) -> str:
    return at.astimezone(zone).isoformat(timespec="seconds")
