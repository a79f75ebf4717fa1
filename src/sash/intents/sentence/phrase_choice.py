"""Chooses between phrases that overlap."""

from sash.intents.sentence.sentence import Sentence
from sash.intents.words.lexicon import NOUNS
from sash.intents.words.phrases import Match

# Verbs without a meaning of their own: "set", and "put" of languages where "put the radio" switches it on.
SETTING = frozenset({"make", "put"})
_CLAUSE_SECTIONS = frozenset(
    {
        "do",
        "keep",
        "ask",
        "refer",
        "pronoun",
        "all",
        "any",
        "everything",
        "not",
        "except",
        "join",
        "filler",
        "colour",
        "amount",
        "value",
        "soft",
        "absence",
    }
)
# Of two phrases with the same number of words, the one with the lower number wins.
_PRIORITIES = {
    **dict.fromkeys(("name",), 0),
    **dict.fromkeys(("do", "keep", "ask", "not", "except"), 1),
    **dict.fromkeys(("colour", "amount"), 2),
    **dict.fromkeys(("kind", "room", "noun", "property", "compare"), 3),
    **dict.fromkeys(("all", "any", "everything", "refer"), 4),
    **dict.fromkeys(("join",), 5),
    **dict.fromkeys(("value", "pronoun"), 6),
    **dict.fromkeys(("filler", "soft", "absence"), 7),
    **dict.fromkeys(("talk",), 8),
}
_METERED = frozenset({"property.energy", "property.power", "property.gas", "property.water"})
# Small talk that may surround a request.
_COURTESIES = frozenset(
    {"hello", "good_morning", "good_evening", "thanks", "sorry", "yes", "unsure", "present", "bye"}
)


def choose_phrases(sentence: Sentence, inside: list[Match], taken: set[int]) -> list[Match]:
    """Return phrases that do not overlap: those with more words win, then those of higher priority."""
    sections = {*_CLAUSE_SECTIONS, "name", *NOUNS}
    nouns = {m.start for m in inside if m.kind in ("name", *NOUNS)}
    # "Wann war das" refers to an answer, but "wann war das Tor auf" names a thing.
    usable = [
        m
        for m in inside
        if (m.kind in sections or _is_about_past(sentence, m))
        and taken.isdisjoint(m.places)
        and not (m.tag == "refer.that_time" and m.end in nouns)
        and not (m.tag == "refer.more" and _begins_act(m, inside))
        and not (m.kind == "not" and _precedes_order(sentence, m))
        # "Buiten" is "except" before a thing, and else "outside".
        and not (m.tag == "except" and all(noun < m.end for noun in nouns))
    ]
    usable += [m for m in _find_courtesies(sentence, inside) if taken.isdisjoint(m.places)]
    used: set[int] = set()
    chosen = []
    for match in sorted(usable, key=_rank):
        if used.isdisjoint(match.places):
            used.update(match.places)
            chosen.append(match)
    chosen = _begin_with_act(sentence, sorted(chosen, key=lambda m: m.places), usable)
    return _settle_doubtful(sentence, chosen, usable)


def _precedes_order(sentence: Sentence, negation: Match) -> bool:
    """Return whether "no" stands before an order with its pronoun: "no apágalo", but "no apagarlo"."""
    tokens, place = sentence.tokens, negation.end
    has_pronoun = place + 1 < len(tokens) and tokens[place] is tokens[place + 1]
    return has_pronoun and len(negation.places) == 1 and not sentence.words[place].endswith("r")


def _begins_act(more: Match, inside: list[Match]) -> bool:
    """Return whether the last word of "a bit more" begins an act: "un poco más fuerte"."""
    return any(m.kind == "do" and more.start < m.start < more.end < m.end for m in inside)


def _begin_with_act(sentence: Sentence, chosen: list[Match], usable: list[Match]) -> list[Match]:
    """Read a name that begins a clause as an act before another thing: "hoover the living room"."""
    if any(m.kind in ("do", "keep", "ask") for m in chosen):
        return chosen
    named = [m for m in chosen if m.kind in ("name", *NOUNS)]
    if len(named) < 2:
        return chosen
    acts = {m.places: m for m in usable if m.kind == "do" and m.value not in SETTING}
    return [acts.get(m.places, m) if m is named[0] else m for m in chosen]


def _is_about_past(sentence: Sentence, match: Match) -> bool:
    """Return whether a phrase is another time, as in "more than usual", or asks for the price of energy."""
    if match.tag == "compare.usual":
        return not any(word[0].isalnum() for word in sentence.words[match.end :])
    if match.tag == "price":
        return any(other.tag in _METERED for other in sentence.matches)
    return match.tag in ("compare.before", "compare.versus", "compare.difference", "compare.trend")


def _find_courtesies(sentence: Sentence, inside: list[Match]) -> list[Match]:
    """Return greetings and thanks at the start or the end of a clause: "hi, lights on, thanks"."""
    # "Mach das" alone says yes, but "mach das aus" is a command.
    acts = {p for m in inside if m.kind == "do" for p in m.places}
    courtesies = [
        m for m in inside if m.kind == "talk" and m.value in _COURTESIES and acts.isdisjoint(m.places)
    ]
    if not courtesies:
        return []
    ends = {0, len(sentence.words), *(n for n, word in enumerate(sentence.words) if not word[0].isalnum())}
    fillers = {p for m in inside if m.kind in ("filler", "soft") for p in m.places}
    fillers |= {p for m in courtesies for p in m.places}
    found = []
    for match in courtesies:
        begins = any(fillers.issuperset(range(end, match.start)) for end in ends if end <= match.start)
        finishes = any(fillers.issuperset(range(match.end, end)) for end in ends if end >= match.end)
        # "Is anyone there?" is a question of its own, but "is anyone there in the kitchen" is about people.
        if (begins and finishes) if match.value == "present" else (begins or finishes):
            found.append(match)
    return found


def _settle_doubtful(sentence: Sentence, chosen: list[Match], usable: list[Match]) -> list[Match]:
    """Read a word that is both a thing and an act as a thing beside another act: "the heating off"."""
    acts = [m for m in chosen if m.kind == "do" and m.value not in SETTING]
    nouns = {m.places: m for m in usable if m.kind in NOUNS}
    if any(m.tag == "ask.where" for m in chosen):
        return [nouns.get(m.places, m) if m in acts else m for m in chosen]  # "Where is the vacuum?"
    if len(acts) < 2:
        settings = {m.end for m in chosen if m.kind == "do" and m.value in SETTING}
        doubtful = [m for m in acts if m.places in nouns and m.start - 1 in settings]
        if not doubtful or not any(m.kind == "option" for m in sentence.matches):
            return chosen
        # "Set the vacuum to turbo" does not clean.
        return [nouns.get(m.places, m) if m in acts and m.start - 1 in settings else m for m in chosen]
    settled = []
    for match in chosen:
        noun = nouns.get(match.places)
        if match in acts and noun is not None and len(acts) > 1:
            acts.remove(match)
            match = noun
        settled.append(match)
    return settled


def _rank(match: Match) -> tuple[int, int, int, int]:
    between = match.end - match.start - len(match.places)
    return -len(match.places), _PRIORITIES.get(match.kind, 9), between, match.start
