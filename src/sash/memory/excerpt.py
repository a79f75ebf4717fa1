"""Cuts the part out of a long message that a question asks for."""

from collections.abc import Callable, Sequence

from sash.memory.asked_words import AskedWord, list_words_in
from sash.memory.recall_question import split_sentences

# Marks where text is left out.
GAP = "…"
# A token has about so many characters at least. A longer piece is not counted before it is cut.
_CHARS_PER_TOKEN = 3


def cut_excerpt(text: str, words: Sequence[AskedWord], count: Callable[[str], int], max_tokens: int) -> str:
    """Return the sentences around the one with the most of some words, word for word, as many as fit.

    `count` counts the tokens of a text. The excerpt has a gap sign on each side where text is left out. It is
    empty if not even a few words fit.
    """
    spans = _find_sentences(text)
    if not spans:
        return ""
    hits = [len(list_words_in(text[start:end], words)) for start, end in spans]
    first = last = hits.index(max(hits))
    rest = max_tokens - 2 * count(GAP)
    start, end = spans[first]
    if (cost := count(text[start:end])) > rest:
        return _mark(text, start, _cut_end(text, start, end, count, rest))
    rest -= cost
    grows = True
    while grows:
        grows = False
        # What follows a sentence explains it more often than what comes before it.
        for nearest in (last + 1, first - 1):
            if not 0 <= nearest < len(spans) or (cost := count(text[slice(*spans[nearest])]) + 1) > rest:
                continue
            rest -= cost
            first, last, grows = min(first, nearest), max(last, nearest), True
    return _mark(text, spans[first][0], spans[last][1])


def _find_sentences(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text start and end."""
    spans, end = [], 0
    for sentence in split_sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        spans.append((start, end))
    return spans


def _cut_end(text: str, start: int, end: int, count: Callable[[str], int], max_tokens: int) -> int:
    """Return where a sentence has to end at the latest, between two words, so that it fits."""
    end = min(end, start + _CHARS_PER_TOKEN * max(0, max_tokens))
    while end > start and count(text[start:end]) > max_tokens:
        end = start + (end - start) * 3 // 4
    return max(text.rfind(" ", start, end), start) if end < len(text) else end


def _mark(text: str, start: int, end: int) -> str:
    """Return a part of a text with signs for what is left out before and behind it."""
    if end <= start:
        return ""
    before = f"{GAP} " if text[:start].strip() else ""
    return f"{before}{text[start:end].strip()}{f' {GAP}' if text[end:].strip() else ''}"
