"""Understands "remember that …" and "forget that …" without a model, in six languages."""

import re
from typing import NamedTuple

from sash.intents.polite_words import POLITE_PREFIX
from sash.ports.intents import Utterance, make_local_answer, make_local_call
from sash.ports.model import Answer


class _Language(NamedTuple):
    """The patterns of the requests to remember and to forget, and the templates of the answers."""

    remember_pattern: str
    remembered: str
    forget_pattern: str
    forgotten: str
    unknown: str


_LANGUAGES = (
    _Language(
        r"(?:remember|keep in mind|don['’]?t forget)(?: please)?(?:,? that |: ?)|(?:please )?note that "
        r"|remember (?=(?:my|our) .+ (?:is|are) )",
        "I will remember: {}",
        r"forget (?:that |about |everything about |what i said about |all about )",
        "I have forgotten: {}",
        "I have nothing noted about {}.",
    ),
    _Language(
        r"(?:merk dir|merke dir|behalte|denk daran|vergiss nicht)(?: bitte)?(?:,? dass |: ?)",
        "Das merke ich mir: {}",
        r"vergiss(?: bitte)?(?: alles über | das mit | was ich über |, dass | dass )",
        "Vergessen: {}",
        "Über {} habe ich mir nichts gemerkt.",
    ),
    _Language(
        r"(?:souviens-toi|rappelle-toi|retiens|note|n['’]oublie pas)(?: bien)?(?: que | qu['’]| ?: ?)",
        "C'est noté : {}",
        r"oublie (?:que |ce que j['’]ai dit sur |tout sur )",
        "Oublié : {}",
        "Je n'ai rien noté sur {}.",
    ),
    _Language(
        r"(?:recuerda|ten en cuenta|no olvides)(?: que |: ?)",
        "Lo recordaré: {}",
        r"olvida (?:que |lo de |todo sobre )",
        "Olvidado: {}",
        "No tengo nada anotado sobre {}.",
    ),
    _Language(
        r"(?:ricorda|ricordati|non dimenticare)(?: che |: ?)",
        "Me lo ricorderò: {}",
        r"dimentica (?:che |tutto su )",
        "Dimenticato: {}",
        "Non ho annotato nulla su {}.",
    ),
    _Language(
        r"(?:onthoud|vergeet niet)(?: dat |: ?)",
        "Ik onthoud: {}",
        r"vergeet (?:dat |alles over )",
        "Vergeten: {}",
        "Ik heb niets genoteerd over {}.",
    ),
)
_REMEMBER_PATTERNS = [
    (re.compile(rf"\A\s*+{POLITE_PREFIX}(?:{lang.remember_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_FORGET_PATTERNS = [
    (re.compile(rf"\A\s*+{POLITE_PREFIX}(?:{lang.forget_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_ANY_PATTERN = re.compile(
    rf"\A\s*+{POLITE_PREFIX}"
    rf"(?:{'|'.join(f'{lang.remember_pattern}|{lang.forget_pattern}' for lang in _LANGUAGES)})",
    re.I,
)

# Several sentences, or a fact together with a command. Only the model can do both.
_COMPLEX_PATTERN = re.compile(
    r"[.!?;]\s+\S|\?"
    r"|(?:^|[,:]\s*(?:so |and |then |but |und |dann |also )?|\b(?:and|then|so|und|dann|et|y|e|en)\s+)"
    r"(?:please |bitte )?(?:turn|switch|set|open|close|lock|unlock|play|stop|start|dim|pause|call|add|remind"
    r"|tell|show|summari[sz]e|translate|mach|mache|schalt|schalte|stell|stelle|öffne|schließ|schließe|spiel"
    r"|spiele|sag|zeig|allume|éteins|ouvre|ferme|enciende|apaga|abre|cierra|accendi|spegni|apri|chiudi|zet"
    r"|doe)\b",
    re.I,
)
# "Forget about it" does not ask to forget a fact.
_PRONOUNS = frozenset({"it", "that", "this", "them", "das", "es", "ça", "eso", "dat"})
_MAX_CHARS = 400


class MemoryIntents:
    """Stores and deletes facts by calling the tools `remember` and `forget`."""

    async def understand(self, utterance: Utterance) -> Answer | None:
        if not _ANY_PATTERN.match(utterance.text):
            return None
        if found := _match(_FORGET_PATTERNS, utterance.text):
            return self._forget(utterance, *found)
        if found := _match(_REMEMBER_PATTERNS, utterance.text):
            return self._remember(utterance, *found)
        return None

    def _remember(self, utterance: Utterance, text: str, language: _Language) -> Answer | None:
        if "remember" not in utterance.tools:
            return None
        if not utterance.results:
            return make_local_call("remember", text=text)
        result = utterance.results[-1].parse_object()
        return make_local_answer(language.remembered.format(result["fact"])) if "fact" in result else None

    def _forget(self, utterance: Utterance, text: str, language: _Language) -> Answer | None:
        if "forget" not in utterance.tools:
            return None
        if not utterance.results:
            return make_local_call("forget", about=text)
        result = utterance.results[-1].parse_object()
        if "forgotten" not in result:
            return None
        facts = "; ".join(result["forgotten"])
        return make_local_answer(language.forgotten.format(facts) if facts else language.unknown.format(text))


def _match(patterns: list[tuple[re.Pattern[str], _Language]], text: str) -> tuple[str, _Language] | None:
    """Return the fact and the language of a request; None if the model must handle it."""
    for pattern, language in patterns:
        if found := pattern.fullmatch(text):
            fact = found[1].strip().rstrip(".!")
            is_complex = len(fact) > _MAX_CHARS or _COMPLEX_PATTERN.search(fact)
            return None if is_complex or fact.casefold() in _PRONOUNS else (fact, language)
    return None
