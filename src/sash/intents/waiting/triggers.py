"""What a sentence waits for: "when the vacuum is done", "if nobody is home at ten"."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sash.intents.asking.conditions import find_condition
from sash.intents.asking.measures import MEASURES, can_measure
from sash.intents.past.asked_states import find_asked_state
from sash.intents.sentence.clause import NOTICED, Clause, Word
from sash.intents.sentence.moments import find_moment
from sash.intents.situation import Situation
from sash.intents.sun import SUN
from sash.intents.targets import Search, find_targets
from sash.ports.home import Entity

_OPPOSITES = {"below": "above", "above": "below", "nobody": "somebody", "somebody": "nobody"}
REFERENCES = frozenset({"refer.it", "refer.them"})
_BELOW, _ABOVE = "below", "above"
# What people do in a place.
_PRESENCE = frozenset({"home", "enter", "run"})


@dataclass(frozen=True, slots=True)
class Trigger:
    """A moment, or a condition in the form of the tool `do_later`. `text` names it for a person.

    If `missing` is set, nothing in the home can be watched for it.
    """

    at: datetime | None = None
    when: dict[str, Any] | None = None
    only_if: tuple[dict[str, Any], ...] = field(default=())
    text: str = ""
    missing: str = ""
    entity_ids: tuple[str, ...] = ()


def read_trigger(
    situation: Situation,
    start: int,
    end: int,
    complete: Callable[[list[Clause]], list[Clause]] | None = None,
    *,
    is_negated: bool = False,
    near: Collection[str] = (),
) -> Trigger | None:
    """Return what the words from `start` up to `end` wait for; None if they are no condition.

    `complete` fills in what "it" means. With `is_negated` the opposite is waited for: "unless it is open".
    `near` are the areas that are meant if a condition names none: "turn off the hall light when there is no
    motion".
    """
    sentence = situation.sentence
    clause = situation.reader.read_clause(sentence, start, end)
    compared = [m for m in sentence.matches if m.kind == "condition" and m.start >= start and m.end <= end]
    meanings = {_OPPOSITES.get(each.value, each.value) if is_negated else each.value for each in compared}
    spoken = {sentence.words[place] for match in compared for place in match.places}
    words = tuple(word for word in clause.words if word.text.casefold() not in spoken)
    # "When I leave": in a command, "I'm leaving" names the mode of the alarm.
    do = tuple("away" if act == "arm_away" else act for act in clause.do)
    if not do and _goes_away(situation, words, start, end):
        do = ("away",)
    clause = replace(clause, words=words, do=do)
    referred = [m.value for m in sentence.matches if m.tag in REFERENCES and start <= m.start < end]
    if complete is not None and not words and referred:
        clause = replace(clause, refer=clause.refer | {*referred}, is_question=False, ask=())
        clause = next(iter(complete([clause])), clause)
    text = sentence.cut(start, end)
    if sun := _read_sun(situation, start, end, text):
        return sun
    at = None if clause.time.is_empty else find_moment(clause.time, situation.now)
    things = tuple(word for word in clause.words if "kind.person" not in word.keys)
    if any(match.value == "somebody" for match in compared) and things:
        # "If somebody opens the door" is about the door, and "is somebody in the hallway" about movement.
        act = ("moving",) if not clause.do or not _PRESENCE.isdisjoint(clause.do) else clause.do
        asked = replace(clause, words=things, do=act)
        return _read_state(situation, asked, at, text, is_negated=is_negated)
    is_about_user = not clause.words and bool({"home", "away"} & set(clause.do))
    is_about_people = meanings & {"nobody", "somebody"} or any("kind.person" in w.keys for w in clause.words)
    if is_about_people or is_about_user:
        is_flipped = is_negated and not meanings & {"nobody", "somebody"}
        return _read_people(situation, clause, meanings, at, text, is_negated=is_flipped)
    if clause.amount.value is not None and (meanings & {_BELOW, _ABOVE} or clause.do):
        return _read_limit(situation, clause, meanings, text, at, is_negated=is_negated)
    if weather := _read_weather(situation, clause, text):
        return weather
    if not clause.words and at is not None:
        return Trigger(at=at, text=text)
    if NOTICED.issuperset(clause.do) and _says_none(situation, start, end):
        is_negated = not is_negated  # "When there is no motion".
    return _read_state(situation, clause, at, text, is_negated=is_negated, near=near)


def _says_none(situation: Situation, start: int, end: int) -> bool:
    return any(m.tag == "mood.none" and start <= m.start and m.end <= end for m in situation.sentence.matches)


def _goes_away(situation: Situation, words: tuple[Word, ...], start: int, end: int) -> bool:
    """Return whether a person leaves: "wenn Anna geht". A thing that "geht" works."""
    people = any(key.startswith("person.") for word in words for key in word.entity_ids)
    return people and any(m.start >= start and m.end <= end for m in situation.sentence.find("going"))


def _read_sun(situation: Situation, start: int, end: int, text: str) -> Trigger | None:
    """Read that the sun sets or rises. "An hour after sunset" cannot be watched."""
    sentence = situation.sentence
    event = next((m for m in sentence.find("sun") if m.start >= start and m.end <= end), None)
    if event is None:
        return None
    if SUN not in situation.index.entities or sentence.find("unit"):
        return Trigger(missing=text)
    state = "below_horizon" if event.value in ("set", "dark") else "above_horizon"
    return Trigger(when={"entity_id": SUN, "states": [state]}, text=text, entity_ids=(SUN,))


def _read_weather(situation: Situation, clause: Clause, text: str) -> Trigger | None:
    """Read that it begins to rain or snow. What a forecast says for a time cannot be watched."""
    act = next((do for do in clause.do if do in ("rain", "snow")), None)
    asked = find_asked_state(act, "weather", "") if act and clause.time.is_empty else None
    entity = next((e for e in situation.index.entities.values() if e.domain == "weather"), None)
    if asked is None or entity is None:
        return None
    when = {"entity_id": entity.id, "states": sorted(asked.states)}
    return Trigger(when=when, text=text, entity_ids=(entity.id,))


def _read_people(
    situation: Situation,
    clause: Clause,
    meanings: set[str],
    at: datetime | None,
    text: str,
    *,
    is_negated: bool,
) -> Trigger | None:
    people = [e for e in situation.index.entities.values() if e.domain == "person"]
    condition = find_condition(clause.do, situation.index)
    if condition is None or condition.name != "home":
        return None
    if not people:
        return Trigger(missing=text)
    if not clause.words and not meanings & {"nobody", "somebody"}:
        people = _choose_user(situation, people)
    if len(people) > 1 and not clause.words and not meanings & {"nobody", "somebody"}:
        return Trigger(missing=text)
    is_away = ("nobody" in meanings) == (condition.is_true != is_negated)
    each = tuple(
        {"entity_id": person.id, ("not_states" if is_away else "states"): ["home"]} for person in people
    )
    ids = tuple(person.id for person in people)
    if at is not None:
        return Trigger(at=at, only_if=each, text=text, entity_ids=ids)
    return Trigger(when=each[0], only_if=each[1:], text=text, entity_ids=ids)


def _choose_user(situation: Situation, people: list[Entity]) -> list[Entity]:
    """Return the person who speaks: "when I get home"; all if that is not known."""
    caller = situation.utterance.caller
    name = caller.user_name.casefold() if caller and caller.user_name else None
    return [person for person in people if person.name.casefold() == name] or people


def _read_limit(
    situation: Situation,
    clause: Clause,
    meanings: set[str],
    text: str,
    at: datetime | None,
    *,
    is_negated: bool,
) -> Trigger | None:
    """Read a limit of a value: "if the bedroom drops below 17 degrees"."""
    named = next((name for name in clause.properties if name in MEASURES), None)
    units = {"degrees": "temperature", "percent": "humidity"}
    measure = MEASURES.get(
        named or units.get(clause.amount.unit or "", "temperature"), MEASURES["temperature"]
    )
    words = [word for word in clause.words if not word.has("property") or word.entity_ids]
    search = Search(
        lambda entity: entity.domain == "sensor" and can_measure(measure, entity, situation.index),
        area_id=situation.area_id,
    )
    targets = find_targets(words, clause.excluded, search, situation.words)
    if len(targets.entities) != 1:
        return Trigger(missing=_name_missing(words, targets.missing, text))
    # The words for "below" and "above" are turned round already.
    is_colder = bool({"down", "colder"} & set(clause.do)) and not meanings & {_BELOW, _ABOVE}
    is_below = _BELOW in meanings or (is_colder != is_negated and not meanings & {_BELOW, _ABOVE})
    limit = {_BELOW if is_below else _ABOVE: clause.amount.value}
    entity_id = targets.entities[0].id
    watched = {"entity_id": entity_id, **limit}
    if at is not None:
        return Trigger(at=at, only_if=(watched,), text=text, entity_ids=(entity_id,))
    return Trigger(when=watched, text=text, entity_ids=(entity_id,))


def _read_state(
    situation: Situation,
    clause: Clause,
    at: datetime | None,
    text: str,
    *,
    is_negated: bool = False,
    near: Collection[str] = (),
) -> Trigger | None:
    condition = find_condition(clause.do, situation.index)
    is_nameless = not clause.words and NOTICED.issuperset(clause.do)
    if condition is None or not (clause.words or is_nameless):
        return None
    area_id = next(iter(near), situation.area_id) if is_nameless else situation.area_id
    search = Search(condition.applies_to, area_id=area_id)
    targets = find_targets(clause.words, clause.excluded, search, situation.words)
    if len(targets.entities) != 1:
        return Trigger(missing=_name_missing(clause.words, targets.missing, text))
    entity = targets.entities[0]
    watched = _watch(entity, condition.list_states(entity), condition.is_true != is_negated)
    if at is not None:
        return Trigger(at=at, only_if=(watched,), text=text, entity_ids=(entity.id,))
    return Trigger(when=watched, text=text, entity_ids=(entity.id,))


def _watch(entity: Entity, states: frozenset[str], is_true: bool) -> dict[str, Any]:
    return {"entity_id": entity.id, ("states" if is_true else "not_states"): sorted(states)}


def _name_missing(words: list[Word] | tuple[Word, ...], missing: str, text: str) -> str:
    return missing or " ".join(word.text for word in words) or text
