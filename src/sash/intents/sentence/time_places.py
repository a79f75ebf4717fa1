"""The words of a sentence that name its time, with those that lead to a date: "on the 28th of february"."""

from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_words import TimeWords

# "On the", "an dem".
_MAX_LEADING = 2


def list_time_places(sentence: Sentence, time: TimeWords) -> frozenset[int]:
    """Return the places of the words of a time, with the preposition and the article before a date."""
    if time.date is None:
        return time.places
    fillers = {place for match in sentence.find("filler") for place in match.places}
    free = fillers - _find_verbs(sentence)
    places = set(time.places)
    for place in time.places:
        for before in range(place - 1, place - 1 - _MAX_LEADING, -1):
            if before in places or before not in free:
                break
            places.add(before)
    return frozenset(places)


def _find_verbs(sentence: Sentence) -> set[int]:
    """Return the places without which an act would not be named: the only "on" of "turn the light on"."""
    by_act: dict[str, list[set[int]]] = {}
    for match in sentence.matches:
        if match.kind == "do":
            by_act.setdefault(match.value, []).append(set(match.places))
    return {place for readings in by_act.values() for place in set.intersection(*readings)}
