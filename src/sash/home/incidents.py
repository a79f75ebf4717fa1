"""What went wrong in the house lately: its log and its outages as incidents, and which came of which."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal

from sash.home.history import in_words
from sash.home.index import Index
from sash.home.live import LiveHome
from sash.ports.home import ENTITY_ID, UNAVAILABLE, LogRecord, Point

Severity = Literal["warning", "error", "critical"]

TIMEFRAMES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
SEVERITIES: tuple[Severity, ...] = ("warning", "error", "critical")
# What begins so soon after something that it has to do with comes of it.
FOLLOWS = timedelta(seconds=90)
MAX_INCIDENTS = 12
MAX_CASCADES = 4
MAX_FOLLOWERS = 8
MAX_EXAMINED = 50
MAX_OUTAGES = 300
MAX_RECOMMENDATIONS = 5
LONGEST_MESSAGE = 160


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that went wrong: a line of the log, or an entity that was away.

    `family` are the devices and bridges that it touches. What is `old` began before the time in question.
    """

    kind: Literal["log", "away"]
    first_at: datetime
    last_at: datetime
    severity: Severity
    source: str
    message: str
    count: int
    entities: tuple[str, ...]
    family: frozenset[str]
    old: bool = False

    def and_again(self, later: "Incident") -> "Incident":
        """Add the same once more: as bad as the worse of them, and in the later words."""
        worst = max(self.severity, later.severity, key=SEVERITIES.index)
        last_at, count = max(self.last_at, later.last_at), self.count + later.count
        return replace(
            later, first_at=self.first_at, last_at=last_at, severity=worst, count=count, old=self.old
        )


async def analyze(
    known: LiveHome, timeframe: str, severity: Severity, now: datetime, zone: tzinfo | None
) -> dict[str, Any]:
    """Gather what went wrong within a time, from a severity on; what came of it stands with it."""
    index, start = known.index, now - TIMEFRAMES[timeframe]
    log = [record for record in await known.home.log() if record.at >= start]
    outages = await _outages(known, index, log, start, now)
    incidents = _together([*(_logged(index, record, start) for record in log), *outages])
    wanted = SEVERITIES[SEVERITIES.index(severity) :]
    incidents = [incident for incident in incidents if incident.severity in wanted]
    incidents.sort(key=lambda incident: incident.first_at)
    cascades = _cascades(index, incidents)
    followers = {id(incident) for _, following in cascades for incident in following}
    alone = [incident for incident in incidents if id(incident) not in followers]
    newest = sorted(alone, key=lambda incident: incident.last_at, reverse=True)[:MAX_INCIDENTS]
    return {
        "timeframe": timeframe,
        "severity": severity,
        "total_incidents": len(incidents),
        "incidents": [_shown(incident, zone) for incident in newest],
        "cascades": [
            {
                "at": _at(root.first_at, zone),
                "began_with": root.message,
                "followed_by": [incident.message for incident in following[:MAX_FOLLOWERS]],
                "incidents": len(following) + 1,
            }
            for root, following in cascades[-MAX_CASCADES:]
        ],
        "recommendations": _recommendations(index, incidents, cascades),
    }


def _logged(index: Index, record: LogRecord, start: datetime) -> Incident:
    text = f"{record.source} {record.message}"
    named = [found for found in ENTITY_ID.findall(text) if found in index.entities]
    lower = text.lower()
    named += [e.id for e in index.entities.values() if len(e.name) > 6 and e.name.lower() in lower]
    entities = tuple(dict.fromkeys(named))
    bridges = [
        bridge.id for bridge in index.bridges() if len(bridge.name) > 3 and bridge.name.lower() in lower
    ]
    return Incident(
        "log",
        max(record.first_at, start),
        record.at,
        record.level,
        index.hide(record.source),
        index.hide(record.message)[:LONGEST_MESSAGE],
        record.count,
        entities,
        _family(index, entities).union(bridges),
        old=record.first_at < start,
    )


async def _outages(
    known: LiveHome, index: Index, log: Sequence[LogRecord], start: datetime, now: datetime
) -> list[Incident]:
    """Find who was away among those who are, those whom the log names, and those behind a bridge."""
    text = " ".join(f"{record.source} {record.message}" for record in log)
    suspects = [key for key, state in index.states.items() if state.state == UNAVAILABLE]
    suspects += [found for found in ENTITY_ID.findall(text) if found in index.entities]
    suspects += [entity.id for device in index.bridges() for entity in index.behind(device.id)]
    wanted = list(dict.fromkeys(suspects))[:MAX_EXAMINED]
    if not wanted:
        return []
    history = await known.home.history(wanted, start, now)
    gaps = [(begin, end, key) for key, points in history.items() for begin, end in _gaps(points)]
    latest = sorted(gaps, key=lambda gap: gap[0])[-MAX_OUTAGES:]
    return [_away(index, key, begin, end, start, now) for begin, end, key in latest]


def _away(
    index: Index, key: str, begin: datetime, end: datetime | None, start: datetime, now: datetime
) -> Incident:
    entity, state = index.entities[key], index.states.get(key)
    old = begin <= start
    if end is not None:
        words = f"was unavailable for {in_words(end - begin)}"
    elif old and state is not None:
        words = f"has been unavailable for {in_words(now - min(begin, state.changed_at))}"
    else:
        words = f"has been unavailable for {in_words(now - begin)}"
    return Incident(
        "away",
        begin,
        end or now,
        "warning" if end else "error",
        entity.platform or entity.domain,
        f"{entity.name} {words}",
        1,
        (key,),
        _family(index, (key,)),
        old,
    )


def _gaps(points: Sequence[Point]) -> Iterable[tuple[datetime, datetime | None]]:
    """Give the times in which an entity was away; None if it still is."""
    begin = None
    for point in points:
        if point.state == UNAVAILABLE and begin is None:
            begin = point.at
        elif point.state != UNAVAILABLE and begin is not None:
            yield begin, point.at
            begin = None
    if begin is not None:
        yield begin, None


def _together(incidents: Iterable[Incident]) -> list[Incident]:
    """Count the same complaint once, and an entity that was away again and again within an hour."""
    found: dict[tuple[str, ...], Incident] = {}
    for incident in sorted(incidents, key=lambda incident: incident.first_at):
        key = (
            (*incident.entities, f"{incident.first_at:%j %H}")
            if incident.kind == "away"
            else (incident.source, incident.message)
        )
        before = found.get(key)
        found[key] = incident if before is None else before.and_again(incident)
    return list(found.values())


def _cascades(index: Index, incidents: Sequence[Incident]) -> list[tuple[Incident, list[Incident]]]:
    """Find what came of what: related, and begun soon after; each incident comes of the first that fits."""
    cascades: list[tuple[Incident, list[Incident]]] = []
    taken: set[int] = set()
    for n, root in enumerate(incidents):
        if n in taken or root.old:
            continue
        followers = []
        for m in range(n + 1, len(incidents)):
            if incidents[m].first_at - root.first_at > FOLLOWS:
                break
            if m not in taken and not incidents[m].old and _related(index, root, incidents[m]):
                followers.append(m)
        if followers:
            taken.update(followers)
            cascades.append((root, [incidents[m] for m in followers]))
    return cascades


def _related(index: Index, one: Incident, other: Incident) -> bool:
    """Whether two incidents share a source, a device or a bridge, or the one needs the other."""
    if one.source == other.source or one.family & other.family:
        return True
    used = {d.entity_id for key in one.entities for d in index.dependants(key)}
    return not used.isdisjoint(other.entities)


def _family(index: Index, entity_ids: Iterable[str]) -> frozenset[str]:
    """Return the devices of some entities, and the bridges by which they are reached."""
    devices = [device for key in entity_ids if (device := index.device(index.entities[key]))]
    return frozenset({d.id for d in devices} | {d.via_id for d in devices if d.via_id})


def _recommendations(
    index: Index, incidents: Sequence[Incident], cascades: Sequence[tuple[Incident, list[Incident]]]
) -> list[str]:
    advice = []
    for root, followers in cascades:
        what = root.entities[0] if root.entities else root.source
        advice.append(f"Begin with {what}: {len(followers)} other incidents followed from it")
    away = [
        key
        for key in dict.fromkeys(key for i in incidents for key in i.entities)
        if index.state(key) == UNAVAILABLE
    ]
    advice += [
        f"Check {index.entities[key].name} ({key}): it is unavailable; diagnose_entity says more"
        for key in away
    ]
    often = sorted((i for i in incidents if i.severity != "warning"), key=lambda i: -i.count)
    advice += [f"Look into {i.source}: {i.count} times “{i.message[:80]}”" for i in often]
    return list(dict.fromkeys(advice))[:MAX_RECOMMENDATIONS]


def _shown(incident: Incident, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "severity": incident.severity,
        "source": incident.source,
        "message": incident.message,
        "count": incident.count,
        "first_at": _at(incident.first_at, zone),
        "last_at": _at(incident.last_at, zone),
        "entities": list(incident.entities[:MAX_FOLLOWERS]),
    }


def _at(at: datetime, zone: tzinfo | None) -> str:
    return at.astimezone(zone).isoformat(timespec="seconds")
