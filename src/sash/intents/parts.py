"""Splits a sentence into the parts that each ask for something."""

from sash.intents.sentence.phrase_choice import SETTING
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.sentence import Sentence
from sash.intents.words.phrases import Match

# A part with a phrase of these sections asks for something itself.
_ASKING = frozenset({"do", "item", "ask", "later", "self", "memory", "talk", "weather", "calendar", "cannot"})
_LIST = "kind.list"


def split_requests(sentence: Sentence, reader: SentenceReader) -> list[str]:
    """Return the parts of a sentence, each with the names that follow it.

    "Turn on the light and add milk and butter to the list" has two.
    """
    parts: list[tuple[int, int]] = []
    for start, end in reader.find_bounds(sentence):
        if start >= end:
            continue
        if parts and _goes_on(sentence, parts[-1], (start, end)):
            start = parts.pop()[0]
        parts.append((start, end))
    return [sentence.cut(start, end) for start, end in parts]


def _goes_on(sentence: Sentence, before: tuple[int, int], part: tuple[int, int]) -> bool:
    """Return whether a part belongs to the one before it: "add milk" and "butter to the list"."""
    earlier, own = _list_inside(sentence, *before), _list_inside(sentence, *part)
    if earlier and all(match.kind == "do" and match.value in SETTING for match in earlier):
        return True  # "Turn the light and the TV on".
    of_list = {p for m in own if m.kind == "item" and _names_list(sentence, m) for p in m.places}
    of_list |= {p for m in sentence.matches if m.tag == _LIST for p in m.places}
    names_list = any(part[0] <= place < part[1] for place in of_list)
    if names_list:  # "On" of "butter on the list" switches nothing.
        of_list |= {m.start for m in sentence.matches if m.kind == "value" and len(m.places) == 1}
    asks = any(of_list.isdisjoint(match.places) for match in own)
    if names_list and any(m.tag == "item.add" for m in earlier) and _adds_them(sentence, part):
        return True  # "We need bananas, put them on the list".
    return not asks and (not names_list or any(match.kind == "item" for match in earlier))


def _adds_them(sentence: Sentence, part: tuple[int, int]) -> bool:
    inside = {m.tag for m in sentence.matches if m.start >= part[0] and m.end <= part[1]}
    return "item.add" in inside and not inside.isdisjoint(("refer.it", "refer.them"))


def _names_list(sentence: Sentence, match: Match) -> bool:
    return any(m.tag == _LIST and set(m.places) <= set(match.places) for m in sentence.matches)


def _list_inside(sentence: Sentence, start: int, end: int) -> list[Match]:
    """Return the phrases between two places that ask for something."""
    return [m for m in sentence.matches if m.kind in _ASKING and m.start >= start and m.end <= end]
