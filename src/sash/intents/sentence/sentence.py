"""A sentence as words and phrases."""

from collections.abc import Iterable
from dataclasses import dataclass

from sash.intents.words.phrases import Match, choose_matches
from sash.intents.words.tokens import Token


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as tokens and phrases. `words` are compared; each belongs to the token at its place."""

    text: str
    tokens: tuple[Token, ...]
    words: tuple[str, ...]
    matches: tuple[Match, ...]
    corrected: bool = False

    def covers(self, section: str, *, more: Iterable[str] = ("filler", "soft")) -> str | None:
        """Return the meaning of a phrase of a section, if nothing but filler words surrounds it."""
        wanted = [match for match in self.matches if match.kind == section]
        others = [match for match in self.matches if match.kind in more]
        signs = {n for n, word in enumerate(self.words) if not word[0].isalnum()}
        for match in sorted(wanted, key=lambda match: -len(match.places)):
            chosen = choose_matches(others, match.places)
            covered = {*match.places, *signs, *(place for one in chosen for place in one.places)}
            if len(covered) == len(self.words):
                return match.value
        return None

    def find(self, section: str) -> list[Match]:
        """Return the phrases of a section, longest first."""
        found = [match for match in self.matches if match.kind == section]
        return sorted(found, key=lambda match: (-len(match.places), match.start))

    def cut(self, start: int, end: int) -> str:
        """Return the text of the tokens from `start` up to `end`."""
        if start >= end:
            return ""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]
