"""Which messages have which words: an index in memory, for the stores that have no other."""

from collections import defaultdict
from itertools import groupby, islice

from sash.words import plain, words

# A beginning is looked up by its first letters, and what was found there is looked at.
_KEY = 4


class WordIndex:
    """Positions of a transcript by the beginnings of their words."""

    def __init__(self) -> None:
        self._at: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, position: int, text: str) -> None:
        """Take in what was said at a position; positions come in their order."""
        for word in set(words(text)):
            self._at[word[:_KEY]].append((position, word))

    def newest(self, beginning: str, limit: int) -> set[int]:
        """Return the last positions with a word that begins so."""
        beginning = plain(beginning)
        short = beginning[:_KEY]
        keys = [short] if len(short) == _KEY else [key for key in self._at if key.startswith(short)]
        found: set[int] = set()
        for key in keys:
            newest = (at for at, word in reversed(self._at.get(key, [])) if word.startswith(beginning))
            found.update(islice((at for at, _ in groupby(newest)), limit))
        return found
