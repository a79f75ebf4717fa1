"""Understands "undo that" without a model, in six languages."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from sash.intents.polite_words import POLITE_PREFIX
from sash.intents.question_detection import is_polite_request
from sash.ports.intents import Utterance, make_local_answer, make_local_call
from sash.ports.model import Answer

TOOL = "undo_last_action"
MAX_CHARS = 80
# The sentence that undoes the last action, in the languages that need no model for it.
UNDO_SENTENCES: Mapping[str, str] = {
    "en": "undo that",
    "de": "mach das rückgängig",
    "fr": "annule ça",
    "es": "deshaz eso",
    "it": "annulla l'ultima azione",
    "nl": "maak dat ongedaan",
}


class _Language(NamedTuple):
    """The pattern of the request, the template of the answer, and the names of some states."""

    undo_pattern: str
    undone: str
    state_names: Mapping[str, str] = {}

    def translate_state(self, text: str) -> str:
        """Return a state in this language. Details may follow the state: "on (brightness 128)"."""
        state, blank, details = text.partition(" ")
        return f"{self.state_names.get(state, state)}{blank}{details}"


_LANGUAGES = (
    _Language(
        r"undo(?: (?:that|it|this|the last (?:action|change|command)))?|(?:take|put) (?:that|it) back"
        r"|revert (?:that|it|the last (?:action|change))",
        "Undone. {}",
    ),
    _Language(
        r"(?:mach|mache) (?:das|es|die letzte (?:aktion|änderung))(?: wieder)? rückgängig"
        r"|rückgängig(?: machen)?|nimm das zurück",
        "Rückgängig gemacht. {}",
        {"on": "an", "off": "aus", "open": "offen", "closed": "geschlossen"},
    ),
    _Language(r"(?:annule|défais) (?:ça|cela|la dernière action)", "Annulé. {}"),
    _Language(r"deshaz(?:lo| eso| la última acción)|deshacer", "Deshecho. {}"),
    _Language(r"annulla (?:l['’]ultima azione|quello che hai fatto)", "Annullato. {}"),
    _Language(r"maak (?:dat|het|de laatste actie) ongedaan|ongedaan maken", "Ongedaan gemaakt. {}"),
)
_PATTERNS = [
    (
        re.compile(rf"{POLITE_PREFIX}(?:{language.undo_pattern})(?:,? (?:please|bitte))?[.!]*", re.I),
        language,
    )
    for language in _LANGUAGES
]


def choose_undo_sentence(*languages: str | None) -> tuple[str, str]:
    """Return the language tag and the sentence of the first given language; English if it has none."""
    first = next(filter(None, languages), "en")
    tag = first.lower().partition("-")[0]
    tag = tag if tag in UNDO_SENTENCES else "en"
    return tag, UNDO_SENTENCES[tag]


class UndoIntents:
    """Undoes the last action with the tool `undo_last_action`. The model explains a failure."""

    async def understand(self, utterance: Utterance) -> Answer | None:
        text = utterance.text.strip()
        if is_polite_request(text):
            text = text.rstrip("?")
        if TOOL not in utterance.tools or len(text) > MAX_CHARS:
            return None
        language = next((language for pattern, language in _PATTERNS if pattern.fullmatch(text)), None)
        if language is None:
            return None
        if not utterance.results:
            return make_local_call(TOOL)
        result = utterance.results[-1].parse_object()
        try:
            states = [f"{e['name']}: {language.translate_state(str(e['after']))}" for e in result["entities"]]
        except (TypeError, KeyError):
            return None
        if result.get("verified") is False or not states:
            return None
        return make_local_answer(language.undone.format("; ".join(states)))
