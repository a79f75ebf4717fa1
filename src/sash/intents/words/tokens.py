"""Splits a sentence into tokens."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# A fraction, a number with decimals or minutes, a word, or a sign that means something.
_TOKEN = re.compile(r"(?<![\d/])[1-9]/[2-9](?![\d/])|[½⅓⅔¼¾]|\d+(?:[.,:]\d+)?|[^\W\d_]+|[%°?,;¿€]")
_FRACTIONS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_MARKS = re.compile(r"[\u0300-\u036f]")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign. `word` is compared, and `start` and `end` are its place in the sentence."""

    word: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        return self.word[0].isdecimal()


def split_tokens(text: str, offset: int = 0) -> list[Token]:
    """Return the tokens of a sentence. Apostrophes and hyphens separate words: "l'entrée" has two.

    `offset` is the place of the text in the sentence.
    """
    text = unicodedata.normalize("NFC", text)
    return [
        Token(_FRACTIONS.get(found[0]) or found[0].casefold(), offset + found.start(), offset + found.end())
        for found in _TOKEN.finditer(text)
    ]


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a name or a phrase, without signs."""
    return tuple(token.word for token in split_tokens(text) if token.word[0].isalnum())


@lru_cache(maxsize=8192)
def remove_accents(word: str) -> str:
    """Return a word without accents: "küche" becomes "kuche"."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", word)).replace("ß", "ss")


def write_umlauts(word: str) -> str:
    """Return a German word with umlauts in place of two letters: "kueche" becomes "küche"."""
    return word.replace("ae", "ä").replace("oe", "ö").replace("ue", "ü")
