"""The sentence that undoes the last action, for a surface that says it in the place of the user."""

from collections.abc import Mapping

UNDO_SENTENCES: Mapping[str, str] = {
    "en": "undo that",
    "de": "mach das rückgängig",
    "fr": "annule ça",
    "es": "deshaz eso",
    "it": "annulla l'ultima azione",
    "nl": "maak dat ongedaan",
}


def choose_undo_sentence(*languages: str | None) -> tuple[str, str]:
    """Return the language tag and the sentence of the first given language; English if it has none."""
    first = next(filter(None, languages), "en")
    tag = first.lower().partition("-")[0]
    tag = tag if tag in UNDO_SENTENCES else "en"
    return tag, UNDO_SENTENCES[tag]
