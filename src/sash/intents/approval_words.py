"""Recognizes answers that approve or deny a request, in about twenty languages."""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from sash.intents.question_detection import has_question_mark
from sash.intents.words.phrases import Match, PhraseFinder
from sash.intents.words.tokens import split_tokens, split_words

MAX_CHARS = 60
# An approval that goes on may be longer, as two sentences.
MAX_CHARS_GOING_ON = 300
_DENIALS = frozenset({"no", "negation"})


def parse_approval(text: str) -> bool | None:
    """Return True for an approval, False for a denial, and None for any other text, such as "sure?"."""
    if len(text) > MAX_CHARS:
        return None
    words = split_words(text)
    found = _load_finder().find_all(words)
    is_asked = has_question_mark(text)
    approvals = {"yes_asked"} if is_asked else {"yes", "yes_asked"}
    has_plain_yes = any(match.kind == "plain_yes" for match in found)
    if _covers(len(words), found, approvals, {"polite", "content"} if has_plain_yes else {"polite"}):
        return True
    denials = set() if is_asked else {"no", "no_alone"}
    return False if _covers(len(words), found, denials, {"polite", "hesitation"}) else None


def is_doubtful(text: str) -> bool:
    """Return whether a text asks or puts off an answer, so that it is no approval: "ok wait", "yes?"."""
    if parse_approval(text):
        return False
    found = _load_finder().find_all(split_words(text))
    return has_question_mark(text) or any(match.kind == "hesitation" for match in found)


def approves_and_goes_on(text: str) -> bool:
    """Return whether a text approves, and then asks for something else: "yes, and turn on the hall light".

    A text that also asks, hesitates or denies anything does not approve.
    """
    if len(text) > MAX_CHARS_GOING_ON or is_doubtful(text):
        return False
    tokens = [token for token in split_tokens(text) if token.word[0].isalnum()]
    found = _load_finder().find_all([token.word for token in tokens])
    if any(match.kind in _DENIALS for match in found):
        return False
    ends = _list_ends({0}, (match for match in found if match.kind == "plain_yes" and match.start == 0))
    ends = _list_ends(ends - {0}, (match for match in found if match.kind == "polite"))
    linked = _list_ends(ends, (match for match in found if match.kind == "linking")) - ends
    asked = {match.start for match in found if match.kind == "asking"}
    following = [end for end in linked if end < len(tokens) and end not in asked]
    return any(parse_approval(text[tokens[end].start :]) is None for end in following)


def _covers(length: int, found: Iterable[Match], answers: set[str], around: set[str]) -> bool:
    """Return whether phrases of some answers, and those that may stand around them, are all of a text."""
    answering = [match for match in found if match.kind in answers]
    others = [match for match in found if match.kind in around]
    before = _list_ends({0}, others)
    after = {match.end for match in answering if match.start in before}
    return length in _list_ends(after, [*answering, *others])


def _list_ends(starts: Iterable[int], phrases: Iterable[Match]) -> set[int]:
    """Return the places that phrases in a row reach from some starts. The starts are among them."""
    reached = set(starts)
    for phrase in sorted(phrases, key=lambda phrase: phrase.start):
        if phrase.start in reached:
            reached.add(phrase.end)
    return reached


@cache
def _load_finder() -> PhraseFinder:
    data = tomllib.loads((files("sash") / "data" / "approvals.toml").read_text("utf-8"))
    return PhraseFinder(
        (f"{answer}.{language}", phrase.casefold())
        for answer, languages in data.items()
        for language, phrases in languages.items()
        for phrase in phrases
    )
