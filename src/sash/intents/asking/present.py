"""Answers questions about the present from the index."""

from dataclasses import replace

from sash.intents.asking.abilities import AbilityAnswers
from sash.intents.asking.answers import MAX_DESCRIBED, MAX_LISTED, Answers
from sash.intents.asking.conditions import find_condition
from sash.intents.asking.people import PeopleAnswers
from sash.intents.asking.security import SecurityAnswers
from sash.intents.asking.states import StateAnswers
from sash.intents.asking.values import ValueAnswers
from sash.intents.missing_words import say_missing, say_none_there
from sash.intents.sentence.clause import Clause
from sash.intents.situation import Reply, Situation
from sash.intents.targets import Search, find_targets, list_matching
from sash.intents.topic import Topic
from sash.ports.home import NO_STATE, UNAVAILABLE, Entity

_COUNTING = frozenset({"how_many", "which", "what"})
_SWITCHED = frozenset({"light", "switch", "fan", "input_boolean"})
_NOT_OF_NOW = frozenset(
    {"who", "when", "why", "how_long", "how_often", "how_to", "possible", "ever", "until_when"}
)
_OPPOSITES = {"on": "off", "off": "on"}
_CONTROLLED = frozenset(
    {"light", "switch", "fan", "media_player", "climate", "cover", "lock", "vacuum", "valve", "humidifier",
     "alarm_control_panel", "lawn_mower", "siren", "water_heater", "input_boolean", "scene", "script"}
)  # fmt: skip


class PresentAnswers(Answers):
    """Answers the questions of one sentence about the present."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._abilities = AbilityAnswers(situation)
        self._people = PeopleAnswers(situation)
        self._security = SecurityAnswers(situation)
        self._values = ValueAnswers(situation)
        self._states = StateAnswers(situation)

    def answer(self, clause: Clause) -> Reply | None:
        """Return the answer to a question; None if it is no question about the present of the home."""
        clause = self._leave_out_act(clause)
        asks_broken = clause.do == ("broken",) and not clause.words and {"what", "which"} & set(clause.ask)
        if asks_broken or not {"available", "unavailable"}.isdisjoint(clause.properties):
            return self._list_unavailable(clause)
        if reply := self._abilities.answer(clause) or self._security.answer(clause):
            return reply
        if "charging" not in clause.do and (batteries := self._values.answer_batteries(clause)):
            return batteries
        if "rooms" in clause.ask and not (clause.do and clause.words):
            return self._list_rooms()
        if "labelled" in clause.ask or "devices" in clause.ask:
            return self._list_things(clause)
        if reply := self._people.answer(clause) or self._values.answer(clause):
            return reply
        if _asks_what_plays(clause) and not self._situation.sentence.find("cannot"):
            return self._say_playing(clause)
        condition = find_condition(clause.do, self._index)
        return self._describe(clause) if condition is None else self._states.answer(clause, condition)

    def _leave_out_act(self, clause: Clause) -> Clause:
        """Return a clause without a word for presence that means something else: an empty battery."""
        is_battery = clause.do == ("vacant",) and "battery" in clause.properties
        # "How many lights are there in the house?"
        is_count = clause.do == ("home",) and bool(_COUNTING.intersection(clause.ask))
        is_empty = is_battery or (is_count and self._names_things(clause))
        return replace(clause, do=()) if is_empty else clause

    def tell_known(self, guess: Reply | None) -> Reply | None:
        """Return the states of what a question names beside words that are not understood.

        Return None if something else is asked for than the present, or too much could be meant.
        """
        clauses = self._situation.reader.read_clauses(self._situation.sentence)
        clause = clauses[0] if len(clauses) == 1 else None
        is_offer = guess is not None and guess.topic is not None and guess.topic["kind"] == "offer"
        is_refused = guess is None or (guess.is_guess and not guess.calls and not is_offer)
        if clause is None or not is_refused or not clause.is_question or not _asks_for_now(clause):
            return None
        known = [
            w for w in clause.words if w.is_known and (w.entity_ids or self._situation.words.find(w.keys))
        ]
        missing = [word.text for word in clause.words if word not in known]
        if not missing or not any(word.entity_ids or word.has("kind") for word in known):
            return None
        found = list_matching(known, lambda entity: True, self._situation.words)
        exact = {key for word in known for key in word.entity_ids}
        found = [entity for entity in found if entity.id in exact] or found
        found = [
            entity
            for entity in found
            if entity.domain != "person" and self._index.get_state(entity.id) not in NO_STATE
        ]
        if not 0 < len(found) <= MAX_DESCRIBED:
            return None
        states = self._say_states(found)
        text = self._writer.say("cannot.part", missing=" ".join(missing), states=states)
        topic = Topic("question", (clause,), tuple(entity.id for entity in found)).to_json()
        return replace(self._reply(text, found), topic=topic, is_guess=True)

    def _names_things(self, clause: Clause) -> bool:
        kinds = {key for word in clause.words for key in word.keys if key.startswith("kind.")}
        return bool(kinds) and "kind.person" not in kinds

    def _say_playing(self, clause: Clause) -> Reply:
        """Return what plays, in the place or on the player that is named."""
        words = [word for word in clause.words if not word.has("property") or word.entity_ids]
        players = list_matching(words, lambda entity: entity.domain == "media_player", self._situation.words)
        playing = [player for player in players if self._index.get_state(player.id) == "playing"]
        if not playing:
            return self._reply(self._writer.say("state.nothing_plays"), players if len(players) == 1 else ())
        return self._describe_entities(playing)

    def _describe(self, clause: Clause) -> Reply | None:
        """Describe the things that a question names: "what is the thermostat doing?"."""
        words = [word for word in clause.words if not word.has("property") or word.entity_ids]
        if not words or (
            clause.do and not clause.is_fragment and any("kind.person" in w.keys for w in words)
        ):
            return None
        if len(clause.unknown) > 1:
            return None
        named_ids = {key for word in words for key in word.entity_ids}
        search = Search(
            lambda entity: entity.domain != "automation" or entity.id in named_ids,
            is_plural=any(word.is_plural for word in words),
            area_id=self._situation.area_id,
        )
        targets = find_targets(words, clause.excluded, search, self._situation.words)
        entities = targets.entities or (() if targets.fault else targets.choices)
        if not entities:
            missing = targets.missing or clause.text
            if targets.fault == "elsewhere" and targets.choices:
                text = say_none_there(self._situation, words, missing, targets.choices)
                return Reply(text, is_guess=True)
            return Reply(say_missing(self._situation, missing), is_guess=True)
        if "how_many" in clause.ask:
            names = self._writer.names(entities[:MAX_LISTED])
            return self._reply(self._writer.say("state.count", count=len(entities), names=names), entities)
        if len(entities) == 1 and (offer := self._offer(clause, entities[0])):
            return offer
        if len(entities) == 1 and clause.is_question and entities[0].domain == "scene":
            return self._abilities.say_uses(entities[0])  # It has no state.
        return self._describe_entities(entities)

    def _offer(self, clause: Clause, entity: Entity) -> Reply | None:
        """Return the state of a thing that was only named, and offer to switch it."""
        state = self._index.get_state(entity.id)
        if (
            clause.is_question
            or not clause.is_fragment
            or entity.domain not in _SWITCHED
            or state not in _OPPOSITES
        ):
            return None
        do = _OPPOSITES[state]
        name, now = self._writer.name(entity), self._writer.state(self._index, entity)
        topic = Topic("offer", (replace(clause, do=(do,)),), (entity.id,), (entity.id,))
        return Reply(self._writer.say(f"state.offer_{do}", name=name, state=now), topic=topic.to_json())

    def _list_unavailable(self, clause: Clause) -> Reply:
        words = [word for word in clause.words if not word.has("property") or word.entity_ids]
        matching = list_matching(words, lambda e: True, self._situation.words)
        found = [
            entity
            for entity in matching
            if self._index.get_state(entity.id)
            == ("off" if self._index.get_device_class(entity.id) == "connectivity" else UNAVAILABLE)
        ]
        if not found and words and matching:
            return self._describe_entities(matching[:MAX_DESCRIBED])
        if not found:
            return self._reply(self._writer.say("state.all_available"), ())
        return self._reply(
            self._writer.say("state.these_unavailable", names=self._writer.names(found)), found
        )

    def _list_rooms(self) -> Reply:
        names = self._writer.join(self._writer.name(area) for area in self._index.areas.values())
        return Reply(self._writer.say("state.rooms", names=names))

    def _list_things(self, clause: Clause) -> Reply:
        words = [word for word in clause.words if "kind.device" not in word.keys]
        found = list_matching(words, lambda e: True, self._situation.words)
        if "labelled" not in clause.ask:
            found = [entity for entity in found if entity.domain in _CONTROLLED] or found
        if not found:
            missing = " ".join(word.text for word in words) or clause.text
            return Reply(say_missing(self._situation, missing), is_guess=True)
        names = self._writer.names(found[: MAX_LISTED * 2])
        return self._reply(self._writer.say("state.there_are", names=names), found)


def _asks_for_now(clause: Clause) -> bool:
    """Return whether a question may be about the present, and not about a reason or a doer."""
    is_other = not _NOT_OF_NOW.isdisjoint(clause.ask) or clause.tense is not None
    return not is_other and clause.time.is_empty and not clause.refer


def _asks_what_plays(clause: Clause) -> bool:
    return "playing" in clause.properties and (clause.is_question or not clause.do)
