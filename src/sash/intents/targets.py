"""Finds the entities that the words of a clause mean."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sash.home.index import HomeIndex
from sash.intents.home_words import NO_IDS, HomeWords
from sash.intents.kinds import COVERING_KEYS
from sash.intents.sentence.clause import Word
from sash.intents.words.tokens import remove_accents, split_words
from sash.ports.home import UNAVAILABLE, Entity

Accepts = Callable[[Entity], bool]
Fault = Literal["", "unknown", "elsewhere", "unable"]
# A word of these sections describes a place or a kind, and not one thing by its own name.
_PLACE_KEYS = ("room.", "area:", "floor:")
# So many letters of a word may stand for a whole one: "bed" for "bedside".
MIN_BEGIN_CHARS = 3
_HANGINGS = frozenset({"kind.curtain", "kind.awning"})
_GENERAL_KEYS = frozenset({"room.house", "room.inside", "kind.device", "kind.room"})


@dataclass(frozen=True, slots=True)
class Targets:
    """The entities that a clause means.

    `choices` are set instead of `entities` if several could be meant. `fault` says why there are none: no
    entity has the word `missing` ("unknown"), the thing is not in that place ("elsewhere", with those of
    other places as `choices`), or it cannot do that ("unable", with the thing as `choices`).
    """

    entities: tuple[Entity, ...] = ()
    choices: tuple[Entity, ...] = ()
    fault: Fault = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """How to choose among entities. `focus_ids` are those of earlier sentences, newest first.

    `prefers` leaves out entities for which the command would change nothing. With `goes_on` the sentence
    continues an earlier one, so that the focus counts more than the area of the speaker.
    """

    accepts: Accepts
    is_plural: bool = False
    area_id: str | None = None
    focus_ids: Sequence[str] = ()
    prefers: Accepts | None = None
    goes_on: bool = False


def find_targets(words: Sequence[Word], excluded: Sequence[Word], search: Search, home: HomeWords) -> Targets:
    """Return the entities that some words mean, without those that other words exclude."""
    return _Finder(search, home).find(words, excluded)


def list_matching(words: Sequence[Word], accepts: Accepts, home: HomeWords) -> list[Entity]:
    """Return all entities that have all of the words, in the order of the home."""
    finder = _Finder(Search(accepts), home)
    found = finder.match(finder.choose_words(words))
    return [entity for entity in home.index.entities.values() if entity.id in found]


class _Finder:
    def __init__(self, search: Search, home: HomeWords) -> None:
        self._search = search
        self._home = home
        self._index: HomeIndex = home.index
        self._accepted = {entity.id for entity in self._index.entities.values() if search.accepts(entity)}

    def find(self, words: Sequence[Word], excluded: Sequence[Word]) -> Targets:
        usable = self.choose_words(words)
        found = self.match(usable)
        others = self.choose_words(excluded)
        if others and found:
            # "The lamp on the table" is one thing with both words, "kitchen, hall" are two.
            found -= self.match(others) or frozenset().union(*map(self._list_ids, others))
        if not found:
            return self._explain(usable)
        return self._choose(found, usable)

    def choose_words(self, words: Sequence[Word]) -> list[Word]:
        """Return the words that describe a thing, without general ones such as "house" and "device"."""
        return [word for word in words if not word.keys & _GENERAL_KEYS]

    def match(self, words: Iterable[Word]) -> frozenset[str]:
        """Return the accepted entities that have all of the words."""
        found = frozenset(self._accepted)
        for word in words:
            found &= self._list_ids(word)
        return found

    def _list_ids(self, word: Word) -> frozenset[str]:
        parts = [remove_accents(part) for part in split_words(word.text)]
        by_parts = [frozenset(self._home.by_name.get(part, ())) for part in parts]
        named = frozenset.intersection(*by_parts) if by_parts else frozenset()
        return frozenset(word.entity_ids) | self._home.find(word.keys) | named

    def _choose(self, found: frozenset[str], words: Sequence[Word]) -> Targets:
        """Return one entity, or all if many are meant, or choices."""
        for narrow in (
            self._keep_exact,
            self._keep_kind,
            self._keep_covering,
            self._keep_named_kind,
            self._drop_groups,
            self._drop_unavailable,
        ):
            found = narrow(found, words)
        if not self._search.is_plural:
            for narrow in (self._keep_focus, self._keep_area, self._keep_preferred, self._keep_same_device):
                if len(found) > 1:
                    found = narrow(found, words)
        else:
            found = self._keep_area(found, words)
        entities = tuple(e for e in self._index.entities.values() if e.id in found)
        if len(entities) > 1 and not self._search.is_plural and not self._means_room_light(entities, words):
            return Targets(choices=entities)
        return Targets(entities)

    def _keep_exact(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        named = frozenset(entity_id for word in words for entity_id in word.entity_ids)
        return found & named or found

    def _keep_kind(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        """Keep the things of the kind that is named: "all lights" means no switch called "lights"."""
        for word in words:
            if word.has("kind") and not word.entity_ids:
                found = found & self._home.find_kind(word.keys) or found
        return found

    def _keep_covering(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        """Keep the curtains for "curtains". For "blinds" keep all but curtains and awnings, if possible."""
        for word in words:
            if "kind.blind" not in word.keys or word.entity_ids:
                continue
            own = word.keys & COVERING_KEYS
            found = (found & self._home.find(own) if own else found - self._home.find(_HANGINGS)) or found
        return found

    def _keep_named_kind(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        """Keep the entities whose own names have the words: "lamp" is the floor lamp, no ceiling light."""
        for word in words:
            if word.has("kind") and not self._search.is_plural:
                parts = frozenset(map(remove_accents, split_words(word.text)))
                # The keys have the word without its slips.
                plain = frozenset(key for key in word.keys if "." not in key and ":" not in key)
                found = found & self._home.find_named(parts | plain) or found
        return found

    def _drop_groups(self, found: frozenset[str], _: Sequence[Word]) -> frozenset[str]:
        """Drop groups whose members are found as well."""
        groups = {
            entity_id
            for entity_id in found
            if len(found) > 1 and (members := self._index.list_contents(entity_id)[0]) and members & found
        }
        return found - groups or found

    def _drop_unavailable(self, found: frozenset[str], _: Sequence[Word]) -> frozenset[str]:
        available = frozenset(key for key in found if self._index.get_state(key) != UNAVAILABLE)
        return available or found

    def _keep_focus(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        focus = found.intersection(self._search.focus_ids)
        return focus if len(focus) == 1 and not self._means_area(found, focus, words) else found

    def _means_area(self, found: frozenset[str], focus: frozenset[str], words: Sequence[Word]) -> bool:
        """Return whether a kind without a name means the speaker's area rather than the focus elsewhere.

        "Lights off" means the focus if it is on and all lights of the area are off.
        """
        here = self._keep_area(found, words)
        if self._search.goes_on or not words or not found > here or focus <= here:
            return False
        prefers = self._search.prefers
        can_change_focus = prefers is not None and any(prefers(self._index.entities[key]) for key in focus)
        can_change_here = prefers is not None and any(prefers(self._index.entities[key]) for key in here)
        return can_change_here or not can_change_focus

    def _keep_area(self, found: frozenset[str], words: Sequence[Word]) -> frozenset[str]:
        if self._search.area_id is None or any(self._is_place(word) for word in words):
            return found
        here = frozenset(key for key in found if self._index.entities[key].area_id == self._search.area_id)
        return here or found

    def _keep_preferred(self, found: frozenset[str], _: Sequence[Word]) -> frozenset[str]:
        if self._search.prefers is None:
            return found
        kept = frozenset(key for key in found if self._search.prefers(self._index.entities[key]))
        return kept if len(kept) == 1 else found

    def _keep_same_device(self, found: frozenset[str], _: Sequence[Word]) -> frozenset[str]:
        """Keep one entity if all belong to one device: the one that is named like the device."""
        devices = {self._index.entities[key].device_id for key in found}
        if len(devices) == 1 and None not in devices:
            return frozenset([min(found, key=lambda key: len(self._index.entities[key].name))])
        return found

    def _means_room_light(self, entities: tuple[Entity, ...], words: Sequence[Word]) -> bool:
        """Return whether "the light" of a room means all of its lights."""
        is_light = any("kind.light" in word.keys and "kind.lamp" not in word.keys for word in words)
        has_place = any(self._is_place(word) for word in words) or self._search.area_id is not None
        areas = {entity.area_id for entity in entities}
        return is_light and has_place and len(areas) == 1 and all(e.domain == "light" for e in entities)

    def _is_place(self, word: Word) -> bool:
        return any(key.startswith(_PLACE_KEYS) for key in word.keys) and self._home.is_place(word.keys)

    def _explain(self, words: Sequence[Word]) -> Targets:
        """Return why no entity is meant."""
        for word in words:
            if not word.entity_ids and not self._knows(word):
                others = [each for each in words if each is not word]
                alike = self._keep_alike(word, others) if others and self._is_any_kind(others) else NO_IDS
                return Targets(choices=self._list(alike), fault="unknown", missing=word.text)
        everything = frozenset(self._index.entities)
        for word in words:
            everything &= self._list_ids(word)
        if everything:
            return Targets(choices=self._list(everything), fault="unable")
        things = [word for word in words if not self._is_place(word)]
        places = [word for word in words if self._is_place(word)]
        if things and places:
            elsewhere = self._list(self.match(things))
            missing = " ".join(word.text for word in things)
            return Targets(choices=elsewhere, fault="elsewhere", missing=missing)
        return Targets(fault="unknown", missing=" ".join(word.text for word in words))

    def _keep_alike(self, missing: Word, others: Sequence[Word]) -> frozenset[str]:
        """Return the entities that have the other words: those with a name that begins like the missing word.

        "Bed lamp" is the bedside lamp.
        """
        found = self._keep_named_kind(self.match(others), others)
        begin = remove_accents(missing.text.casefold())
        names = (name for name in self._home.by_name if name.startswith(begin))
        alike = found & NO_IDS.union(*(self._home.by_name[name] for name in names))
        return alike if len(begin) >= MIN_BEGIN_CHARS and alike else found

    def _knows(self, word: Word) -> bool:
        return bool(self._list_ids(word)) or self._is_place(word)

    def _is_any_kind(self, words: Sequence[Word]) -> bool:
        return any(word.has("kind") or word.entity_ids for word in words)

    def _list(self, found: frozenset[str]) -> tuple[Entity, ...]:
        return tuple(entity for entity in self._index.entities.values() if entity.id in found)
