"""'Undo that', in some languages, without a model."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from sash.ports.intents import Utterance, answering, calling
from sash.ports.model import Answer

TOOL = "undo_last_action"
LONGEST = 80


class _Language(NamedTuple):
    """How it is asked for, what is said then, and what states are called that have another name."""

    undo: str
    undone: str
    states: Mapping[str, str] = {}

    def state(self, text: str) -> str:
        """Say a state, which may be followed by what belongs to it: off, on (brightness 128)."""
        state, blank, rest = text.partition(" ")
        return f"{self.states.get(state, state)}{blank}{rest}"


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
_POLITE = r"(?:(?:hey |ok |okay )?sash\W+)?(?:please |bitte |can you |could you |kannst du )?"
_asked_politely = re.compile(r"(?:can|could) you|kannst du", re.I)
_patterns = [
    (re.compile(rf"{_POLITE}(?:{language.undo})(?:,? (?:please|bitte))?[.!]*", re.I), language)
    for language in _LANGUAGES
]


class UndoIntents:
    """Takes the last action back, by the tool for it; what it has to say to that is for the model."""

    async def understand(self, heard: Utterance) -> Answer | None:
        text = heard.text.strip()
        if _asked_politely.match(text):
            text = text.rstrip("?")
        if TOOL not in heard.tools or len(text) > LONGEST:
            return None
        language = next((language for pattern, language in _patterns if pattern.fullmatch(text)), None)
        if language is None:
            return None
        if not heard.results:
            return calling(TOOL)
        try:
            result = json.loads(heard.results[-1].content)
            told = [f"{e['name']}: {language.state(str(e['after']))}" for e in result["entities"]]
        except (ValueError, TypeError, KeyError):
            return None
        if result.get("verified") is False or not told:
            return None
        return answering(language.undone.format("; ".join(told)))
