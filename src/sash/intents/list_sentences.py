"""Reads sentences about to-do lists: what to do, with which items, and on which list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sash.intents.commands import find_shopping_list
from sash.intents.question_detection import is_polite_request
from sash.intents.sentence.phrase_choice import SETTING
from sash.intents.sentence.reader import MIN_PART_CHARS
from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import Situation
from sash.intents.words.phrases import Match, choose_matches, make_match
from sash.intents.words.tokens import remove_accents, split_words
from sash.ports.home import Entity

MAX_ITEMS = 20
MAX_ITEM_WORDS = 8
# An item of a sentence that names no list has this many words at most.
MAX_BARE_WORDS = 4
_LIST = "kind.list"
# "What is there to do" names no list.
# Words of these sections, or phrases of a few words, are no part of an item at its ends.
_EMPTY = frozenset({"filler", "refer", "ask", "any", "all", "everything"})
MAX_EMPTY_WORDS = 3
_PRONOUNS = frozenset({"refer.it", "refer.them", "pronoun.it", "pronoun.them"})
_MORE = frozenset({"join.and", "refer.about", "refer.too"})
_NO_LISTS = frozenset({("to", "do")})
# The words of a thing to do are no item, unless the sentence names a list.
_NO_ITEMS = frozenset({"do", "ask", "time", "amount", "later", "self", "condition"})
_UNITS_OF_TIME = frozenset({"unit.second", "unit.minute", "unit.hour"})
_VERBS: tuple[str, ...] = ("complete", "remove", "add", "ask")


@dataclass(frozen=True, slots=True)
class ListSentence:
    """What a sentence says about a list. `entity` is None if the home has no list that fits.

    `list_name` is the name of a list that the home does not have. `has_list` tells if the sentence names a
    list. `is_all` is True for all items of the list.
    """

    verb: str
    items: tuple[str, ...]
    entity: Entity | None
    list_name: str = ""
    has_list: bool = False
    is_all: bool = False
    is_question: bool = False


def read_list_sentence(situation: Situation) -> ListSentence | None:
    """Return what a sentence says about a list; None if it is about something else."""
    return _Reader(situation).read()


def read_more_items(situation: Situation, before: ListSentence) -> ListSentence | None:
    """Return a sentence that only adds items to the one before it, such as "and eggs"."""
    sentence = situation.sentence
    before_it = {p for m in sentence.matches if m.kind in ("filler", "soft", "talk") for p in m.places}
    is_more = any(m.tag in _MORE and before_it.issuperset(range(m.start)) for m in sentence.matches)
    has_request = any(match.kind in _NO_ITEMS - {"amount", "time"} for match in sentence.matches)
    items = _Reader(situation).read_items(set())
    if not is_more or has_request or not items or any(len(item.split()) > MAX_BARE_WORDS for item in items):
        return None
    return replace(before, items=items, is_all=False)


def read_same_items(situation: Situation, before: ListSentence) -> ListSentence | None:
    """Return a sentence about the items of the one before it, such as "take them off again"."""
    reader = _Reader(situation)
    verb = reader.find_verb(None)
    has_pronoun = any(m.tag in _PRONOUNS for m in situation.sentence.matches)
    if verb is None or verb.value == "ask" or not has_pronoun or reader.read_items(set(verb.places)):
        return None
    return replace(before, verb=verb.value, is_all=False, is_question=False) if before.items else None


class _Reader:
    """Reads one sentence."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._sentence: Sentence = situation.sentence
        self._words = situation.sentence.words
        self._lists = [e for e in situation.index.entities.values() if e.domain == "todo"]

    def read(self) -> ListSentence | None:
        if any(match.tag == "weather.umbrella" for match in self._sentence.matches):
            return None  # "Mi serve l'ombrello?" asks about the rain.
        if self._asks_what_is_on():
            return None
        mention = self._find_mention()
        verb = self.find_verb(mention)
        if verb is None or (mention is None and self._asks_what_was_done(verb)):
            return None
        before, after = self._find_region(mention)
        taken = {*verb.places, *range(before, after)}
        taken |= {place for other in self._list_other_verbs(verb, taken) for place in other.places}
        items = self.read_items(taken)
        name = " ".join(self._words[before + n] for n in range(after - before)) if mention else ""
        entity, missing = self._choose_list(mention, before, after)
        is_item = missing and not items and mention is not None and verb.value != "ask"
        if is_item:  # The word before "list" was the item.
            items, missing = (missing,), ""
            entity = self._choose_default()
        is_question = self._is_question(verb)
        is_cleared = any(m.tag == "item.clear" for m in self._sentence.matches)
        names_all = any(m.kind in ("all", "everything") for m in self._sentence.matches)
        is_all = not items and (names_all or is_cleared)
        found = ListSentence(
            verb.value,
            items,
            entity,
            missing,
            mention is not None or bool(name),
            is_all,
            is_question,
        )
        return found if self._is_plausible(found, verb, taken) else None

    def _find_mention(self) -> Match | None:
        """Return the words that name a list: its full name, or a word such as "list"."""
        ids = {entity.id for entity in self._lists}
        named = [
            match
            for match in self._sentence.matches
            if match.kind == "name"
            and ids.intersection(self._situation.words.names[tuple(match.value.split())].entity_ids)
        ]
        generic = [
            m
            for m in self._sentence.matches
            if m.tag == _LIST and self._cut_words(m) not in _NO_LISTS and not self._is_request(m)
        ]
        found = choose_matches([*named, *generic])
        longest = max(found, key=lambda match: len(match.places), default=None)
        return longest or self._find_compound() or self._find_reference()

    def _find_reference(self) -> Match | None:
        """Return the word that means the list of the last turn: "what is on it?"."""
        if not self._follows_list_talk():
            return None
        wanted = "item.ask" if self._is_asked() else "item.add"
        asked = any(m.tag == wanted for m in self._sentence.matches)
        places = ("refer.it", "refer.there") if self._is_asked() else ("refer.it",)
        return next((m for m in self._sentence.matches if m.tag in places and asked), None)

    def _asks_what_is_on(self) -> bool:
        """Return whether a bare "what's on?" names no list, and does not follow talk about one."""
        is_on = any(match.tag == "do.on" for match in self._sentence.matches)
        is_bare = self._sentence.covers("item") == "ask" and not self._find_mention()
        return is_on and is_bare and not self._follows_list_talk()

    def _asks_what_was_done(self, verb: Match) -> bool:
        """Return whether a sentence asks what the user did: "what did I buy?". A list does not tell this."""
        asks = any(m.tag == "ask.what" and m.start < verb.start for m in self._sentence.matches)
        return verb.value == "complete" and asks

    def _is_request(self, match: Match) -> bool:
        """Return whether "list" is the verb of a question about things of the home: "list the lights"."""
        is_verb = any(m.kind == "ask" and m.start == match.start for m in self._sentence.matches)
        return is_verb and any(m.kind == "kind" and m.start > match.start for m in self._sentence.matches)

    def _cut_words(self, match: Match) -> tuple[str, ...]:
        return tuple(self._words[place] for place in match.places)

    def _find_compound(self) -> Match | None:
        """Return a compound that ends in the word for a list: "Packliste"."""
        lexicon = self._situation.reader.lexicon
        if lexicon.language not in ("de", "nl"):
            return None
        for place, word in enumerate(self._words):
            ends = [word[n:] for n in range(MIN_PART_CHARS, len(word) - MIN_PART_CHARS)]
            if any(match.tag == _LIST for end in ends for match in lexicon.nouns.find_all([end])):
                return make_match(f"compound.{word}", (place,))
        return None

    def find_verb(self, mention: Match | None) -> Match | None:
        places = set(mention.places) if mention else set()
        found = [
            m
            for m in self._sentence.matches
            if m.kind == "item" and m.value in _VERBS and places.isdisjoint(m.places)
        ]
        if mention is None:
            found = [m for m in found if self._means_list(m) and not self._asks_for_state(m)]
        if self._is_asked() and (asks := [match for match in found if match.value == "ask"]):
            found = asks
        elif mention is not None and (self._is_asked() or (not found and self._begins_with_verb())):
            return make_match("item.ask", (max(self._find_ask(), 0),))
        found.sort(key=lambda match: (-len(match.places), _VERBS.index(match.value), match.start))
        return found[0] if found else None

    def _asks_for_state(self, match: Match) -> bool:
        """Return whether words for "used up" begin the sentence, and mean "all": "sind alle Fenster zu?"."""
        fillers = {p for m in self._sentence.matches if m.kind == "filler" for p in m.places}
        means_all = any(
            m.kind == "all" and set(m.places) <= set(match.places) for m in self._sentence.matches
        )
        return means_all and match.value == "add" and fillers.issuperset(range(match.start))

    def _means_list(self, match: Match) -> bool:
        """Return whether a phrase is about a list even if the sentence names none: "we need"."""
        acts = {m.places for m in self._sentence.matches if m.kind in ("do", "filler")}
        is_long = len(match.places) > 1 and match.value != "ask"
        is_whole = self._sentence.covers("item") == "ask"
        minimum = 3 if is_whole else 4
        whole = [m for m in self._sentence.find("item") if m.value == "ask" and len(m.places) >= minimum]
        # After talk about a list, "take off" means its items rather than devices.
        is_of_list = match.value in self._list_verbs_of_items() and self._follows_list_talk()
        is_list_verb = is_long or is_of_list or match.places not in acts
        return match in whole or (match.value != "ask" and is_list_verb)

    def _list_verbs_of_items(self) -> tuple[str, ...]:
        """Return the verbs that need no name of a list after talk about one: "put it back on"."""
        has_pronoun = any(m.tag in _PRONOUNS for m in self._sentence.matches)
        return ("remove", "complete", "add") if has_pronoun else ("remove", "complete")

    def _follows_list_talk(self) -> bool:
        focus = self._situation.focus_ids[:1]
        return any(entity.id in focus for entity in self._lists)

    def _is_asked(self) -> bool:
        if is_polite_request(self._sentence.text):
            return False
        # "Brauchen wir noch Kaffee" begins with its verb.
        begins = any(
            m.value == "ask" and m.start == 0 and len(m.places) > 1 for m in self._sentence.find("item")
        )
        return begins or "?" in self._words or self._find_ask() >= 0

    def _begins_with_verb(self) -> bool:
        """Return whether a sentence begins like a question: "do we have milk on the list"."""
        is_question = any(m.tag == "ask.is" and m.start == 0 for m in self._sentence.matches)
        return is_question and not is_polite_request(self._sentence.text)

    def _find_ask(self) -> int:
        """Return the place of the question word that begins the sentence, or -1."""
        fillers = {p for m in self._sentence.matches if m.kind == "filler" for p in m.places}
        polite = {
            p for m in self._sentence.matches if m.kind == "filler" and len(m.places) > 1 for p in m.places
        }
        # "Ha" in "se ha acabado el café" asks nothing.
        polite |= {
            p for m in self._sentence.find("item") if m.value != "ask" and len(m.places) > 1 for p in m.places
        }
        starts = [m.start for m in self._sentence.matches if m.kind == "ask" and m.start not in polite]
        return next((start for start in sorted(starts) if fillers.issuperset(range(start))), -1)

    def _is_question(self, verb: Match) -> bool:
        return verb.value == "ask" or self._is_asked()

    def _find_region(self, mention: Match | None) -> tuple[int, int]:
        """Return the places of the list with the words before it that belong to it: "to the packing list"."""
        if mention is None:
            return 0, 0
        start, own = mention.start, {p for m in self._sentence.find("item") for p in m.places}
        fillers = {p for m in self._sentence.matches if m.kind == "filler" for p in m.places}
        while start - 1 >= 0 and start - 1 not in fillers | own and self._words[start - 1].isalpha():
            start -= 1
        if start == 0 or start - 1 not in fillers:  # Only words between a preposition and "list" name it.
            start = mention.start
        return start, mention.end

    def _list_other_verbs(self, verb: Match, taken: set[int]) -> list[Match]:
        """Return further phrases for the same thing: "I bought the bread, take it off the list".

        A second phrase that adds begins a part of its own: "we are out of butter, add it".
        """
        values = ("complete", "remove") if verb.value in ("complete", "remove") else (verb.value,)
        others = [m for m in self._sentence.find("item") if m.value in values and m is not verb]
        if verb.value not in ("complete", "remove"):
            joins = {m.end for m in self._sentence.matches if m.kind == "join"}
            others = [m for m in others if m.start in joins]
        return choose_matches(others, taken)

    def read_items(self, taken: set[int]) -> tuple[str, ...]:
        """Return the words outside of `taken`, split at joining words, without fillers at their ends."""
        joins = {p for m in self._sentence.matches if m.kind == "join" for p in m.places}
        matches = self._sentence.matches
        empty = (m for m in matches if m.kind in _EMPTY and len(m.places) <= MAX_EMPTY_WORDS)
        soft = {p for match in empty for p in match.places if not self._words[p][0].isdigit()}
        prepositions = {m.start for m in matches if m.kind in ("value", "time") and len(m.places) == 1}
        items: list[str] = []
        part: list[int] = []
        for place in range(len(self._words) + 1):
            is_end = place == len(self._words)
            if is_end or place in taken or place in joins or not self._words[place][0].isalnum():
                if text := self._cut(part, soft, soft | (prepositions if place in taken else set())):
                    items.append(text)
                part = []
            else:
                part.append(place)
        return tuple(dict.fromkeys(items))[:MAX_ITEMS]

    def _cut(self, part: list[int], first: set[int], last: set[int]) -> str:
        """Return the text of some words, without those at its ends that belong to no item."""
        while part and part[0] in first:
            part = part[1:]
        while part and part[-1] in last:
            part = part[:-1]
        return self._sentence.cut(part[0], part[-1] + 1) if part else ""

    def _choose_list(self, mention: Match | None, before: int, after: int) -> tuple[Entity | None, str]:
        """Return the list that is meant, or the name of a list that is not there."""
        if mention is None:
            return self._choose_default(), ""
        words = self._words[before:after]
        extra = {remove_accents(word) for word in self._words[before : mention.start]}
        if mention.kind == "compound":
            extra = {remove_accents(mention.value)}
        if mention.kind == "name" and not extra:
            ids = self._situation.words.names[tuple(mention.value.split())].entity_ids
            return next((entity for entity in self._lists if entity.id in ids), None), ""
        if extra:
            fitting = [entity for entity in self._lists if extra <= _list_words(entity)]
            return (
                (fitting[0], "")
                if len(fitting) == 1
                else (None, " ".join(words[: len(words) - len(mention.places)] or words))
            )
        plain = {remove_accents(word) for word in words}
        fitting = [entity for entity in self._lists if len(plain) > 1 and plain <= _list_words(entity)]
        return (fitting[0] if len(fitting) == 1 else self._choose_default()), ""

    def _choose_default(self) -> Entity | None:
        """Return the list of the last turns, the shopping list, or the only list."""
        focus = [e for e in self._lists if e.id in self._situation.focus_ids]
        own = find_shopping_list(self._situation.index)
        usual = [entity for entity in self._lists if self._has_usual_name(entity)]
        return next(iter([*focus, *own, *usual]), None)

    def _has_usual_name(self, entity: Entity) -> bool:
        """Return whether a list is called by a word for a list, such as "Shopping list"."""
        words = split_words(entity.name)
        found = self._situation.reader.lexicon.nouns.find_all(words)
        return any(match.tag == _LIST and len(match.places) == len(words) for match in found)

    def _is_plausible(self, found: ListSentence, verb: Match, taken: set[int]) -> bool:
        """Return whether the sentence is about a list, and not about things of the home."""
        if any(len(item.split()) > MAX_ITEM_WORDS for item in found.items) or self._follows_command(verb):
            return False
        if found.has_list or (found.verb == "ask" and not found.items):
            return found.verb == "ask" or bool(found.items) or found.is_all
        if not found.items or any(len(item.split()) > MAX_BARE_WORDS for item in found.items):
            return False
        if any(m.tag == "item.clear" and m.places == verb.places for m in self._sentence.matches):
            return False  # "Empty the dustbin".
        rest = set(range(len(self._words))) - taken
        bad = (m for m in self._sentence.matches if m.kind in _NO_ITEMS and rest.issuperset(m.places))
        fillers = {m.places for m in self._sentence.matches if m.kind == "filler"}
        is_act = any(match.places not in fillers for match in bad)
        # "we need to talk": what follows is no thing.
        is_verb = verb.value == "add" and verb.end < len(self._words) and self._words[verb.end] == "to"
        return not (is_act or is_verb or self._names_things(found.items) or self._names_duration(rest))

    def _names_duration(self, places: set[int]) -> bool:
        """Return whether words end with a unit of time: "add five minutes" is for a timer."""
        units = (m for m in self._sentence.matches if m.tag in _UNITS_OF_TIME and places.issuperset(m.places))
        return any(match.end == len(self._words) for match in units)

    def _follows_command(self, verb: Match) -> bool:
        """Return whether a part before the one with the verb is a command about things of the home."""
        joins = [m for m in self._sentence.matches if m.kind == "join" and m.end <= verb.start]
        before = range(max((m.start for m in joins), default=0))
        inside = [m for m in self._sentence.matches if m.end <= before.stop]
        has_act = any(m.kind == "do" and m.value not in SETTING for m in inside)
        return has_act and any(m.kind in ("kind", "name") and m.tag != _LIST for m in inside)

    def _names_things(self, items: Sequence[str]) -> bool:
        """Return whether an item is a kind of thing of the home, such as "light", or a name in it."""
        reader = self._situation.reader
        for item in items:
            words = split_words(item)
            whole = [m for m in reader.lexicon.nouns.find_all(words) if len(m.places) == len(words)]
            kinds = {match.kind for match in reader.lexicon.nouns.find_all(words)}
            if any(match.kind in ("kind", "room") for match in whole) or {"kind", "room"} <= kinds:
                return True
            if tuple(map(remove_accents, words)) in self._situation.words.names:
                return True
        return False


def _list_words(entity: Entity) -> set[str]:
    return {remove_accents(word) for name in (entity.name, *entity.aliases) for word in split_words(name)}
