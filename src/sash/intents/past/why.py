"""Answers why something is in a state, and why something does not work."""

from collections.abc import Mapping
from dataclasses import replace

from sash.errors import HomeError
from sash.home.diagnosis import CauseKind, find_causes
from sash.intents.asking.answers import say_none
from sash.intents.past.answer import explain_request, say_cause
from sash.intents.past.asked_states import AskedState, ask_for
from sash.intents.past.causes import find_cause
from sash.intents.past.question import MAX_TARGETS, Target, find_span
from sash.intents.past.records import read_latest_records, read_with_slack
from sash.intents.past.sources import choose_targets
from sash.intents.past.span_words import SpanWords
from sash.intents.sentence.clause import Clause
from sash.intents.situation import Reply, Situation
from sash.ports.home import NO_STATE, Entity
from sash.values.citations import EntityCitation, shorten

# The device class of an act that also names a sensor: "the leak sensor".
_CLASS_OF_ACT: Mapping[str, str] = {"leak": "moisture", "moving": "motion"}
_DIAGNOSED: Mapping[CauseKind, str] = {
    "bridge_down": "why.bridge_down",
    "unreachable": "why.unreachable",
    "unavailable": "why.unavailable",
    "battery_empty": "why.battery_empty",
    "battery_low": "why.battery_low",
    "voltage_dips": "why.voltage_dips",
    "flickering": "why.flickering",
    "dropouts": "why.dropouts",
    "stuck": "why.stuck",
    "no_value": "why.no_value",
    "switched_off": "why.switched_off",
    "log": "why.log",
}


async def answer_why(situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> Reply | None:
    """Return why the named things are in a state, or do not work; None for other clauses."""
    entities = tuple(entity for entity in entities if entity.id in situation.index.entities)
    if not entities:
        return None
    try:
        if "broken" in clause.do or "unavailable" in clause.properties:
            return await explain_problem(situation, clause, entities)
        if "temperature" in clause.properties and not clause.do and clause.time.is_empty:
            return None  # The present answers tell what may be the reason.
        if not (clause.do or clause.properties):
            return await _explain_present(situation, clause, entities)
        acts = clause.do if not clause.is_negated else ()
        targets = [Target(*chosen) for chosen in choose_targets(situation, acts, entities)][:MAX_TARGETS]
        if targets:
            return await _explain_state(situation, clause, targets)
    except HomeError:
        return Reply(situation.writer.say("past.unreadable"))
    is_down = situation.index.get_state(entities[0].id) in NO_STATE
    return await explain_problem(situation, clause, entities) if is_down else None


async def _explain_present(
    situation: Situation, clause: Clause, entities: tuple[Entity, ...]
) -> Reply | None:
    """Say what changed a thing into the state that it has: "why?" after "is it on?".

    What caused a number, or the states of several things, is not recorded.
    """
    entity = entities[0]
    state = situation.index.states.get(entity.id)
    if state is None or state.state in NO_STATE:
        return await explain_problem(situation, clause, entities)
    if len(entities) > 1 or state.unit:
        return _reply(situation, entity, _say_unknown(situation))
    return await _explain_state(
        situation, replace(clause, tense=None), [Target(entity, ask_for(state.state))]
    )


async def _explain_state(situation: Situation, clause: Clause, targets: list[Target]) -> Reply | None:
    """Say what changed one of the targets into its state, or that it is not in that state."""
    if "get_history" not in situation.utterance.tools:
        return None
    writer, span = situation.writer, find_span(clause.time, situation.now)
    words = SpanWords(writer, situation.now, span, clause.time)
    is_past = clause.tense == "past" or (span is not None and span.end < situation.now)
    if not is_past:
        others = [t for t in targets if not _is_in_state(situation, t)]
        targets = [t for t in targets if t not in others]
        if not targets:
            return _reply(situation, others[0].entity, _say_not_so(situation, others))
    if is_past and span is not None and span.start < span.end:
        records = await read_with_slack(situation, targets, span, is_rough=clause.time.part is not None)
    else:
        records = await read_latest_records(situation, targets)
    begun = [(period, target) for target, record in records for period in record.begun]
    latest = max((period.start for period, _ in begun), default=None)
    if requested := await explain_request(situation, targets, span, latest):
        return _reply(situation, targets[0].entity, requested)
    if not begun:
        text = (
            writer.say("past.never", span=words.say_span()) if span and is_past else _say_unknown(situation)
        )
        return _reply(situation, targets[0].entity, text)
    period, target = max(begun, key=lambda each: each[0].start)
    moment = words.say_moment(period.start)
    cause = await find_cause(situation, target.entity, period.start)
    text = say_cause(situation, cause, moment) or writer.say("past.who_unknown", moment=moment)
    return _reply(situation, target.entity, text)


async def explain_problem(situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> Reply | None:
    """Say the likely cause of a problem of the first of the entities that has one."""
    if "diagnose_entity" not in situation.utterance.tools:
        return None
    narrowed = _narrow(situation, clause, entities)[:MAX_TARGETS]
    for entity in narrowed:
        if problem := await find_problem(situation, entity):
            return _reply(situation, entity, problem)
    entity = narrowed[0]
    if len(narrowed) > 1:
        text = situation.writer.say("why.healthy_all", names=situation.writer.names(narrowed))
        return _reply(situation, entity, text)
    state = situation.writer.state(situation.index, entity)
    text = situation.writer.say("why.healthy", name=situation.writer.name(entity), state=state)
    return _reply(situation, entity, text)


async def find_problem(situation: Situation, entity: Entity) -> str | None:
    """Return a sentence about the most likely problem of an entity; None if it has none."""
    causes = await find_causes(situation.home, entity.id, situation.now, situation.now.tzinfo)
    known = [cause for cause in causes if cause.kind != "log"] or causes
    if not known:
        return None
    return situation.writer.say(_DIAGNOSED[known[0].kind], name=situation.writer.name(entity))


def _narrow(situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> list[Entity]:
    """Return the entities of the class that an act names, such as "leak" in "the leak sensor"."""
    classes = {_CLASS_OF_ACT[act] for act in clause.do if act in _CLASS_OF_ACT}
    found = [e for e in entities if situation.index.get_device_class(e.id) in classes]
    if not found and classes:
        everywhere = situation.index.entities.values()
        found = [e for e in everywhere if situation.index.get_device_class(e.id) in classes]
    return found or list(entities)


def _is_in_state(situation: Situation, target: Target) -> bool:
    asked: AskedState | None = target.asked
    return asked is not None and asked.matches(situation.index.get_state(target.entity.id))


def _say_not_so(situation: Situation, targets: list[Target]) -> str:
    """Say the state of the only target, or that none of several is in the state: "No lights are on."."""
    writer, entity = situation.writer, targets[0].entity
    if len(targets) == 1:
        state = writer.state(situation.index, entity)
        return writer.say("why.not_so", name=writer.name(entity), state=state)
    assert targets[0].asked is not None
    return say_none(situation.index, writer, [t.entity for t in targets], targets[0].asked.name)


def _say_unknown(situation: Situation) -> str:
    return situation.writer.say("past.unrecorded")


def _reply(situation: Situation, entity: Entity, text: str) -> Reply:
    state = situation.index.states.get(entity.id)
    cited = (
        EntityCitation(entity.id, shorten(entity.name), shorten(state.state), state.unit, state.changed_at)
        if state and state.state not in NO_STATE
        else None
    )
    return Reply(text, topic={"entity_ids": [entity.id]}, citations=(cited,) if cited else ())
