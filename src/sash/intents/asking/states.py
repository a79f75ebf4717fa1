"""Answers questions about the states of things: "is the window open?", "which lights are on?"."""

from collections.abc import Sequence
from itertools import pairwise

from sash.intents.acting.default_domains import EVERYTHING
from sash.intents.asking.answers import MAX_LISTED, Answers, say_none
from sash.intents.asking.conditions import ASKS_FOR_ANY, Condition, find_condition
from sash.intents.missing_words import find_place, say_missing, say_none_there
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply
from sash.intents.targets import Search, Targets
from sash.ports.home import UNAVAILABLE, Entity

# If not one of so few things has a state, their own states are told.
MAX_TOLD = 2
# "Did I forget to lock the door?", "should I close the blinds?": the answer is how things are.
_TOLD = frozenset({"forgot", "possible"})


class StateAnswers(Answers):
    """Answers the questions of one sentence about states."""

    def answer(self, clause: Clause, condition: Condition) -> Reply:
        """Return which of the things that a question names have a state."""
        words = [word for word in clause.words if not word.has("property") or word.entity_ids]
        is_people = any("kind.person" in word.keys or word.entity_ids for word in words)
        if condition.name == "home" and not is_people:
            return Reply(say_missing(self._situation, clause.text), is_guess=True)
        if (lacking := self._lack_sensors(condition)) is not None:
            return lacking
        is_list = bool(set(clause.ask) & {"which", "what", "how_many", "rooms"})
        is_open = is_list or clause.is_all or clause.is_any or clause.is_everything
        is_open = is_open or condition.name in ASKS_FOR_ANY
        if not words and not is_open:
            return Reply(self._writer.say("ask.what"), is_guess=True)
        is_many = is_open or any(word.is_plural for word in words)
        search = Search(
            condition.applies_to, is_plural=is_many, area_id=self._situation.area_id if not is_many else None,
            focus_ids=self._situation.focus_ids[:1],
        )  # fmt: skip
        targets = self._find_in_places(words, clause.excluded, search)
        if not targets.entities and targets.choices and not targets.fault:
            targets, is_many = Targets(targets.choices), True
        if not targets.entities:
            place = find_place(self._situation, words) if condition.name == "moving" else None
            if place is not None:
                return Reply(self._writer.say("past.unwatched", place=place), is_guess=True)
            return self._lack_state(clause, targets)
        entities = self._drop_automations(targets.entities, words)
        if all(not word.entity_ids and self._situation.words.is_place(word.keys) for word in words):
            entities = [entity for entity in entities if entity.domain in EVERYTHING] or entities
        if is_list:
            return self._list_matching(clause, condition, entities)
        is_named = any(word.entity_ids for word in words)
        if len(entities) == 1 and (is_named or not (is_many and words)):
            return self.answer_one(entities[0], condition, clause)
        return self.answer_many(clause, condition, entities)

    def _drop_automations(self, entities: Sequence[Entity], words: Sequence[Word]) -> list[Entity]:
        if any("kind.automation" in word.keys or word.entity_ids for word in words):
            return list(entities)
        return [e for e in entities if e.domain not in ("automation", "script")] or list(entities)

    def answer_one(self, entity: Entity, condition: Condition, clause: Clause) -> Reply:
        is_met = condition.is_met(entity)
        name = self._writer.name(entity)
        if is_met is None:
            key = "state.unavailable" if self._index.get_state(entity.id) == UNAVAILABLE else "state.unknown"
            return self._reply(self._writer.say(key, name=name), [entity])
        if not _TOLD.isdisjoint(clause.ask) or self._asks_which_state(clause):
            return self._describe_entities([entity])
        state = self._writer.state(self._index, entity)
        return self._reply(
            self._writer.say("state.yes" if is_met else "state.no", name=name, state=state), [entity]
        )

    def _asks_which_state(self, clause: Clause) -> bool:
        """Return whether a question names two opposite states: "is the lamp on or off?"."""
        named = [find_condition((do,), self._index) for do in clause.do]
        return any(
            one and other and one.name == other.name and one.is_true != other.is_true
            for one, other in pairwise(named)
        )

    def answer_many(self, clause: Clause, condition: Condition, entities: Sequence[Entity]) -> Reply:
        if "possible" in clause.ask or self._asks_which_state(clause):
            return self._describe_entities(entities)
        met = [entity for entity in entities if condition.is_met(entity)]
        unmet = [entity for entity in entities if condition.is_met(entity) is False]
        has_plural = not clause.is_any and any(word.is_plural for word in clause.words)
        if clause.is_all or clause.is_everything or has_plural:
            if unmet:
                return self._reply(self._writer.say("state.no_not", things=self._say_states(unmet)), unmet)
            text = self._add_unsure(self._writer.say("state.yes_all") if met else "", condition, entities)
            return self._reply(text, met or entities)
        if met:
            return self._reply(self._writer.say("state.yes_these", things=self._say_states(met)), met)
        no = self._say_none(entities, condition, says_no=True) if unmet else ""
        return self._reply(self._add_unsure(no, condition, entities), entities)

    def _add_unsure(self, text: str, condition: Condition, entities: Sequence[Entity]) -> str:
        """Return an answer with the names of the things whose state is not known, if there are any."""
        unsure = [entity for entity in entities if condition.is_met(entity) is None]
        if not unsure:
            return text
        names = self._writer.names(unsure[:MAX_LISTED])
        added = self._writer.say("state.but_unsure" if text else "state.unsure", names=names)
        return f"{text} {added}".strip()

    def _list_matching(self, clause: Clause, condition: Condition, entities: Sequence[Entity]) -> Reply:
        met = [entity for entity in entities if condition.is_met(entity)]
        if "how_many" in clause.ask:
            names = self._writer.names(met[:MAX_LISTED])
            if met:
                return self._reply(self._writer.say("state.count", count=len(met), names=names), met)
        if not met:
            is_known = any(condition.is_met(entity) is False for entity in entities)
            none = self._say_none(entities, condition) if is_known else ""
            return self._reply(self._add_unsure(none, condition, entities), entities)
        return self._reply(self._writer.say("state.these", things=self._say_states(met)), met)

    def _say_none(self, entities: Sequence[Entity], condition: Condition, *, says_no: bool = False) -> str:
        """Return that not one of these things has the state. A few are named with their own states."""
        known = [entity for entity in entities if condition.is_met(entity) is not None] or entities
        if len(known) <= MAX_TOLD:
            key = "state.no_not" if says_no else "state.these"
            return self._writer.say(key, things=self._say_states(known))
        return say_none(self._index, self._writer, known, condition.find_state(known[0]), says_no=says_no)

    def _lack_sensors(self, condition: Condition) -> Reply | None:
        """Return that no sensor of the home reports such a state; None if one does, or none has to."""
        what = self._writer.table("reported").get(condition.name)
        if what is None or any(map(condition.applies_to, self._index.entities.values())):
            return None
        return Reply(self._writer.say("state.unreported", what=what), is_guess=True)

    def _lack_state(self, clause: Clause, targets: Targets) -> Reply:
        if targets.fault == "unable" and targets.choices:
            return self._describe_entities(targets.choices)
        missing = targets.missing or clause.text
        if targets.fault == "elsewhere" and targets.choices:
            text = say_none_there(self._situation, clause.words, missing, targets.choices)
            return Reply(text, is_guess=True)
        return Reply(say_missing(self._situation, missing), is_guess=True)
