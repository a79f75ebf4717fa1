"""Remarks beside a request: "mute the TV, I'm on a call" asks for nothing but silence."""

from typing import TYPE_CHECKING

from sash.intents.approval_words import parse_approval
from sash.intents.sentence.phrase_choice import SETTING
from sash.intents.sentence.sentence import Sentence
from sash.intents.words.lexicon import NOUNS
from sash.intents.words.phrases import Match

if TYPE_CHECKING:
    from sash.intents.sentence.reader import SentenceReader

_SIGNS = frozenset({",", ";"})
# These signs end a sentence. A token for one belongs to the part before it.
_ENDS = ("?", "!", ".")
# A part with a phrase of these sections may be about the home, or about another request.
_TELLING = frozenset(
    {*NOUNS, "name", "colour", "amount", "unit", "time", "ask", "item", "later", "condition", "model"}
)
_TELLING_TAGS = frozenset(
    {"memory.like", "memory.called", "memory.code", "memory.name_is", "memory.undo", "remark.wish"}
    | {f"refer.{name}" for name in ("again", "correct", "here", "other", "same", "there", "too")}
)
# Acts whose words often mean no thing: "on a call", "up late".
_PREPOSITIONS = frozenset({"on", "off", "up", "down", "home", "away"})
_EMPTY = frozenset({"filler", "soft", "talk", "refer", "pronoun", "do", "not", "join", "value", "remark"})
_REQUESTS = frozenset({"do", "item", "later", "amount", "colour"})
# These may be done to what is not wanted: "turn off the light, we don't need it".
_ENDING = frozenset(
    {"off", "close", "lock", "stop", "pause", "mute", "dock", "down", "darker", "quieter", "colder"}
)
# After these a part belongs to the words before it.
_DEPENDING = frozenset({"ask", "condition", "later", "memory", "self"})
_POLITE = frozenset({"filler", "soft", "talk", "join", "remark"})


def leave_out_remarks(sentence: Sentence, reader: "SentenceReader") -> Sentence:
    """Return a sentence without the parts in which a person only tells something about people.

    Such a part stands apart by a comma, or by a word such as "because". If nothing else is asked for, the
    sentence stays as it is.
    """
    if is_taken_back(sentence):
        return sentence
    parts = _split(sentence)
    kept = [part for part in parts if not _is_remark(sentence, *part)]
    if len(kept) == len(parts) or not any(_requests(sentence, *part) for part in kept):
        return sentence
    text = ", ".join(sentence.cut(start, end) for start, end in kept)
    is_asked = "?" in (text[-1:], sentence.words[-1])
    return reader.read(text.rstrip("?") + "?" * is_asked, corrects=sentence.corrected)


def is_thanks(sentence: Sentence) -> bool:
    """Return whether a sentence does nothing but thank for something: "thanks for the light"."""
    return len(_split(sentence)) == 1 and _begins_with_thanks(sentence, 0)


def is_taken_back(sentence: Sentence) -> bool:
    """Return whether the end of a sentence says that its request is not meant: "…, I'm kidding"."""
    first, *others = _split(sentence) or [(0, 0)]
    is_request = _requests(sentence, *first) and parse_approval(sentence.cut(*first)) is None
    if not others or not is_request or "?" in sentence.words:
        return False
    if parse_approval(sentence.cut(*others[-1])) is False:
        return True
    acts = {m.value for m in sentence.find("do") if m.end <= first[1]} - SETTING
    return any(_is_joke(sentence, *part) for part in others) or (
        not _ENDING.issuperset(acts) and any(_refuses(sentence, *part) for part in others)
    )


def _is_joke(sentence: Sentence, start: int, end: int) -> bool:
    return any(m.tag == "remark.joke" and start <= m.start < end for m in sentence.matches)


def _refuses(sentence: Sentence, start: int, end: int) -> bool:
    """Return whether a part says that a person does not want something: "we don't need it"."""
    inside = [m for m in sentence.matches if m.start >= start and m.end <= end]
    if not any(m.kind == "not" for m in inside) or any(map(_tells_thing, inside)):
        return False
    return any(m.tag in ("remark.refusal", "remark.wish") for m in inside)


def _tells_thing(match: Match) -> bool:
    return match.kind in ("name", *NOUNS) or (
        match.kind == "do" and match.value not in SETTING | _PREPOSITIONS
    )


def _begins_with_thanks(sentence: Sentence, start: int) -> bool:
    thanks = [m.start for m in sentence.matches if m.tag == "remark.thanks" and m.start >= start]
    if not thanks:
        return False
    before = {p for m in sentence.matches if m.kind in _POLITE for p in m.places}
    return any(before.issuperset(range(start, place)) for place in thanks)


def _split(sentence: Sentence) -> list[tuple[int, int]]:
    """Return the bounds of the parts between commas and words such as "because".

    A remark also ends at a word such as "and" before something that is no remark.
    """
    links = {m.start for m in sentence.matches if m.tag == "remark.link" and m.start > 0}
    links |= _find_breaks(sentence)
    thanks = {p for m in sentence.matches if m.tag == "remark.thanks" for p in range(m.start, m.end)}
    joins = {m.start: m.end for m in sentence.matches if m.kind == "join"}
    parts: list[tuple[int, int]] = []
    start = 0
    for place, word in enumerate(sentence.words):
        if place in thanks or place < start:
            continue
        if word in _SIGNS or place in links:
            parts.append((start, place))
            start = place + 1 if word in _SIGNS else place
        elif _ends_sentence(sentence, place):
            parts.append((start, place + 1))
            start = place + 1
        elif place in joins and place > start and _ends_remark(sentence, start, place, joins[place]):
            parts.append((start, place))
            start = joins[place]
    parts.append((start, len(sentence.words)))
    return [(start, end) for start, end in parts if start < end]


def _find_breaks(sentence: Sentence) -> set[int]:
    """Return where a person begins to tell something after a request, without a sign between them.

    "Lights off we are leaving", but not "when we are leaving" or "in the room we are in".
    """
    found = set()
    for match in sentence.find("break"):
        before = [m for m in sentence.matches if m.end <= match.start]
        depends = any(m.kind in _DEPENDING or m.tag == "mood.link" for m in before)
        leads = any(m.end == match.start and m.kind in ("time", "value", "room") for m in before)
        is_request = _requests(sentence, 0, match.start)
        if match.start > 0 and is_request and not depends and not leads:
            found.add(match.start)
    return found


def _ends_sentence(sentence: Sentence, place: int) -> bool:
    """Return whether another sentence begins after a word: "turn off the TV. I'm on the phone"."""
    if place + 1 >= len(sentence.tokens):
        return False
    token, following = sentence.tokens[place : place + 2]
    gap = sentence.text[token.end : following.start]
    return sentence.words[place] == "?" or (gap[:1] in _ENDS and gap[1:2].isspace())


def _ends_remark(sentence: Sentence, first: int, last: int, start: int) -> bool:
    """Return whether a remark ends at a word such as "and", and another request may follow at `start`."""
    if not _is_remark(sentence, first, last):
        return False
    end = next(
        (n for n in range(start, len(sentence.words)) if sentence.words[n] in _SIGNS), len(sentence.words)
    )
    inside = [m for m in sentence.matches if m.start >= start and m.end <= end]
    return any(map(_tells, inside)) and _find_subject(inside, start) is None


def _requests(sentence: Sentence, start: int, end: int) -> bool:
    inside = (m for m in sentence.matches if m.start >= start and m.end <= end)
    return any(m.kind in _REQUESTS and m.value not in SETTING for m in inside)


def _is_remark(sentence: Sentence, start: int, end: int) -> bool:
    """Return whether a part has a person as its subject, and nothing that a home could do."""
    if _begins_with_thanks(sentence, start):
        return True
    inside = [m for m in sentence.matches if m.start >= start and m.end <= end]
    subject = _find_subject(inside, start)
    if subject is None or "?" in sentence.words[start:end]:
        return False
    if any(m.tag == "remark.sure" for m in inside):
        return True
    rest = [m for m in inside if not set(m.places) <= set(subject.places)]
    if any(map(_tells, rest)) or any(word[0].isdigit() for word in sentence.words[start:end]):
        return False
    empty = {place for m in inside if m.kind in _EMPTY for place in m.places}
    return any(place not in empty and sentence.words[place].isalpha() for place in range(start, end))


def _find_subject(inside: list[Match], start: int) -> Match | None:
    """Return the longest phrase for a person that begins the part: "I", "the baby"."""
    before = {p for m in inside if m.kind in _POLITE for p in m.places}
    subjects = [m for m in inside if m.tag == "remark.subject" and before.issuperset(range(start, m.start))]
    return min(subjects, key=lambda m: (m.start, -len(m.places)), default=None)


def _tells(match: Match) -> bool:
    """Return whether a phrase may mean the home, or another request than a remark."""
    is_act = match.kind == "do" and match.value not in SETTING | _PREPOSITIONS
    return is_act or match.kind in _TELLING or match.tag in _TELLING_TAGS
