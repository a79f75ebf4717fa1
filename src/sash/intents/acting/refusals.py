"""Says why a command cannot be done, with the nearest thing that would work."""

from collections.abc import Iterable, Sequence
from typing import Any

from sash.intents.acting.act import read_act
from sash.intents.acting.already_so import say_not_so
from sash.intents.acting.default_domains import choose_domains, is_property
from sash.intents.acting.plan import Plan, list_ids
from sash.intents.acting.services import CannotDo
from sash.intents.missing_words import find_place, say_missing, say_none_there
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Situation
from sash.intents.targets import Targets
from sash.ports.home import Entity

_WARMTH = frozenset({"warmer", "colder", "heat", "cool"})
_ROBOTS, _PLAYERS = frozenset({"vacuum", "lawn_mower"}), frozenset({"media_player"})
_THERMOSTATS = frozenset({"climate"})
_READ_ONLY = frozenset({"sensor", "binary_sensor", "weather", "event"})
_PLAY_ACTS = frozenset({"play"})
MAX_NAMED = 6


class Refusals:
    """The refusals of the commands in one sentence."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._index = situation.index
        self._writer = situation.writer

    def explain(self, targets: Targets, clause: Clause) -> Plan:
        """Return why a command cannot be done, with the nearest thing that would work."""
        writer, choices = self._writer, targets.choices
        if targets.fault == "unknown" and not choices and (title := self._find_title(clause)):
            return Plan(text=self._say_no_title(title), is_refused=True, is_unsure=True)
        if targets.fault == "unable":
            if self._lacks_thermostat(clause):
                return Plan(text=self._say_no_thermostat(clause), is_refused=True)
            if "clean" in clause.do and (vacuums := self._list_vacuums()):
                return self._offer_cleaning(vacuums)
            if (not_there := self._say_not_in_place(clause)) is not None:
                return Plan(text=not_there, is_refused=True)
            choices = tuple(each for each in choices if each.domain not in _READ_ONLY) or choices
            text = writer.say("cannot.unable", names=writer.names(choices[:MAX_NAMED]))
            return Plan(text=text, entity_ids=list_ids(choices), is_refused=True)
        if targets.fault == "elsewhere" and "clean" in clause.do and (vacuums := self._list_vacuums()):
            return self._offer_cleaning(vacuums)
        if targets.fault == "elsewhere" and len(choices) != 1:
            text = say_none_there(self._situation, clause.words, targets.missing, choices)
            offered = list_ids(choices) if len(choices) <= MAX_NAMED else ()
            return Plan(text=text, choices=offered, is_refused=True)
        if len(choices) == 1:
            key = "ask.elsewhere" if targets.fault == "elsewhere" else "ask.unknown_do_you_mean"
            text = writer.say(key, missing=targets.missing, names=self._name_choices(choices))
            return Plan(text=text, choices=list_ids(choices), is_unsure=targets.fault == "unknown")
        if choices and len(choices) <= MAX_NAMED:
            text = writer.say("ask.unknown_which", missing=targets.missing, names=writer.names(choices, "or"))
            return Plan(text=text, choices=list_ids(choices), is_unsure=targets.fault == "unknown")
        text = say_missing(self._situation, targets.missing or clause.text)
        return Plan(text=text, is_refused=True, is_unsure=True)

    def refuse(self, problems: Sequence[tuple[Entity, CannotDo]]) -> Plan:
        """Return that things cannot do what a command says."""
        entities = [entity for entity, _ in problems]
        problem = problems[0][1]
        if problem.reason == "off":
            text = say_not_so(entities, self._index, self._writer)
            return Plan(text=text, entity_ids=list_ids(entities), is_refused=True)
        values: dict[str, Any] = {"names": self._writer.names(entities)}
        for name in ("maximum", "minimum"):
            if name in problem.values:
                values["limit"] = self._writer.quantity(problem.values[name], problem.values["unit"])
        text = self._writer.say(f"cannot.{problem.reason}", **values)
        return Plan(text=text, entity_ids=list_ids(entities), is_refused=True)

    def refuse_warmth(self, area_id: str) -> Plan:
        """Return that a room has no thermostat, and where there is one."""
        area = self._index.areas[area_id]
        here = Word(area.name, frozenset({f"area:{area_id}"}))
        missing = self._writer.phrase("measure.thermostat")
        return Plan(
            text=say_none_there(self._situation, [here], missing, self._list_thermostats()), is_refused=True
        )

    def _find_title(self, clause: Clause) -> str:
        """Return what a clause wants to be played: "The Office". Empty for other clauses."""
        sentence = self._situation.sentence
        verb = next((m for m in sentence.matches if m.tag == "do.play"), None)
        kinds = (key for word in clause.words for key in word.keys if key.startswith("kind."))
        if verb is None or not _PLAY_ACTS.issuperset(clause.do) or any(kinds):
            return ""
        fillers = {p for m in sentence.matches if m.kind in ("filler", "please") for p in m.places}
        articles = self._situation.reader.lexicon.articles - {"some"}
        named = (
            n
            for n in range(verb.end, len(sentence.words))
            if sentence.words[n] in articles or n not in fillers
        )
        start = next(named, verb.end)
        return sentence.cut(start, len(sentence.words)).strip(" .!?")

    def _say_no_title(self, title: str) -> str:
        players = (e.id for e in self._index.entities.values() if e.domain == "media_player")
        states = (self._index.states[key] for key in players if key in self._index.states)
        listed = (str(each) for state in states for each in state.attributes.get("source_list") or ())
        sources = self._writer.join([*dict.fromkeys(listed)][:MAX_NAMED], "or")
        key = "cannot.title" if sources else "cannot.title_only"
        return self._writer.say(key, title=title, sources=sources)

    def _offer_cleaning(self, vacuums: tuple[Entity, ...]) -> Plan:
        """Offer to clean the whole home, because a robot cannot be sent to one room."""
        key = "ask.which" if len(vacuums) > 1 else "ask.clean_all"
        return Plan(text=self._writer.say(key, names=self._name_choices(vacuums)), choices=list_ids(vacuums))

    def _say_no_thermostat(self, clause: Clause) -> str:
        words = [word for word in clause.words if not is_property(word)]
        if find_place(self._situation, words):
            missing = self._writer.phrase("measure.thermostat")
            return say_none_there(self._situation, words, missing, self._list_thermostats())
        return self._writer.say("cannot.no_thermostat", place=" ".join(word.text for word in words))

    def _say_not_in_place(self, clause: Clause) -> str | None:
        """Say that a place has no player or no robot of its own; None for other commands."""
        words, act = [word for word in clause.words if not is_property(word)], read_act(clause)
        domains = choose_domains(words, act, self._situation.words) if words else None
        others = [e for e in self._index.entities.values() if domains and e.domain in domains]
        if domains == _ROBOTS and others:
            return self._writer.say("cannot.clean_room", names=self._writer.names(others))
        if domains == _PLAYERS and others:
            return say_none_there(self._situation, words, self._writer.phrase("measure.player"), others)
        return None

    def _list_thermostats(self) -> list[Entity]:
        return [each for each in self._index.entities.values() if each.domain in _THERMOSTATS]

    def _list_vacuums(self) -> tuple[Entity, ...]:
        return tuple(each for each in self._index.entities.values() if each.domain == "vacuum")

    def _lacks_thermostat(self, clause: Clause) -> bool:
        """Return whether a command to warm a place names no thing there."""
        words = [word for word in clause.words if not is_property(word)]
        is_warmth = not _WARMTH.isdisjoint(clause.do) and find_place(self._situation, words) is not None
        return is_warmth or (
            bool(words) and choose_domains(words, read_act(clause), self._situation.words) == _THERMOSTATS
        )

    def _name_choices(self, choices: Iterable[Entity]) -> str:
        return self._writer.names(list(choices), "or")
