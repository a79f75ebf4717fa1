"""Finds words that are written like an unknown word: compounds with it, parts of it, and typing mistakes."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice

from sash.memory.asked_words import AskedWord
from sash.memory.recall_ranking import K
from sash.memory.words import is_unspaced, split_index_words

# Words are compared by their parts of so many letters.
PART_LENGTH = 3
# A shorter word has too few parts. A longer one is hardly a word.
MIN_CHARS, MAX_CHARS = 4, 40
# So many different words of one message are known. More are no text that a person writes.
MAX_WORDS_OF_MESSAGE = 2000
# The shortest word that counts as a part of a compound.
_MIN_PART_OF_COMPOUND = 5
# Words are similar if they share more of their parts than this.
_MIN_DICE = 0.5
MAX_SIMILAR = 12
# So many words that share the most parts with a word are compared with it.
MAX_COMPARED = 200


def list_parts(word: str) -> list[str]:
    """Return the parts of three letters that a word has, with a blank before and behind it.

    Short and long words, numbers, and words of scripts without blanks have none.
    """
    if not MIN_CHARS <= len(word) <= MAX_CHARS or not word.isalpha() or is_unspaced(word):
        return []
    padded = f" {word} "
    return list(dict.fromkeys(padded[n : n + PART_LENGTH] for n in range(len(padded) - PART_LENGTH + 1)))


def list_known_words(text: str) -> list[str]:
    """Return the words of a text that can be found as similar words, at most `MAX_WORDS_OF_MESSAGE`."""
    words = (word for word in dict.fromkeys(split_index_words(text)) if list_parts(word))
    return list(islice(words, MAX_WORDS_OF_MESSAGE))


def choose_similar(word: str, known: Iterable[str]) -> list[str]:
    """Return those known words that are written like a word, the most similar ones first."""
    parts = set(list_parts(word))
    found = []
    for other in known:
        likeness = compare_parts(parts, set(list_parts(other)))
        if likeness > _MIN_DICE or _is_part(word, other) or _is_part(other, word):
            found.append((-likeness, other))
    return [other for _, other in sorted(found)[:MAX_SIMILAR]]


def add_similar(
    lists: list[set[K]], words: Sequence[AskedWord], find_similar: Callable[[str], Collection[K]]
) -> frozenset[int]:
    """Add the messages with similar words to the lists of those words that no message has.

    Return the numbers of these words.
    """
    guessed = set()
    for n, word in enumerate(words):
        if not lists[n] and (found := find_similar(word.text)):
            lists[n].update(found)
            guessed.add(n)
    return frozenset(guessed)


def compare_parts(one: set[str], other: set[str]) -> float:
    """Return how many parts two words share, from 0 to 1 (the coefficient of Dice)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _is_part(word: str, compound: str) -> bool:
    """Return True if a compound ends or begins with a word. Its other part is long enough to be a word."""
    rest = len(compound) - len(word)
    return (
        len(word) >= _MIN_PART_OF_COMPOUND
        and rest >= PART_LENGTH
        and (compound.endswith(word) or compound.startswith(word))
    )
