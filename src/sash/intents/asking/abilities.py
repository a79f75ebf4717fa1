"""Answers what can be done with a thing, and what scenes, scripts and automations are for."""

from collections.abc import Iterator, Mapping, Sequence

from sash.intents.asking.answers import Answers
from sash.intents.question_detection import asks_ability
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply
from sash.intents.targets import list_matching
from sash.ports.home import Entity, State

# These consist of other things, and have no state of their own that a person asks for.
COMPOSED = frozenset({"scene", "script", "automation"})
_COMPOSED_KINDS = frozenset(f"kind.{domain}" for domain in COMPOSED)
_LISTING = frozenset({"what", "which", "how_many"})
# The things that can be done with the things of a domain. The keys of `able` in the answers name them.
_ABLE: Mapping[str, tuple[str, ...]] = {
    "alarm_control_panel": ("arm",),
    "automation": ("on_off",),
    "button": ("start",),
    "climate": ("on_off", "temperature"),
    "cover": ("open_close",),
    "fan": ("on_off", "speed"),
    "humidifier": ("on_off",),
    "input_boolean": ("on_off",),
    "lawn_mower": ("clean",),
    "light": ("on_off",),
    "lock": ("lock",),
    "media_player": ("on_off", "play", "volume"),
    "scene": ("start",),
    "script": ("start",),
    "siren": ("on_off",),
    "switch": ("on_off",),
    "todo": ("items",),
    "vacuum": ("clean",),
    "valve": ("open_close",),
    "water_heater": ("on_off", "temperature"),
}
_COLOURED = frozenset({"hs", "xy", "rgb", "rgbw", "rgbww"})
_PLAIN = frozenset({"onoff", "unknown"})
MAX_NAMED = 3
MAX_USED = 10


class AbilityAnswers(Answers):
    """Answers the questions of one sentence about what things are able to do."""

    def answer(self, clause: Clause) -> Reply | None:
        """Return what a thing can do, what it is for, or which scenes there are; None for other questions."""
        words = [
            word for word in clause.words if word.is_known and (word.entity_ids or not word.has("property"))
        ]
        if not words:
            return None
        sentence = self._situation.sentence
        asked = {match.value for match in sentence.find("about")}
        if asks_ability(sentence.text, self._writer.language):
            asked.add("ability")
        if _LISTING.intersection(clause.ask) and clause.do == ("darker",):
            return self._list_dimmable(words)
        if _LISTING.intersection(clause.ask) and (rules := self._list_rules_of(words)):
            return rules
        if not clause.do and _LISTING.intersection(clause.ask) and _are_kinds(words):
            return self._list(words, clause)
        if not asked:
            return None
        found = list_matching(words, lambda entity: True, self._situation.words)
        exact = {key for word in words for key in word.entity_ids}
        found = [entity for entity in found if entity.id in exact] or found
        composed = [entity for entity in found if entity.domain in COMPOSED]
        if "uses" in asked and composed and len(composed) == len(found):
            return self.say_uses(composed[0])
        able = [entity for entity in found if entity.domain in _ABLE and entity.domain not in COMPOSED]
        if "ability" not in asked or not found:
            return None
        return self._say_able((able or composed)[:MAX_NAMED], found)

    def _list_dimmable(self, words: Sequence[Word]) -> Reply | None:
        """Return the lights that can be dimmed."""
        lights = list_matching(words, lambda entity: entity.domain == "light", self._situation.words)
        found = [each for each in lights if "dim" in _list_acts(each, self._index.states.get(each.id))]
        if not found:
            return None
        return self._reply(self._writer.say("state.there_are", names=self._writer.names(found)), found)

    def _list_rules_of(self, words: Sequence[Word]) -> Reply | None:
        """Return the automations or scenes that use a thing: "which automation switches the lamp on?"."""
        kinds = frozenset().union(*(word.keys & _COMPOSED_KINDS for word in words if not word.entity_ids))
        ids = {key for word in words for key in word.entity_ids}
        if not kinds or not ids or any(key.partition(".")[0] in COMPOSED for key in ids):
            return None
        found = [
            entity
            for entity in self._index.entities.values()
            if f"kind.{entity.domain}" in kinds and ids & self._index.list_contents(entity.id)[0]
        ]
        if not found:
            return None
        return self._reply(self._writer.say("state.there_are", names=self._writer.names(found)), found)

    def _list(self, words: Sequence[Word], clause: Clause) -> Reply | None:
        found = list_matching(words, lambda entity: entity.domain in COMPOSED, self._situation.words)
        if not found:
            return None
        names = self._writer.names(found)
        if "how_many" in clause.ask:
            return self._reply(self._writer.say("state.count", count=len(found), names=names), found)
        return self._reply(self._writer.say("state.there_are", names=names), found)

    def say_uses(self, entity: Entity) -> Reply:
        """Return which things a scene, a script or an automation has to do with."""
        members, _ = self._index.list_contents(entity.id)
        used = [each for each in self._index.entities.values() if each.id in members][:MAX_USED]
        if not used:
            return self._say_able([entity], [entity])
        name, names = self._writer.name(entity), self._writer.names(used)
        return self._reply(self._writer.say("able.uses", name=name, names=names), [entity])

    def _say_able(self, able: Sequence[Entity], found: Sequence[Entity]) -> Reply:
        if not able:
            name = self._writer.name(found[0])
            return self._reply(self._writer.say("able.only_tell", name=name), found[:1])
        acts = [tuple(_list_acts(entity, self._index.states.get(entity.id))) for entity in able]
        same = [entity for entity, each in zip(able, acts, strict=True) if each == acts[0]]
        listed = self._writer.join(self._writer.phrase(f"able.{act}") for act in acts[0])
        text = self._writer.say("able.with", name=self._writer.names(same), acts=listed)
        return self._reply(text, same)


def _list_acts(entity: Entity, state: State | None) -> Iterator[str]:
    yield from _ABLE[entity.domain]
    modes = set(state.attributes.get("supported_color_modes") or ()) if state else set()
    if modes - _PLAIN:
        yield "dim"
    if modes & _COLOURED:
        yield "colour"


def _are_kinds(words: Sequence[Word]) -> bool:
    """Return whether words are nothing but "scenes" and the like, beside places."""
    return any(word.keys & _COMPOSED_KINDS and not word.entity_ids for word in words) and not any(
        word.entity_ids for word in words
    )
