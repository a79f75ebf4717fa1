"""The words of a text, as they are compared when somebody looks for them."""

import re
import unicodedata

_word = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the words of a text in their order, without regard to case and accents."""
    return _word.findall(plain(text))


def plain(text: str) -> str:
    """Return a text in lower case and without accents, as SQLite's index has it."""
    lower = text.lower()
    if lower.isascii():
        return lower
    return "".join(c for c in unicodedata.normalize("NFD", lower) if not unicodedata.combining(c))
