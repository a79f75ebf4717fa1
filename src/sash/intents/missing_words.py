"""Says which word of a sentence is not understood."""

from collections.abc import Iterable, Sequence

from sash.intents.answers.names import Name
from sash.intents.sentence.clause import Word
from sash.intents.situation import Situation
from sash.intents.words.tokens import split_words
from sash.ports.home import Entity

# More places than these are not listed.
MAX_PLACES = 3
_AROUND_ASK = frozenset({"filler", "soft", "talk", "join", "model"})
# These ask about the home itself.
_HOME_ASKS = frozenset(
    {"is", "rooms", "devices", "labelled", "set_to", "left_so", "forgot", "possible", "how_to"}
)
_OF_HOME = frozenset({"name", "kind", "room", "property", "calendar", "item", "self", "alarm", "price"})


def say_missing(situation: Situation, missing: str) -> str:
    """Return that the home has no such thing, or that a word is not understood if it cannot name a thing.

    The second answer avoids "I do not know “between” in this home".
    """
    if _may_name_thing(situation, missing):
        return situation.writer.say("cannot.find", missing=missing)
    key = "cannot.know" if asks_of_world(situation) else "cannot.word"
    return situation.writer.say(key, missing=missing)


def say_impossible(situation: Situation) -> str:
    """Return that no home can do what a sentence asks for, with what it is about: "pizza"."""
    sentence, lexicon = situation.sentence, situation.reader.lexicon
    acts = sorted(sentence.find("cannot"), key=lambda match: (match.start, -len(match.places)))
    fillers = {
        place for match in sentence.matches if match.kind in ("filler", "soft") for place in match.places
    }
    rest = [
        place
        for place, word in enumerate(sentence.words)
        if acts and place > acts[0].start and word[0].isalnum() and place not in acts[0].places
    ]
    while rest and (rest[0] in fillers or sentence.words[rest[0]] in lexicon.articles):
        rest.pop(0)
    while rest and rest[-1] in fillers:
        rest.pop()
    if not rest and acts and len(acts[0].places) > 1:
        rest = list(acts[0].places)  # "Restart Home Assistant".
    if not rest:
        return situation.writer.say("cannot.outside")
    first = min(rest[0], acts[0].start)
    return situation.writer.say("cannot.outside_of", missing=sentence.cut(first, rest[-1] + 1))


def asks_of_world(situation: Situation) -> bool:
    """Return whether a sentence asks for something that is no part of a home: "how high is Mont Blanc"."""
    sentence = situation.sentence
    around = {p for m in sentence.matches if m.kind in _AROUND_ASK for p in m.places}
    has_unknown = any(clause.unknown for clause in situation.reader.read_clauses(sentence))
    home_asks = _HOME_ASKS - {"is"} if has_unknown else _HOME_ASKS
    asked = {m.places for m in sentence.find("ask") if m.value not in home_asks}
    begins = any(around.issuperset(range(places[0])) for places in asked)
    # "How far" is also a word for a position.
    asking = {place for places in asked for place in places}
    # "Night" is also a label, and no thing in "last night".
    times = {p for m in sentence.find("time") if len(m.places) > 1 for p in m.places}
    return begins and not any(
        m.kind in _OF_HOME and asking.isdisjoint(m.places) and not times.issuperset(m.places)
        for m in sentence.matches
    )


def say_none_there(
    situation: Situation, words: Sequence[Word], missing: str, elsewhere: Iterable[Entity]
) -> str:
    """Return that a thing is not in the place that some words name, and where there is one."""
    writer, index = situation.writer, situation.index
    places = [word for word in words if _find_rooms(situation, word)]
    place = find_place(situation, places)
    is_people = any("kind.person" in word.keys for word in words)
    if place is None and is_people:
        return writer.say("past.unwatched_there")
    if place is None:
        return writer.say("state.none_there", missing=writer.name_bare(missing))
    if said := _find_said_place(situation, places[0]):
        place.inside = said
    if is_people:
        return writer.say("past.unwatched", place=place)
    thing = writer.name_bare(missing)
    thing.is_plural = any(word.is_plural and word.text == missing for word in words)
    areas = {area.id: area for entity in elsewhere if (area := index.get_area(entity)) is not None}
    if not 0 < len(areas) <= MAX_PLACES:
        return writer.say("state.none_in", name=thing, place=place)
    others = writer.join([writer.name(area) for area in areas.values()])
    return writer.say("state.none_in_but", name=thing, place=place, others=others)


def _find_said_place(situation: Situation, place: Word) -> str:
    """Return a place with its preposition as it was said, such as "in de kinderkamer"; empty without one."""
    sentence, prepositions = situation.sentence, situation.writer.prepositions
    for end in range(len(sentence.words), 0, -1):
        for start in range(end):
            if sentence.cut(start, end) != place.text:
                continue
            before = next(
                (n for n in (start - 1, start - 2) if n >= 0 and sentence.words[n] in prepositions), None
            )
            return "" if before is None else sentence.cut(before, end)
    return ""


def find_place(situation: Situation, words: Sequence[Word]) -> Name | None:
    """Return the name of the place if the words name one place and nothing else; None otherwise."""
    if not words or any(word.entity_ids for word in words):
        return None
    rooms = [_find_rooms(situation, word) for word in words]
    areas = frozenset().union(*rooms)
    return (
        situation.writer.name(situation.index.areas[next(iter(areas))])
        if len(areas) == 1 and all(rooms)
        else None
    )


def _find_rooms(situation: Situation, word: Word) -> frozenset[str]:
    """Return the areas that a word names, also if it names a thing as well: "garage"."""
    sentence = situation.sentence
    said = {m.tag for m in sentence.matches if m.kind == "room" and sentence.cut(m.start, m.end) == word.text}
    return frozenset(situation.words.find_areas(word.keys | said))


def _may_name_thing(situation: Situation, missing: str) -> bool:
    """Return whether words may name a thing: they are several, or follow an article or a verb."""
    words = split_words(missing)
    if len(words) != 1 or not missing.islower():
        return True
    if any(match.kind == "kind" for match in situation.reader.lexicon.nouns.find_all(words)):
        return True
    sentence = situation.sentence
    place = next((n for n, word in enumerate(sentence.words) if word == words[0]), 0)
    before = sentence.words[place - 1] if place else ""
    follows_verb = any(match.kind == "do" and match.end == place for match in sentence.matches)
    is_last = all(not word[0].isalnum() for word in sentence.words[place + 1 :])
    return before in situation.reader.lexicon.articles or (follows_verb and is_last)
