"""The words of a text, as they are compared when somebody looks for them."""

import re

_word = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the words of a text in their order, without regard to case."""
    return _word.findall(text.casefold())
