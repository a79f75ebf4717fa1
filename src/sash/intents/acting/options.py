"""Finds an option that a command names: a source of a player, a speed of a vacuum, a mode of a fan."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sash.intents.sentence.clause import Clause
from sash.intents.situation import Situation
from sash.intents.targets import list_matching
from sash.intents.words.phrases import PhraseFinder
from sash.intents.words.tokens import split_words
from sash.ports.home import UNAVAILABLE, Entity

# "Quiet" is an act as well.
_ACTS = frozenset({"on", "play", "start", "run", "mute", "quieter"})
_PLAYERS = "media_player"


class _Setting(NamedTuple):
    """The attribute that lists the options of a domain, and the service that chooses one of them."""

    attribute: str
    service: str
    field: str


_SETTINGS: Mapping[str, tuple[_Setting, ...]] = {
    _PLAYERS: (_Setting("source_list", "media_player.select_source", "source"),),
    "vacuum": (_Setting("fan_speed_list", "vacuum.set_fan_speed", "fan_speed"),),
    "fan": (_Setting("preset_modes", "fan.set_preset_mode", "preset_mode"),),
    "climate": (
        _Setting("preset_modes", "climate.set_preset_mode", "preset_mode"),
        _Setting("hvac_modes", "climate.set_hvac_mode", "hvac_mode"),
    ),
    "humidifier": (_Setting("available_modes", "humidifier.set_mode", "mode"),),
    "select": (_Setting("options", "select.select_option", "option"),),
    "input_select": (_Setting("options", "input_select.select_option", "option"),),
}


class OptionChoice(NamedTuple):
    """An option with the service and the field that set it, and the entities that have it."""

    option: str
    service: str
    field: str
    entities: tuple[Entity, ...]

    @property
    def is_setting(self) -> bool:
        """Return True if the entities are nothing but lists of options, often settings of other things."""
        return self.field == "option"


def find_option(situation: Situation, clause: Clause) -> OptionChoice | None:
    """Return the option that a command names, with the entities that are meant; None if it names none."""
    if not _ACTS.issuperset(clause.do):
        return None
    said = _read_meanings(situation, clause.text)
    acts = _list_act_words(situation, clause)
    found: dict[tuple[_Setting, str], list[Entity]] = {}
    lengths: dict[tuple[_Setting, str], int] = {}
    for entity in situation.index.entities.values():
        for setting, option in _list_options(situation, entity):
            own = _list_own_words(situation.reader.lexicon.nouns, option)
            # "Turn on the light" does not name the option "on".
            if own and said.issuperset(own) and not acts.issuperset(own):
                found.setdefault((setting, option), []).append(entity)
                lengths[setting, option] = len(own)
    for setting, option in sorted(found, key=lambda key: -lengths[key]):
        if entities := _choose_entities(situation, clause, option, found[setting, option]):
            return OptionChoice(option, setting.service, setting.field, tuple(entities))
    return None


def _list_options(situation: Situation, entity: Entity) -> list[tuple[_Setting, str]]:
    state = situation.index.states.get(entity.id)
    if state is None or state.state == UNAVAILABLE:
        return []
    settings = _SETTINGS.get(entity.domain, ())
    return [(each, str(option)) for each in settings for option in state.attributes.get(each.attribute) or ()]


def _read_meanings(situation: Situation, text: str) -> frozenset[str]:
    """Return the words of a command, and the English words for those that usually name options."""
    words, lexicon = split_words(text), situation.reader.lexicon
    found = lexicon.finder.find_all(words)
    digits = (f"{lexicon.numbers[word]:g}" for word in words if word in lexicon.numbers)
    return frozenset((*words, *digits, *(match.value for match in found if match.kind == "option")))


def _list_act_words(situation: Situation, clause: Clause) -> frozenset[str]:
    """Return the words that say what to do, such as "turn on", without those that usually name options."""
    words = split_words(clause.text)
    found = situation.reader.lexicon.finder.find_all(words)
    acts = {place for match in found if match.kind == "do" for place in match.places}
    options = {place for match in found if match.kind == "option" for place in match.places}
    return frozenset(words[place] for place in acts - options)


@lru_cache(maxsize=4096)
def _list_own_words(nouns: PhraseFinder, option: str) -> tuple[str, ...]:
    """Return the words of an option that name no kind of thing: "jazz" of "Jazz radio"."""
    return tuple(word for word in split_words(option) if not nouns.find_all([word]))


def _choose_entities(
    situation: Situation, clause: Clause, option: str, entities: Sequence[Entity]
) -> list[Entity]:
    """Return the entities that a clause names, without the words of the option.

    Without a name, the thing of the last turn is meant, or any player, first in the area of the speaker.
    """
    ids = {entity.id for entity in entities}
    of_option = set(split_words(option))
    words = [
        word
        for word in clause.words
        if not _read_meanings(situation, word.text) & of_option and "kind.scene" not in word.keys
    ]
    named = list_matching(words, lambda entity: entity.id in ids, situation.words) if words else []
    focused = [entity for entity in entities if entity.id in situation.focus_ids[:1]]
    if named or entities[0].domain != _PLAYERS:
        return named or ([] if words else focused)
    if any(situation.words.is_place(word.keys) for word in words):
        return []  # "Play some jazz in the bedroom" means no player of another room.
    here = [entity for entity in entities if entity.area_id == situation.area_id]
    return focused or here or list(entities)
