"""Answers questions about people: who is at home, and where somebody is."""

from collections.abc import Sequence
from dataclasses import replace

from sash.intents.asking.answers import Answers
from sash.intents.asking.conditions import Condition, find_condition
from sash.intents.asking.states import StateAnswers
from sash.intents.missing_words import find_place
from sash.intents.past.sources import are_doors
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply
from sash.intents.targets import list_matching
from sash.ports.home import NO_STATE, Entity

_AT_DOORS = frozenset({"kind.door", "kind.gate", "noun.front_door", "noun.back_door", "room.outside"})


class PeopleAnswers(Answers):
    """Answers the questions of one sentence about people."""

    def answer(self, clause: Clause) -> Reply | None:
        """Return the answer to a question about people; None for any other question."""
        is_of_house = clause.do == ("vacant",) and any("room.house" in w.keys for w in clause.words)
        if not (_is_about_people(clause) or is_of_house or self._means_everybody()):
            return None
        people = [e for e in self._index.entities.values() if e.domain == "person"]
        if clause.do == ("vacant",) and not self._names_room(clause):
            return self._tell_if_nobody(people) if people else None
        words = [word for word in clause.words if "kind.person" not in word.keys]
        named = list_matching(words, lambda e: e.domain == "person", self._situation.words) if words else []
        if "where" in clause.ask:
            return self._locate(named, words) if words else None
        if named and (condition := find_condition(clause.do, self._index)):
            return (
                StateAnswers(self._situation).answer_one(named[0], condition, clause)
                if len(named) == 1
                else None
            )
        is_home = find_condition(clause.do, self._index)
        if words and clause.do in ((), ("moving",)) and clause.is_question and "where" not in clause.ask:
            return self._answer_presence(words, asks_who="who" in clause.ask)
        if people and not words and is_home is None and self._asks_who_is_in(clause):
            is_home = Condition("home", True, self._index)
            return replace(self._tell_who_is_home(clause, is_home, people), is_guess=True)
        if words or not people or is_home is None or is_home.name != "home":
            return None
        return self._tell_who_is_home(clause, is_home, people)

    def _tell_who_is_home(self, clause: Clause, is_home: Condition, people: Sequence[Entity]) -> Reply:
        met = [person for person in people if is_home.is_met(person)]
        if "who" in clause.ask:
            key = "people.home" if is_home.is_true else "people.away"
            if not met:
                return self._reply(self._writer.say("people.nobody"), people)
            one = "" if len(met) == 1 else "_all"
            return self._reply(self._writer.say(f"{key}{one}", names=self._writer.names(met)), met)
        if self._asks_for_nobody():
            return self._tell_if_nobody(people)
        if "how_many" in clause.ask:
            names = f": {self._writer.names(met)}" if met else ""
            return self._reply(f"{len(met)}{names}.", met or people)
        if self._means_everybody():
            everybody = replace(clause, is_all=True)
            return StateAnswers(self._situation).answer_many(everybody, is_home, people)
        if not is_home.is_true:
            return StateAnswers(self._situation).answer_many(clause, is_home, people)
        if not met:
            return self._reply(self._writer.say("people.no_nobody"), people)
        one = "" if len(met) == 1 else "_all"
        return self._reply(self._writer.say(f"people.yes{one}", names=self._writer.names(met)), met)

    def _tell_if_nobody(self, people: Sequence[Entity]) -> Reply:
        """Return whether nobody is at home: "is everybody out?"."""
        at_home = [person for person in people if self._index.get_state(person.id) == "home"]
        if not at_home:
            return self._reply(self._writer.say("people.yes_nobody"), people)
        # Many languages answer "is everybody out?" and "is nobody home?" with different words for "no".
        key = "people.not_out" if self._means_everybody() else "people.no_home"
        one = "" if len(at_home) == 1 else "_all"
        return self._reply(self._writer.say(f"{key}{one}", names=self._writer.names(at_home)), at_home)

    def _means_everybody(self) -> bool:
        """Return whether a sentence is about all people of the home: "is everyone home?"."""
        return bool(self._situation.sentence.find("everybody"))

    def _names_room(self, clause: Clause) -> bool:
        """Return whether a question names a part of the home."""
        return any("room.house" not in word.keys and "kind.person" not in word.keys for word in clause.words)

    def _asks_who_is_in(self, clause: Clause) -> bool:
        """Return whether a sentence asks for people and names no place: "who is in?"."""
        has_more = clause.do or clause.refer or clause.tense or not clause.time.is_empty
        return clause.ask[:1] == ("who",) and not has_more and len(self._situation.sentence.words) > 1

    def _asks_for_nobody(self) -> bool:
        """Return whether a sentence expects that nobody is at home: "nobody's home, right?"."""
        return any(match.tag == "condition.nobody" for match in self._situation.sentence.matches)

    def _answer_presence(self, words: Sequence[Word], *, asks_who: bool) -> Reply | None:
        """Return whether a sensor sees people in a place: "is there anyone in the living room?".

        A sensor does not tell who they are.
        """
        condition = Condition("moving", True, self._index)
        sensors = list_matching(words, condition.applies_to, self._situation.words)
        if not sensors and self._are_doors(words):
            return Reply(self._writer.say("people.unseen"))
        if not sensors:
            place = find_place(self._situation, words) if asks_who else None
            return (
                Reply(self._writer.say("past.unwatched", place=place), is_guess=True)
                if place is not None
                else None
            )
        seen = [sensor for sensor in sensors if condition.is_met(sensor)]
        key = f"people.{'seen' if seen else 'not_seen'}{'_who' if asks_who else ''}"
        return self._reply(self._writer.say(key), seen or sensors)

    def _are_doors(self, words: Sequence[Word]) -> bool:
        """Return whether words name doors, or what is outside of them."""
        entities = self._index.entities
        named = [entities[key] for word in words for key in word.entity_ids if key in entities]
        keys = frozenset(key for word in words if not word.entity_ids for key in word.keys)
        return are_doors(self._situation, named) and (bool(named) or not keys.isdisjoint(_AT_DOORS))

    def _locate(self, named: Sequence[Entity], words: Sequence[Word]) -> Reply | None:
        if not named:
            others = list_matching(words, lambda e: True, self._situation.words)
            if others:
                return self._say_area(others)
            missing = " ".join(word.text for word in words)
            return Reply(self._writer.say("people.not_known", name=missing), is_guess=True)
        parts = []
        for person in named:
            state = self._index.get_state(person.id)
            key = {"home": "people.at_home", "not_home": "people.out"}.get(state, "people.at")
            if state in NO_STATE:
                key = "people.unknown_place"
            parts.append(self._writer.say(key, name=self._writer.name(person), place=state.replace("_", " ")))
        return self._reply(" ".join(parts), named)

    def _say_area(self, entities: Sequence[Entity]) -> Reply | None:
        entity = entities[0]
        area = self._index.get_area(entity)
        if area is None:
            return None
        name, place = self._writer.name(entity), self._writer.name(area)
        return self._reply(self._writer.say("state.is_in", name=name, place=place), [entity])


def _is_about_people(clause: Clause) -> bool:
    return bool(set(clause.ask) & {"who", "where"}) or any("kind.person" in w.keys for w in clause.words)
