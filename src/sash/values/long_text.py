"""Searches in long texts.

A search holds Python's global lock until it finds something. So a long text is searched in pieces, and other
threads run in between.
"""

import re
from collections.abc import Iterator

PIECE_CHARS = 1 << 10
# A search reads this much of the next piece, because a match may begin in one piece and end in the next.
_OVERLAP_CHARS = 1 << 10


def iterate_matches(pattern: re.Pattern[str], text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern from `start` on, as its `finditer` does. No match may be empty.

    A match longer than `_OVERLAP_CHARS` is found if each of its beginnings of that length matches, too.
    """
    at = start
    while at < len(text):
        end, limit = at + PIECE_CHARS, at + PIECE_CHARS + _OVERLAP_CHARS
        at = end
        for found in pattern.finditer(text, end - PIECE_CHARS, limit):
            if found.start() >= end:
                break
            whole = pattern.match(text, found.start()) if found.end() == limit else found
            if whole is not None:
                yield whole
                at = max(end, whole.end())


def cut_pieces(text: str, chars: int) -> Iterator[str]:
    """Yield the pieces of a text, each of `chars` characters; the last one may be shorter."""
    return (text[start : start + chars] for start in range(0, len(text), chars))
