"""An in-memory word index, for a backend without a full-text index."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from operator import itemgetter

from sash.memory.similar_words import MAX_COMPARED, list_known_words, list_parts
from sash.memory.words import normalize, split_index_words

# Words are grouped by their first letters. This is the number of letters.
_KEY_LENGTH = 4


class WordIndex:
    """Finds the positions of messages in a transcript by their words."""

    def __init__(self) -> None:
        self._by_key: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._known: set[str] = set()
        self._by_part: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, position: int, text: str) -> None:
        """Add the text of a message. Positions must come in ascending order."""
        for word in set(split_index_words(text)):
            self._by_key[word[:_KEY_LENGTH]].append((position, word))
        self._add_known(text)

    def replace(self, position: int, old: str, new: str) -> None:
        """Replace the text of a message that the index contains."""
        for key in {word[:_KEY_LENGTH] for word in split_index_words(old)}:
            del self._by_key[key][self._find_slice(key, position)]
        for word in set(split_index_words(new)):
            at = self._find_slice(word[:_KEY_LENGTH], position).start
            self._by_key[word[:_KEY_LENGTH]].insert(at, (position, word))
        self._add_known(new)
        for word in self._known.intersection(list_known_words(old)):
            if not self.find(word):
                self._known.remove(word)
                for part in list_parts(word):
                    del self._by_part[part][word]

    def find(self, form: str) -> set[int]:
        """Return the positions of messages that have a word. "boil*" is the beginning of a word."""
        wanted = normalize(form.rstrip("*"))
        first = wanted[:_KEY_LENGTH]
        is_short = form.endswith("*") and len(first) < _KEY_LENGTH
        keys = [key for key in self._by_key if key.startswith(first)] if is_short else [first]
        items = (item for key in keys for item in self._by_key.get(key, ()))
        if form.endswith("*"):
            return {at for at, word in items if wanted and word.startswith(wanted)}
        return {at for at, word in items if word == wanted}

    def find_candidates(self, word: str) -> list[str]:
        """Return the words of the transcript that share the most parts with one."""
        shared = Counter(other for part in list_parts(word) for other in self._by_part.get(part, ()))
        return [other for other, _ in shared.most_common(MAX_COMPARED)]

    def _add_known(self, text: str) -> None:
        for word in list_known_words(text):
            if word not in self._known:
                self._known.add(word)
                for part in list_parts(word):
                    self._by_part[part][word] = None

    def _find_slice(self, key: str, position: int) -> slice:
        """Return the slice of a group that holds the words of a message, given the message's position.

        The slice is empty and marks the place to insert if the message has no word in the group.
        """
        found, by_position = self._by_key[key], itemgetter(0)
        return slice(
            bisect_left(found, position, key=by_position), bisect_right(found, position, key=by_position)
        )
