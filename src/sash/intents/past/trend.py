"""Answers whether a value rises or falls: "is the bedroom getting warmer?"."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sash.errors import HomeError
from sash.intents.past.comparison import ALIKE, TOOL
from sash.intents.past.measurements import read_measured
from sash.intents.past.sources import choose_sensors
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import Span
from sash.intents.situation import Reply, Situation
from sash.ports.home import NO_STATE, Entity

# The present value is compared with the mean of half an hour before this time.
_BACK = timedelta(hours=2)
_LENGTH = timedelta(minutes=30)
_WARMTH = frozenset({"warmer", "colder"})


async def answer_trend(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> Reply | None:
    """Return whether a value has risen or fallen; None for other questions."""
    said = next((match for match in situation.sentence.find("compare") if match.value == "trend"), None)
    if said is None or TOOL not in situation.utterance.tools:
        return None
    # "Steigt die Temperatur" begins with the verb.
    if not clause.is_question and said.start > 0:
        return None
    if not _WARMTH.isdisjoint(clause.do):
        clause = replace(clause, properties=("temperature",))
    if not clause.properties or not clause.time.is_empty:
        return None
    sensors = choose_sensors(situation, clause, entities)
    known = [each for each in sensors if situation.index.get_state(each.id) not in NO_STATE]
    if not known:
        return None
    topic = {"entity_ids": [known[0].id]}
    try:
        return Reply(await _compare(situation, known[0]), topic=topic)
    except HomeError:
        return Reply(situation.writer.say("past.unreadable"))


async def _compare(situation: Situation, entity: Entity) -> str:
    writer, state = situation.writer, situation.index.states[entity.id]
    end = situation.now - _BACK
    before = await read_measured(situation.home.home, entity.id, Span(end - _LENGTH, end))
    if before is None:
        return writer.say("past.unrecorded")
    value, other = round(float(state.state), 1), round(before.mean, 1)
    is_same = abs(value - other) <= ALIKE * max(abs(value), abs(other))
    key = "trend_same" if is_same else "trend_up" if value > other else "trend_down"
    return writer.say(
        f"past.{key}",
        value=writer.quantity(value, state.unit),
        other=writer.quantity(other, state.unit),
        clock=writer.clock(end),
    )
