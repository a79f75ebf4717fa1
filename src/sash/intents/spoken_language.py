"""Chooses the languages in which a sentence may be said, if the user's language is not given."""

from collections.abc import Mapping

# So many languages are tried for one sentence.
MAX_TRIED = 3
# The language of the last turns may know so much less of a sentence than another one.
ADVANTAGE = 0.3
# A sentence tells its language if so much of it is known.
SURE = 0.7


def rank_languages(scores: Mapping[str, float], spoken: str | None, of_home: str | None) -> list[str]:
    """Return the languages to try, the likeliest first. `scores` tell how much it is in each.

    `spoken` is the language of the last turns, and `of_home` that of the home.
    """

    def rank(language: str) -> tuple[float, bool, bool]:
        advantage = ADVANTAGE if language == spoken else 0.0
        return -scores[language] - advantage, language != spoken, language != of_home

    known = sorted((each for each in scores if scores[each]), key=rank)
    tried = known[:MAX_TRIED]
    return [*tried, *(each for each in known if each == of_home and each not in tried)]


def recognize_language(scores: Mapping[str, float]) -> str | None:
    """Return the language that knows most of a sentence; None if no language does, or several do."""
    best = max(scores.values(), default=0.0)
    found = [language for language, score in scores.items() if score == best]
    return found[0] if best >= SURE and len(found) == 1 else None
