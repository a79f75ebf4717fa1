"""The sentences for a user whose answer takes longer than `early_wait_seconds`."""

from typing import Any, NamedTuple

from sash.app.settings import Settings

DEFAULT_LANGUAGE = "en"


class _Sentences(NamedTuple):
    """A sentence for a turn that runs, and one for a turn that waits for an earlier one."""

    running: str
    pending: str


_SENTENCES = {
    "en": _Sentences(
        "I am still working on it. The answer follows.",
        "I am still working on your previous message. I answer this one next.",
    ),
    "de": _Sentences(
        "Ich arbeite noch daran. Die Antwort folgt.",
        "Ich arbeite noch an der vorigen Nachricht. Danach beantworte ich diese.",
    ),
    "es": _Sentences(
        "Todavía estoy trabajando en ello. La respuesta llegará enseguida.",
        "Todavía estoy con tu mensaje anterior. Después respondo a este.",
    ),
    "fr": _Sentences(
        "J'y travaille encore. La réponse suit.",
        "Je travaille encore sur ton message précédent. Je réponds ensuite à celui-ci.",
    ),
    "it": _Sentences(
        "Ci sto ancora lavorando. La risposta arriva tra poco.",
        "Sto ancora lavorando al messaggio precedente. Poi rispondo a questo.",
    ),
    "nl": _Sentences(
        "Ik ben er nog mee bezig. Het antwoord volgt.",
        "Ik ben nog bezig met je vorige bericht. Daarna beantwoord ik dit.",
    ),
}


def find_early_wait_s(settings: Settings) -> float | None:
    """Return the time until an early answer, or None if the settings want none."""
    return settings.early_wait_seconds if settings.early_wait_enable else None


def write_early_answer(status: str, *languages: Any) -> str:
    """Return the sentence for a turn under way, in the first of the languages that has one, else in English.

    A language is a tag such as "de" or "de-AT". Other values are skipped.
    """
    tags = [str(tag).lower().replace("_", "-").partition("-")[0] for tag in languages if tag]
    language = next((tag for tag in tags if tag in _SENTENCES), DEFAULT_LANGUAGE)
    sentences = _SENTENCES[language]
    return sentences.pending if status == "pending" else sentences.running
