"""Which messages have which words: an index in memory, for the stores that have no other."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import groupby, islice
from operator import itemgetter

from sash.memory.words import normalize, split_words

# A beginning is looked up by its first letters, and what was found there is looked at.
_KEY = 4


class WordIndex:
    """Positions of a transcript by the beginnings of their words."""

    def __init__(self) -> None:
        self._at: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, position: int, text: str) -> None:
        """Take in what was said at a position; positions come in their order."""
        for word in set(split_words(text)):
            self._at[word[:_KEY]].append((position, word))

    def replace(self, position: int, old: str, new: str) -> None:
        """Take in that something else was said at a position that is known."""
        for key in {word[:_KEY] for word in split_words(old)}:
            del self._at[key][self._place(key, position)]
        for word in set(split_words(new)):
            place = self._place(word[:_KEY], position)
            self._at[word[:_KEY]].insert(place.start, (position, word))

    def _place(self, key: str, position: int) -> slice:
        """Return where a list has the words of a position, or would have them."""
        found, by_position = self._at[key], itemgetter(0)
        return slice(
            bisect_left(found, position, key=by_position), bisect_right(found, position, key=by_position)
        )

    def newest(self, beginning: str, limit: int) -> set[int]:
        """Return the last positions with a word that begins so."""
        beginning = normalize(beginning)
        short = beginning[:_KEY]
        keys = [short] if len(short) == _KEY else [key for key in self._at if key.startswith(short)]
        found: set[int] = set()
        for key in keys:
            newest = (at for at, word in reversed(self._at.get(key, [])) if word.startswith(beginning))
            found.update(islice((at for at, _ in groupby(newest)), limit))
        return found
