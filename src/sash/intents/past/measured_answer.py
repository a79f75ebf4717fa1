"""Answers questions about numbers of the past: measurements and consumption."""

from sash.intents.past.measurements import (
    Measured,
    read_consumed,
    read_hour_extreme,
    read_measured,
    read_value_at,
)
from sash.intents.past.missing_meter import say_no_meter
from sash.intents.past.question import PastQuestion
from sash.intents.past.span_words import SpanWords
from sash.intents.situation import Situation
from sash.ports.home import Entity

MAX_SENSORS = 3
# A time that ends now is said to be not over.
_UNFINISHED = frozenset({"today", "this_week", "this_month", "this_year"})
_WATT_HOURS = 3600.0


async def answer_number(situation: Situation, question: PastQuestion, words: SpanWords) -> str | None:
    """Return the answer to a question for a measurement; None if nothing is recorded."""
    assert question.span is not None
    home = situation.home.home
    texts: list[str] = []
    sensors = [target.entity for target in question.targets]
    if question.is_moment:
        for entity in sensors[:MAX_SENSORS]:
            value = await read_value_at(home, entity.id, question.span.start)
            if value is not None:
                texts.append(_say_number(situation, entity, "value_at", value, words.say_span()))
        return " ".join(texts) or None
    readings = [(entity, await read_measured(home, entity.id, question.span)) for entity in sensors]
    measured = [(entity, found) for entity, found in readings if found is not None]
    if question.ask in ("highest", "lowest") and measured:
        return await _say_extreme(situation, question, words, measured)
    for entity, found in measured[:MAX_SENSORS]:
        if question.ask == "average":
            texts.append(_say_number(situation, entity, "average", found.mean, words.say_span()))
            continue
        values = {
            "low": situation.writer.number(found.lowest.value, 1),
            "high": _quantify(situation, entity, found.highest.value),
            "span": words.say_span(),
        }
        texts.append(situation.writer.say("past.between", name=_name(situation, entity), **values))
    starts = [found.recorded_from for _, found in measured if found.recorded_from]
    if starts:
        texts.append(situation.writer.say("past.records_since", day=words.say_date(max(starts))))
    return " ".join(texts) or None


async def answer_consumption(situation: Situation, question: PastQuestion, words: SpanWords) -> str | None:
    """Return the answer to a question for a consumption; None if nothing is recorded."""
    writer, span = situation.writer, question.span
    assert span is not None
    if not question.targets:
        return say_no_meter(situation, question.metered) if question.metered else writer.say("past.no_meter")
    texts: list[str] = []
    for target in question.targets[:MAX_SENSORS]:
        entity, unit = target.entity, _get_unit(situation, target.entity)
        key, late = "used", None
        if situation.index.get_device_class(entity.id) == "power":
            measured = await read_measured(situation.home.home, entity.id, span)
            if measured is None:
                continue
            hours = (span.end - (measured.recorded_from or span.start)).total_seconds() / _WATT_HOURS
            amount = measured.mean * hours / (1000 if unit == "W" else 1)
            key, unit, late = "used_about", "kWh", measured.recorded_from
        else:
            consumed = await read_consumed(situation.home.home, entity.id, span)
            if consumed is None:
                continue
            amount, late = consumed.amount, consumed.recorded_from
        values = {
            "value": writer.quantity(round(amount, 1 if amount >= 1 else 2), unit),
            "span": words.say_span(),
        }
        if question.time.day in _UNFINISHED and question.time.role is None and span.end >= situation.now:
            values["span"] = writer.phrase("past.so_far", span=values["span"])
        if len(question.targets) > 1:
            key, values["name"] = f"{key}_of", _name(situation, entity)
        texts.append(writer.say(f"past.{key}", **values))
        if late is not None:
            texts.append(writer.say("past.records_since", day=words.say_date(late)))
    return " ".join(texts) or None


async def _say_extreme(
    situation: Situation, question: PastQuestion, words: SpanWords, measured: list[tuple[Entity, Measured]]
) -> str:
    """Say the extreme of all sensors, and its time."""
    is_highest = question.ask == "highest"
    entity, found = max(
        measured, key=lambda each: each[1].highest.value if is_highest else -each[1].lowest.value
    )
    sample = found.highest if is_highest else found.lowest
    exact = await read_hour_extreme(situation.home.home, entity.id, sample, highest=is_highest)
    values = {
        "value": _quantify(situation, entity, sample.value),
        "span": words.say_span(),
        "time": words.say_time(exact.at),
    }
    return situation.writer.say(f"past.{question.ask}", name=_name(situation, entity), **values)


def _say_number(situation: Situation, entity: Entity, key: str, value: float, span: str) -> str:
    return situation.writer.say(
        f"past.{key}", name=_name(situation, entity), value=_quantify(situation, entity, value), span=span
    )


def _quantify(situation: Situation, entity: Entity, value: float) -> str:
    return situation.writer.quantity(value, _get_unit(situation, entity))


def _get_unit(situation: Situation, entity: Entity) -> str:
    state = situation.index.states.get(entity.id)
    return state.unit if state else ""


def _name(situation: Situation, entity: Entity) -> str:
    return situation.writer.name(entity)
