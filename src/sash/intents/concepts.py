"""The concepts of a text: its meanings. "The lamp in the hall" and "the hallway light" have the same.

A concept is a meaning of the lexicon, such as "room.hallway", or a word that has none, without accents.
"""

from collections.abc import Iterable

from sash.intents.home_words import HomeWords
from sash.intents.sentence.sentence import Sentence
from sash.intents.words.phrases import Match, choose_matches
from sash.intents.words.tokens import remove_accents
from sash.memory.words import stem

LIKE, CALLED, CODE = "memory.like", "memory.called", "memory.code"
_TEMPERATURE, _DEGREES, _COLOUR = "property.temperature", "unit.degrees", "property.colour"
# Of two phrases with the same number of words, the one in the earlier section wins.
_SECTIONS = ("memory", "kind", "room", "noun", "property", "colour", "unit", "ask", "refer", "not", "all")
_OTHER_SECTIONS = ("any", "everything", "time", "join", "value", "amount", "later")
_TELLING = frozenset({"memory", "kind", "room", "noun", "property", "colour", "unit", "do"})
# The meanings of these sections that tell nothing about the topic.
_SILENT = frozenset(
    {"memory.my", "memory.undo", "memory.weak", "memory.shows", "memory.earlier", "do.make", "do.put"}
)
# "I like" in "how do I like" is no part of the question "how do I".
_STRONG = frozenset({LIKE, CALLED, CODE, "memory.name_is"})
_SAME = {"memory.name_is": CALLED}
_HOME_SECTIONS = frozenset({"do", "property", "kind", "room"})
_NO_CODES = frozenset({"name", "kind", "room", "noun", "property"})
_MIN_STEM_CHARS = 4
# "Fehler" and "Fehlercode" are alike, "under" and "understand" are not.
_MAX_MORE_CHARS = 4


def find_concepts(sentence: Sentence, *, prefers_acts: bool = False) -> frozenset[str]:
    """Return the concepts of a sentence, without those that are part of its grammar.

    With `prefers_acts`, "on" is something to do. Otherwise it is a preposition.
    """
    last = ("do", "filler") if prefers_acts else ("filler", "do")
    order = (*_SECTIONS, *_OTHER_SECTIONS, *last)
    strong = choose_matches(match for match in sentence.matches if match.tag in _STRONG)
    usable = [match for section in order for match in sentence.matches if match.kind == section]
    chosen = [*strong, *choose_matches(usable, (place for match in strong for place in match.places))]
    taken = {place for match in chosen for place in match.places}
    others = {
        _simplify(word)
        for place, word in enumerate(sentence.words)
        if place not in taken and word[0].isalnum()
    }
    return frozenset({*_list_meanings(chosen), *others, *_list_numbers(sentence)})


def add_implied(concepts: frozenset[str], sentence: Sentence) -> frozenset[str]:
    """Return the concepts of a statement with those that it implies: 21 degrees are a temperature."""
    # Its words count, too, because a compound of the question may begin with one of them.
    implied = {_simplify(word) for word in sentence.words if word.isalpha()}
    has_number = any(word[0].isdigit() for word in sentence.words)
    if _DEGREES in concepts or (LIKE in concepts and has_number):
        implied.add(_TEMPERATURE)
    if any(concept.startswith("colour.") for concept in concepts):
        implied.add(_COLOUR)
    if find_code(sentence) is not None:
        implied.add(CODE)
    return concepts | implied


def has_all(concepts: Iterable[str], wanted: Iterable[str]) -> bool:
    """Return whether all wanted concepts are there, also in another form of the word."""
    there = tuple(concepts)
    return all(any(_is_same(one, each) for each in there) for one in wanted)


def says_lasting(sentence: Sentence) -> bool:
    """Return whether a sentence has a verb that tells no state of a home, such as "needs"."""
    weak = [match for match in sentence.matches if match.tag == "memory.weak"]
    asks = {p for m in sentence.matches if m.kind in ("ask", "self") and len(m.places) > 1 for p in m.places}
    return any(asks.isdisjoint(match.places) for match in weak)


def is_known_to_home(concept: str, words: HomeWords) -> bool:
    """Return whether the home may know a concept: a property, a room, a kind, or a part of a name."""
    return concept.partition(".")[0] in _HOME_SECTIONS or bool(words.find(frozenset({concept})))


def find_code(sentence: Sentence) -> str | None:
    """Return the first code such as "F28" (letters directly followed by digits); None if there is none.

    Words with a meaning of their own, such as "CO2" and names of things, are no codes.
    """
    known = {p for m in sentence.matches if m.kind in _NO_CODES and len(m.places) > 1 for p in m.places}
    for place, (one, two) in enumerate(zip(sentence.tokens, sentence.tokens[1:], strict=False)):
        if place not in known and one.end == two.start and one.word.isalpha() and two.is_number:
            return sentence.text[one.start : two.end]
    return None


def _list_meanings(chosen: Iterable[Match]) -> set[str]:
    return {_SAME.get(m.tag, m.tag) for m in chosen if m.kind in _TELLING and m.tag not in _SILENT}


def _list_numbers(sentence: Sentence) -> set[str]:
    return {word for word in sentence.words if word[0].isdigit()}


def _simplify(word: str) -> str:
    plain = remove_accents(word)
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") else plain


def _is_same(one: str, other: str) -> bool:
    if one == other or "." in one or "." in other:
        return one == other
    if min(len(one), len(other)) < _MIN_STEM_CHARS or abs(len(one) - len(other)) > _MAX_MORE_CHARS:
        return False
    return one.startswith(stem(other)) or other.startswith(stem(one))
