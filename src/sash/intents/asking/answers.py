"""What all answers about the present share: they say states, and cite them."""

from collections.abc import Iterable, Mapping, Sequence

from sash.home.answer_sources import cite_state
from sash.home.index import HomeIndex
from sash.intents.answers.writer import AnswerWriter
from sash.intents.sentence.clause import Word
from sash.intents.situation import Reply, Situation
from sash.intents.targets import Search, Targets, find_targets
from sash.ports.home import NO_STATE, Entity
from sash.values.citations import MAX_CITATIONS

MAX_LISTED = 12
# The kinds of sensors and covers, by device class.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("door", "garage", "garage_door", "gate"), "door"),
    **dict.fromkeys(("motion", "occupancy", "presence", "moving"), "motion"),
    "window": "window",
    "opening": "opening",
    "moisture": "moisture",
    "smoke": "smoke",
    "lock": "lock",
}
_OPENINGS = frozenset({"door", "window", "opening"})
# Sensors of these classes notice something, or nothing.
_NOTICING = frozenset({"motion", "occupancy", "smoke", "gas", "carbon_monoxide", "sound", "vibration"})
# More things are listed with their states, in one sentence.
MAX_DESCRIBED = 3


class Answers:
    """Answers about the present of the home, in the language of the sentence."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._index = situation.index
        self._writer = situation.writer

    def _find_in_places(self, words: Sequence[Word], excluded: Sequence[Word], search: Search) -> Targets:
        """Return the things in all places that are named: "in the bedroom or in the living room"."""
        home = self._situation.words
        places = [word for word in words if not word.entity_ids and home.is_place(word.keys)]
        if len(places) < 2:
            return find_targets(words, excluded, search, home)
        others = [word for word in words if word not in places]
        found = [find_targets([*others, place], excluded, search, home) for place in places]
        entities = tuple(dict.fromkeys(entity for each in found for entity in each.entities))
        return Targets(entities) if entities else find_targets(words, excluded, search, home)

    def _describe_entities(self, entities: Sequence[Entity]) -> Reply:
        if len(entities) > MAX_DESCRIBED:
            return self._reply(start_sentence(self._say_states(entities)) + ".", entities)
        parts = [self._describe_one(entity) for entity in entities]
        return self._reply(" ".join(parts), entities)

    def _describe_one(self, entity: Entity) -> str:
        writer, state = self._writer, self._index.states.get(entity.id)
        name = writer.name(entity)
        if state is None or state.state in NO_STATE:
            return writer.say("state.unavailable" if state else "state.unknown", name=name)
        if entity.domain == "climate":
            return self._describe_thermostat(entity)
        title, source = state.attributes.get("media_title"), state.attributes.get("source")
        if entity.domain == "media_player" and title and state.state in ("playing", "paused"):
            what = f"{title} ({source})" if source else str(title)
            return writer.say(f"state.{state.state}", name=name, what=what)
        return writer.say("state.is_now", name=name, state=writer.state(self._index, entity))

    def _describe_thermostat(self, entity: Entity) -> str:
        state = self._index.states[entity.id]
        current, target = (state.attributes.get(key) for key in ("current_temperature", "temperature"))
        action = state.attributes.get("hvac_action") or state.state
        values = {
            "name": self._writer.name(entity),
            "state": self._writer.state_name(str(action)).replace("_", " "),
            "current": self._writer.quantity(current, "°C") if isinstance(current, int | float) else "?",
            "target": self._writer.quantity(target, "°C") if isinstance(target, int | float) else "",
        }
        if not isinstance(target, int | float):
            return self._writer.say("state.thermostat_off", **values)
        return self._writer.say("state.thermostat", **values)

    def _say_states(self, entities: Sequence[Entity]) -> str:
        """Return names with their state, said once if it is the same for all."""
        states = {self._writer.state(self._index, entity) for entity in entities}
        if len(states) == 1:
            key = "state.is" if len(entities) == 1 else "state.are"
            return self._writer.phrase(key, names=self._writer.names(list(entities)), state=states.pop())
        groups: dict[str, list[Entity]] = {}
        for entity in entities[:MAX_LISTED]:
            groups.setdefault(self._writer.state(self._index, entity), []).append(entity)
        return self._writer.join(
            self._writer.phrase(
                "state.is" if len(same) == 1 else "state.are", names=self._writer.names(same), state=state
            )
            for state, same in groups.items()
        )

    def _reply(self, text: str, entities: Iterable[Entity]) -> Reply:
        found = list(entities)
        citations = tuple(
            cite_state(self._index, self._index.states[entity.id])
            for entity in found[:MAX_CITATIONS]
            if entity.id in self._index.states
        )
        return Reply(text, citations=citations, topic={"entity_ids": [entity.id for entity in found]})


def say_none(
    index: HomeIndex, writer: AnswerWriter, entities: Sequence[Entity], state: str, *, says_no: bool = False
) -> str:
    """Return that not one of several things is in a state: "No lights are on.".

    With `says_no` it answers a yes-or-no question: "No, no lights are on.".
    """
    things = name_kind(index, writer, entities)
    classes = {index.get_device_class(entity.id) for entity in entities}
    if state == "on" and classes <= _NOTICING and all(e.domain == "binary_sensor" for e in entities):
        return writer.say("state.no_noticed" if says_no else "state.none_noticed", things=things)
    named = writer.state_name(state, index.get_device_class(entities[0].id)).replace("_", " ")
    if things == writer.phrase("kinds.things"):
        return writer.say("state.no_nothing" if says_no else "state.nothing", state=named)
    return writer.say("state.no_none" if says_no else "state.none", things=things, state=named)


def name_kind(index: HomeIndex, writer: AnswerWriter, entities: Iterable[Entity]) -> str:
    """Return what some things are: "lights", "motion sensors", or "things" if they are of several kinds."""
    kinds = {_find_kind(index, entity) for entity in entities}
    if len(kinds) > 1 and kinds <= _OPENINGS:
        kinds = {"opening"}
    key = f"kinds.{kinds.pop()}" if len(kinds) == 1 else ""
    return writer.phrase(key if writer.has(key) else "kinds.things")


def _find_kind(index: HomeIndex, entity: Entity) -> str:
    """Return the kind of a thing by its device class, such as "window", or else its domain."""
    if entity.domain not in ("binary_sensor", "cover"):
        return entity.domain
    return _KINDS.get(index.get_device_class(entity.id), entity.domain)


def start_sentence(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return text[:1].upper() + text[1:]
