"""Cuts the parts out of a long message that a question asks for."""

from collections.abc import Callable, Sequence

from sash.memory.asked_words import AskedWord, list_words_in
from sash.memory.recall_question import split_sentences

# Marks where text is left out.
GAP = "…"
# A piece with more characters per token cannot fit, and is cut before it is counted.
_MAX_CHARS_PER_TOKEN = 20

_Span = tuple[int, int]


def cut_excerpt(text: str, words: Sequence[AskedWord], count: Callable[[str], int], max_tokens: int) -> str:
    """Return the sentences of a text with some words, and those around them, word for word, as many as fit.

    `count` counts the tokens of a text. A gap sign stands where text is left out. The excerpt is empty if not
    even a few words fit.
    """
    sign = count(f" {GAP} ")
    rest = max_tokens - 2 * sign
    spans = _cut_long(text, _find_sentences(text), words, count, rest)
    rest += 1  # for the blank that the last sentence lacks
    costs = [count(text[start:end]) + 1 for start, end in spans]
    has = [{*list_words_in(text[start:end], words)} for start, end in spans]
    chosen: set[int] = set()
    found: set[int] = set()
    while True:
        room = rest - (sign if chosen else 0)
        new = [n for n in range(len(spans)) if n not in chosen and costs[n] <= room and has[n] - found]
        if not new:
            break
        best = max(new, key=lambda n: len(has[n] - found))
        chosen.add(best)
        found |= has[best]
        rest = room - costs[best]
    grows = True
    while grows:
        # What follows a sentence explains it more often than what comes before it.
        near = [n + step for step in (1, -1) for n in sorted(chosen) if 0 <= n + step < len(spans)]
        nearest = next((n for n in near if n not in chosen and costs[n] <= rest), None)
        if grows := nearest is not None:
            chosen.add(nearest)
            rest -= costs[nearest]
    return _join(text, [spans[n] for n in sorted(chosen)])


def _find_sentences(text: str) -> list[_Span]:
    """Return where the sentences of a text start and end. A line ends a sentence."""
    spans, end = [], 0
    for line in text.splitlines():
        for sentence in split_sentences(line):
            start = text.index(sentence, end)
            end = start + len(sentence)
            spans.append((start, end))
    return spans


def _cut_long(
    text: str,
    spans: Sequence[_Span],
    words: Sequence[AskedWord],
    count: Callable[[str], int],
    max_tokens: int,
) -> list[_Span]:
    """Return the spans, with the best part of each that is too long."""
    size = _MAX_CHARS_PER_TOKEN * max(0, max_tokens)
    parts = []
    for start, end in spans:
        if end - start > size or count(text[start:end]) > max_tokens:
            start, end = _find_part(text, (start, end), words, count, max_tokens)
        if start < end:
            parts.append((start, end))
    return parts


def _find_part(
    text: str, span: _Span, words: Sequence[AskedWord], count: Callable[[str], int], max_tokens: int
) -> _Span:
    """Return the part of a sentence that has the most words and fits. It ends at blanks if there are any."""
    start, end = span
    size = min(end - start, _MAX_CHARS_PER_TOKEN * max(0, max_tokens))
    while size and count(text[start : start + size]) > max_tokens:
        size = size * 3 // 4
    starts = range(start, end, max(1, size // 2))
    first = max(starts, key=lambda at: len(list_words_in(text[at : at + size], words))) if size else end
    last = min(end, first + size)
    if first > start and (blank := text.find(" ", first, last)) >= 0:
        first = blank + 1
    if last < end and (blank := text.rfind(" ", first, last)) >= 0:
        last = blank
    while first < last and count(text[first:last]) > max_tokens:
        last = first + (last - first) * 3 // 4
    return first, last


def _join(text: str, spans: Sequence[_Span]) -> str:
    """Return parts of a text with signs where text is left out."""
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        between = text[end:start]
        pieces += [f" {GAP} " if between.strip() else between if pieces else "", text[start:stop]]
        end = stop
    if pieces and text[end:].strip():
        pieces.append(f" {GAP}")
    return "".join(pieces).strip()
