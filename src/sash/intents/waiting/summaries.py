"""Cuts the words of a sentence that name what is to be done or told later."""

from sash.intents.sentence.sentence import Sentence

# The act that ends what another act begins: "turn the fan on for 20 minutes".
ENDS = {
    "on": "off",
    "off": "on",
    "open": "close",
    "close": "open",
    "play": "pause",
    "start": "stop",
    "pause": "play",
}
EDGE_KINDS = frozenset({"filler", "join", "value", "soft"})
LINKING_KINDS = frozenset({"join", "value"})
EDGE_SIGNS = frozenset({",", ";", "?"})


def cut_edges(
    sentence: Sentence, places: list[int], edges: frozenset[str], articles: frozenset[str] = frozenset()
) -> str:
    """Return the words at some places, without those at their edges that mean nothing.

    A word after an article is a noun: "aan de was" is no past tense of "is".
    """
    acts = {p for m in sentence.matches if m.kind == "do" and m.value in ENDS for p in m.places}
    first = {p for m in sentence.matches if m.kind in edges for p in m.places}
    nouns = {n for n in places if n and sentence.words[n - 1] in articles - {sentence.words[n]}}
    last = {p for m in sentence.matches if m.kind in EDGE_KINDS for p in m.places} - acts - nouns
    while places and (places[0] in first or sentence.words[places[0]] in EDGE_SIGNS):
        places = places[1:]
    while places and (places[-1] in last or sentence.words[places[-1]] in EDGE_SIGNS):
        places = places[:-1]
    # A word that was rewritten to several stands at several places: "brennen" is read as "tut brennen".
    written = dict.fromkeys(sentence.tokens[n].start for n in places)
    first_places = {sentence.tokens[n].start: n for n in reversed(places)}
    return " ".join(sentence.cut(first_places[start], first_places[start] + 1) for start in written)
