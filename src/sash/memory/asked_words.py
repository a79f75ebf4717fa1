"""The words of a question for old messages, with the forms by which texts have them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sash.memory.words import normalize, split_index_words


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question in normal form, and its forms: "bought", or "buy*" for all words that begin so."""

    text: str
    forms: tuple[str, ...]


def list_words_in(text: str, words: Sequence[AskedWord]) -> list[int]:
    """Return the numbers of those words of which a text has a form."""
    return list_words_among(set(split_index_words(text)), words)


def list_words_among(said: Collection[str], words: Sequence[AskedWord]) -> list[int]:
    """Return the numbers of those words of which a form is among the words of a text."""
    return [n for n, word in enumerate(words) if any(_has_form(said, form) for form in word.forms)]


def _has_form(said: Collection[str], form: str) -> bool:
    wanted = normalize(form.rstrip("*"))
    if not form.endswith("*"):
        return wanted in said
    return bool(wanted) and any(word.startswith(wanted) for word in said)
