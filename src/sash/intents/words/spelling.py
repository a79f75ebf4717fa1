"""Corrects typing mistakes: a word that no lexicon and no name has, if exactly one known word is close."""

from collections.abc import Iterable

MIN_CHARS = 4
# Words of this length may differ by two letters.
MIN_CHARS_FOR_TWO = 8
# Shorter words are corrected only if two letters are swapped, or one is missing or doubled.
MIN_CHARS_TO_REPLACE = 5


class Spelling:
    """The known words, by their first letter and their length."""

    def __init__(self, words: Iterable[str]) -> None:
        self._by_shape: dict[tuple[str, int], list[str]] = {}
        for word in set(words):
            if len(word) >= MIN_CHARS - 1 and word.isalpha():
                self._by_shape.setdefault((word[0], len(word)), []).append(word)

    def correct(self, word: str) -> str | None:
        """Return the only known word that differs by a slip; None if none or several are equally close."""
        if len(word) < MIN_CHARS or not word.isalpha():
            return None
        reach = 2 if len(word) >= MIN_CHARS_FOR_TWO else 1
        best: list[str] = []
        best_distance = reach + 1
        for length in range(len(word) - reach, len(word) + reach + 1):
            for known in self._by_shape.get((word[0], length), ()):
                distance = _measure_distance(word, known, reach)
                if (
                    distance == 1
                    and len(word) == len(known) < MIN_CHARS_TO_REPLACE
                    and not _is_swap(word, known)
                ):
                    continue
                if distance < best_distance:
                    best, best_distance = [known], distance
                elif distance == best_distance <= reach:
                    best.append(known)
        # "Radioo" is "radio" rather than "radios".
        likely = [known for known in best if _is_swap(word, known) or _is_doubled(word, known)]
        best = likely or best
        return best[0] if len(best) == 1 else None


def _is_doubled(word: str, known: str) -> bool:
    """Return whether a word is a known one with one letter twice."""
    return any(known == word[:n] + word[n + 1 :] and word[n] == word[n - 1] for n in range(1, len(word)))


def _is_swap(one: str, other: str) -> bool:
    return sorted(one) == sorted(other)


def _measure_distance(one: str, other: str, limit: int) -> int:
    """Return how many letters to add, drop, replace or swap make one word the other; at most `limit` + 1."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before_last, last = last, row
    return min(last[-1], limit + 1)
