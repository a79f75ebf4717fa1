"""Reads the forecast of a weather service of the home."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sash.intents.sentence.moments import find_day_of
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Situation
from sash.ports.home import Entity

_SERVICE = "weather.get_forecasts"
# The bits of `supported_features` of a weather service, by the kind of forecast.
_FEATURES = {"daily": 1, "twice_daily": 4, "hourly": 2}
_PART_HOURS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (20, 24)}


@dataclass(frozen=True, slots=True)
class Forecast:
    """The weather of a day or of a part of it. Temperatures are None if the service gives none."""

    day: date
    condition: str
    conditions: frozenset[str]
    highest: float | None
    lowest: float | None
    unit: str
    rain_mm: float


async def list_days(situation: Situation, entity: Entity) -> list[Forecast]:
    """Return the forecast by day. The rest of today comes first, by the hour if the service needs that."""
    kind = next((kind for kind in _FEATURES if _supports(situation, entity, kind)), "daily")
    entries = await _read(situation, entity, kind)
    today = situation.now.date()
    if all(at.date() > today for at, _ in entries) and _supports(situation, entity, "hourly"):
        hours = await _read(situation, entity, "hourly")
        entries = [*(each for each in hours if each[0].date() == today), *entries]
    days = dict.fromkeys(at.date() for at, _ in entries)
    return [
        _summarise(situation, entity, day, [entry for at, entry in entries if at.date() == day])
        for day in days
    ]


async def read_day(situation: Situation, entity: Entity, time: TimeWords) -> Forecast | None:
    """Return the forecast for the day that a sentence names, or for the rest of today. None without one."""
    now = situation.now
    day = find_day_of(time, now, is_future=True) or now.date()
    hours = _PART_HOURS.get(time.part or "")
    if (hours or day == now.date()) and _supports(situation, entity, "hourly"):
        first, last = hours or (0, 24)
        entries = await _read(situation, entity, "hourly")
        within = [entry for at, entry in entries if at.date() == day and first <= at.hour < last]
        if within:
            return _summarise(situation, entity, day, within)
    return next((one for one in await list_days(situation, entity) if one.day == day), None)


def _supports(situation: Situation, entity: Entity, kind: str) -> bool:
    features = situation.index.states[entity.id].attributes.get("supported_features")
    return not isinstance(features, int) or bool(features & _FEATURES[kind])


async def _read(situation: Situation, entity: Entity, kind: str) -> list[tuple[datetime, Mapping[str, Any]]]:
    response = await situation.home.home.call_service(
        _SERVICE, {"type": kind}, [entity.id], return_response=True
    )
    found = (response or {}).get(entity.id)
    entries = found.get("forecast") if isinstance(found, dict) else None
    read = [(_read_time(entry, situation), entry) for entry in entries or () if isinstance(entry, dict)]
    return [(at, entry) for at, entry in read if at is not None]


def _read_time(entry: Mapping[str, Any], situation: Situation) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(entry.get("datetime")))
    except ValueError:
        return None
    return at.astimezone(situation.now.tzinfo) if at.tzinfo else at.replace(tzinfo=situation.now.tzinfo)


def _summarise(
    situation: Situation, entity: Entity, day: date, entries: Sequence[Mapping[str, Any]]
) -> Forecast:
    conditions = [str(entry["condition"]) for entry in entries if entry.get("condition")]
    highs = _list_numbers(entries, "temperature")
    lows = _list_numbers(entries, "templow") or highs
    attributes = situation.index.states[entity.id].attributes
    return Forecast(
        day,
        max(conditions, key=conditions.count) if conditions else "",
        frozenset(conditions),
        max(highs, default=None),
        min(lows, default=None),
        str(attributes.get("temperature_unit") or "°C"),
        sum(_list_numbers(entries, "precipitation")),
    )


def _list_numbers(entries: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    values = (entry.get(key) for entry in entries)
    return [
        float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
