"""Answers a clause that asks about the past: finds what it names, and chooses who answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sash.intents.past.answer import answer_past, explain_last_action
from sash.intents.past.asked_states import find_asked_state
from sash.intents.past.comparison import answer_comparison
from sash.intents.past.problems import answer_problems
from sash.intents.past.question import METERED, PastQuestion, read_past_question
from sash.intents.past.trend import answer_trend
from sash.intents.past.why import answer_why, explain_problem
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply, Situation
from sash.intents.targets import list_matching
from sash.intents.topic import Topic
from sash.intents.words.lexicon import NOUNS
from sash.ports.home import Entity

# These acts ask for no state of a thing, so anything that is named is meant.
_STATELESS = frozenset({"happen", "used", "broken"})
# "Quando ha fatto l'ultimo giro Robby?" does not ask whether something is done.
_TIME_ASKS = frozenset({"when", "how_long", "how_often"})
_RULE_DOMAINS = frozenset({"automation", "script"})
MAX_RULES = 4
_RUNS = frozenset({"run", "on", "start", "happen", "used", "detected", "press"})
_EXTREMES = frozenset({"highest", "lowest"})
_RULES = frozenset({"kind.automation", "kind.script"})
# Changes that a person or an automation causes.
_CHANGES = frozenset({"on", "off", "open", "close", "lock", "unlock", "start", "stop", "arm", "disarm"})
_SWITCHED = frozenset({"on", "off"})
# These questions ask for all that was on.
_LISTING = frozenset({"what", "which", "how_many"})
_PRESENCE = frozenset({"home", "away"})
_GENERAL = frozenset({"kind.person", "room.house"})


async def answer_about_past(situation: Situation, clause: Clause) -> Reply | None:
    """Return the answer to a question about the past, or for a reason; None for other clauses."""
    if _is_about_sash(situation, clause) or _asks_if_all_are_gone(situation, clause):
        return None
    clause = _ask_since_when(clause)
    if problems := await answer_problems(situation, clause, find_named_entities(situation, clause)):
        return problems
    named = find_named_entities(situation, clause)
    if clause.do == ("broken",) and named and set(clause.ask) <= {"is"} and clause.time.is_empty:
        return await explain_problem(situation, clause, named)  # "The leak sensor doesn't work".
    if "why" in clause.ask:
        return await answer_why(situation, clause, find_named_entities(situation, clause))
    clause = _leave_out_day(_ask_for_rule(clause))
    entities = find_named_entities(situation, clause)
    clause = _ask_what_happened(clause, entities)
    if _asks_for_cause(situation, clause, entities):
        clause = replace(clause, ask=("who", *(ask for ask in clause.ask if ask != "what")))
    if _asks_if_sash_did(situation, clause):
        return await _say_own_action(situation, clause, entities)
    compared = _answer_last_run(situation, clause, entities)
    compared = compared or await answer_comparison(situation, clause, entities)
    if compared := compared or await answer_trend(situation, clause, entities):
        return compared
    question = read_past_question(situation, clause, entities)
    if "who" in clause.ask and (question is None or question.ask == "unrecorded"):
        return await explain_last_action(situation, entities) or await _answer(situation, question)
    is_extreme = not clause.properties and not _EXTREMES.isdisjoint(clause.ask)
    is_metered = bool(METERED.intersection(clause.properties)) and question is None
    if situation.sentence.find("price") and (is_metered or is_extreme):
        return Reply(situation.writer.say("past.no_price"))
    return await _answer(situation, question)


def answer_price(situation: Situation, last: Topic | None) -> Reply | None:
    """Return that no price is known, to "how much did that cost?" after a question about a meter."""
    if last is None or last.kind != "question" or not situation.sentence.find("price"):
        return None
    measured = {situation.index.get_device_class(key) for key in last.entity_ids}
    return None if measured.isdisjoint(METERED) else Reply(situation.writer.say("past.no_price"))


def _is_about_sash(situation: Situation, clause: Clause) -> bool:
    """Return whether a question is about what Sash did, and not about the home."""
    about_sash = {match.value for match in situation.sentence.find("self")}
    if situation.sentence.find("absence"):
        return False  # "Did anything happen while I was out?"
    # "Why not" in "¿por qué no funciona el sensor?" is about the sensor.
    if situation.sentence.find("price"):
        about_sash -= {"which_model"}
    if _TIME_ASKS.intersection(clause.ask) or not clause.time.is_empty:
        about_sash -= {"did_it_work"}
    is_compared = any(match.value in ("before", "usual") for match in situation.sentence.find("compare"))
    return bool(about_sash - {"why_not"} and not is_compared) or bool(
        about_sash and "broken" not in clause.do
    )


def _asks_if_all_are_gone(situation: Situation, clause: Clause) -> bool:
    """Return whether a question in the past tense asks who is at home now: "has Anna left?"."""
    named = find_named_entities(situation, clause)
    is_person = bool(named) and all(entity.domain == "person" for entity in named)
    is_whole = bool(situation.sentence.find("everybody")) or is_person
    return (
        is_whole
        and not _PRESENCE.isdisjoint(clause.do)
        and set(clause.ask) <= {"is"}
        and clause.time.is_empty
    )


def _asks_if_sash_did(situation: Situation, clause: Clause) -> bool:
    """Return whether a question asks if Sash made a change: "did you turn off the light last night?"."""
    is_change = clause.tense == "past" and not _CHANGES.isdisjoint(clause.do) and set(clause.ask) == {"is"}
    asked = {place for match in situation.sentence.matches if match.tag == "ask.is" for place in match.places}
    addressed = (match for match in situation.sentence.find("mood") if match.value == "you")
    return is_change and any({match.start - 1, match.start} & asked for match in addressed)


async def _say_own_action(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> Reply:
    """Say when Sash last changed one of these things, or that it did not."""
    is_of_talk = clause.time.is_empty or (clause.time.day == "today" and clause.time.part is None)
    known = await explain_last_action(situation, entities) if is_of_talk else None
    ids = [entity.id for entity in entities]
    if known is not None:
        return known
    writer, index = situation.writer, situation.index
    text = writer.say("past.not_me")
    if is_of_talk and len(entities) == 1:
        state = writer.state(index, entities[0])
        text = f"{text} {writer.say('state.is_now', name=writer.name(entities[0]), state=state)}"
    return Reply(text, topic={"entity_ids": ids} if ids else None)


def _ask_for_rule(clause: Clause) -> Clause:
    """Return "which automation turned on the garden lights?" as the question who turned them on.

    Other clauses are returned as they are.
    """
    things = tuple(word for word in clause.words if not word.keys & _RULES or word.entity_ids)
    has_rule = 0 < len(things) < len(clause.words)
    is_past = clause.tense == "past" or not clause.time.is_empty or "which" in clause.ask
    # "When did the automation Evening lights last run?" names the rule itself.
    if any(key.partition(".")[0] in _RULE_DOMAINS for word in things for key in word.entity_ids):
        return clause
    if not (has_rule and is_past and clause.is_question and _CHANGES.intersection(clause.do)):
        return clause
    return replace(clause, ask=("who",), words=things)


def _ask_what_happened(clause: Clause, entities: Sequence[Entity]) -> Clause:
    """Return "what did the heating do today?" as the question what happened to it.

    Other clauses are returned as they are.
    """
    is_asked = clause.ask[:1] == ("what",) and clause.do == ("run",) and clause.tense == "past"
    # A robot runs while it cleans.
    has_state = any(find_asked_state("run", entity.domain, "") is not None for entity in entities)
    return replace(clause, do=("happen",)) if is_asked and entities and not has_state else clause


def _ask_since_when(clause: Clause) -> Clause:
    """Return "since when?" after a problem as the question since when the thing does not work."""
    is_asked = "errors" in clause.properties and not _TIME_ASKS.isdisjoint(clause.ask)
    return replace(clause, do=("broken",), properties=()) if is_asked else clause


def _leave_out_day(clause: Clause) -> Clause:
    """Return "which day was the warmest?" as the question for the warmest time.

    Other clauses are returned as they are.
    """
    if _EXTREMES.isdisjoint(clause.ask):
        return clause
    if "energy" in clause.properties and not clause.do:
        clause = replace(clause, properties=("power",))  # "What was our peak usage?"
    if "date" not in clause.properties:
        return clause
    words = tuple(word for word in clause.words if "property.date" not in word.keys)
    properties = tuple(name for name in clause.properties if name != "date")
    return replace(clause, words=words, properties=properties)


def _answer_last_run(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> Reply | None:
    """Return when an automation or a script last ran; None for other questions."""
    rules = [entity for entity in entities if entity.domain in _RULE_DOMAINS]
    does = clause.ask[:1] == ("what",) and clause.do == ("run",) and clause.tense == "past"
    is_asked = does or (not {"when", "last"}.isdisjoint(clause.ask) and _RUNS.issuperset(clause.do))
    if not rules or len(rules) < len(entities) or not is_asked or "why" in clause.ask:
        return None
    told = [_say_last_run(situation, rule) for rule in rules[:MAX_RULES]]
    return Reply(" ".join(told), topic={"entity_ids": [rule.id for rule in rules[:MAX_RULES]]})


def _say_last_run(situation: Situation, rule: Entity) -> str:
    state, writer = situation.index.states.get(rule.id), situation.writer
    last = parse_time(state.attributes.get("last_triggered")) if state else None
    if last is None:
        return writer.say("past.no_run", name=writer.name(rule))
    moment = writer.moment(last.astimezone(situation.now.tzinfo), situation.now)
    return writer.say("past.last_run", name=writer.name(rule), moment=moment)


def parse_time(value: object) -> datetime | None:
    """Return a time that a home wrote, or None for anything else."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _asks_for_cause(situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> bool:
    """Return whether a question asks what made a change: "what turned on the lamp?".

    "What light was on?" and "what was on in the kitchen?" ask for things.
    """
    if "what" not in clause.ask or "which" in clause.ask or not _CHANGES.intersection(clause.do):
        return False
    is_thing = any(not situation.words.is_place(word.keys) and not word.is_plural for word in clause.words)
    matches = situation.sentence.matches
    ends = {match.end for match in matches if match.tag == "ask.what"}
    if not entities or not is_thing or any(m.kind in NOUNS and m.start in ends for m in matches):
        return False
    is_over = clause.tense == "past" or (clause.time.day or clause.time.part) is not None
    plain = {m.end for m in matches if m.tag == "ask.what" and len(m.places) == 1}
    return is_over or any(match.kind == "do" and match.start in plain for match in matches)


async def _answer(situation: Situation, question: PastQuestion | None) -> Reply | None:
    return None if question is None else await answer_past(situation, question)


def find_named_entities(situation: Situation, clause: Clause) -> tuple[Entity, ...]:
    """Return the entities that a clause names: those that can be in the asked state, if any can."""
    words = [word for word in clause.words if not _is_general(word)]
    if not words:
        return ()
    acts = [act for act in clause.do if act not in _STATELESS]

    def can_act(entity: Entity) -> bool:
        device_class = situation.index.get_device_class(entity.id)
        return any(find_asked_state(act, entity.domain, device_class) is not None for act in acts)

    def match(named: list[Word]) -> list[Entity]:
        found = list_matching(named, can_act, situation.words) if acts else []
        return found or list_matching(named, lambda entity: True, situation.words)

    found = match(words)
    if not found and any(word.entity_ids for word in words):
        found = match([word for word in words if word.is_known])  # "Since lunch" beside a full name.
    exact = {key for word in words for key in word.entity_ids}
    found = [entity for entity in found if entity.id in exact] or found
    members = {key for entity in found for key in situation.index.list_contents(entity.id)[0]}
    groups = {e.id for e in found if situation.index.list_contents(e.id)[0] & {each.id for each in found}}
    found = [entity for entity in found if entity.id not in groups] if members else found
    return tuple(_prefer_lights(situation, clause, _keep_area(situation, found, words), words))


def _prefer_lights(
    situation: Situation, clause: Clause, found: Sequence[Entity], words: Sequence[Word]
) -> Sequence[Entity]:
    """Return the lights of a place if only the place is named: "how long was the hallway on?"."""
    is_place = all(not word.entity_ids and situation.words.is_place(word.keys) for word in words)
    if not is_place or not _SWITCHED.intersection(clause.do) or _LISTING.intersection(clause.ask):
        return found
    return [entity for entity in found if entity.domain == "light"] or found


def _is_general(word: Word) -> bool:
    """Return whether a word names no thing: a property, anybody, or the whole house."""
    return not word.entity_ids and (word.has("property") or not _GENERAL.isdisjoint(word.keys))


def _keep_area(situation: Situation, found: list[Entity], words: list[Word]) -> list[Entity]:
    """Keep the things in the area of the speaker, if no place is named."""
    if situation.area_id is None or any(
        situation.words.is_place(word.keys) or word.entity_ids for word in words
    ):
        return found
    return [entity for entity in found if entity.area_id == situation.area_id] or found
