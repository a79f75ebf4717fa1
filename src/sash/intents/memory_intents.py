"""Understands "remember that …", "forget that …" and "let's start over" without a model, in six languages."""

import re
from typing import NamedTuple

from sash.intents.polite_words import POLITE_PREFIX
from sash.ports.intents import Utterance, make_local_answer, make_local_call
from sash.ports.model import Answer
from sash.values.steps import RESET_TOOL


class _Language(NamedTuple):
    """The patterns of the requests to remember, to forget and to start over, and the answers to them."""

    remember_pattern: str
    remembered: str
    forget_pattern: str
    forgotten: str
    unknown: str
    reset_pattern: str
    reset: str


_LANGUAGES = (
    _Language(
        r"(?:remember|keep in mind|don['’]?t forget)(?: please)?(?:,? that |: ?)|(?:please )?note that "
        r"|remember (?=(?:my|our) .+ (?:is|are) )",
        "I will remember: {}",
        r"forget (?:that |about |everything about |what i said about |all about )",
        "I have forgotten: {}",
        "I have nothing noted about {}.",
        r"(?:let['’]?s |let us |i want to |can we )?(?:start (?:all )?over(?: again)?|"
        r"start (?:again )?from scratch|begin again)|(?:let['’]?s )?start a new conversation|"
        r"(?:reset|clear) (?:the|this|our) (?:conversation|chat)|forget (?:the|this|"
        r"our) conversation|new topic",
        "All right, we start over.",
    ),
    _Language(
        r"(?:merk dir|merke dir|behalte|denk daran|vergiss nicht)(?: bitte)?(?:,? dass |: ?)",
        "Das merke ich mir: {}",
        r"vergiss(?: bitte)?(?: alles über | das mit | was ich über |, dass | dass )",
        "Vergessen: {}",
        "Über {} habe ich mir nichts gemerkt.",
        r"(?:lass uns|wir fangen|fangen wir|fang) (?:noch ?mal |nochmals |"
        r"wieder )?(?:ganz )?(?:von vorne?|neu)(?: an(?:fangen)?| beginnen)?|"
        r"von vorne?(?:,? bitte)?|neues thema|(?:setz|setze) (?:das gespräch|"
        r"die unterhaltung) zurück|vergiss (?:das gespräch|diese unterhaltung)",
        "In Ordnung, wir fangen von vorne an.",
    ),
    _Language(
        r"(?:souviens-toi|rappelle-toi|retiens|note|n['’]oublie pas)(?: bien)?(?: que | qu['’]| ?: ?)",
        "C'est noté : {}",
        r"oublie (?:que |ce que j['’]ai dit sur |tout sur )",
        "Oublié : {}",
        "Je n'ai rien noté sur {}.",
        r"(?:recommençons|on recommence|recommence)(?: (?:à zéro|depuis le début|tout))?|"
        r"repartons (?:à|de) zéro|on repart (?:à|de) zéro|réinitialise la conversation|"
        r"nouveau sujet",
        "D'accord, on recommence.",
    ),
    _Language(
        r"(?:recuerda|ten en cuenta|no olvides)(?: que |: ?)",
        "Lo recordaré: {}",
        r"olvida (?:que |lo de |todo sobre )",
        "Olvidado: {}",
        "No tengo nada anotado sobre {}.",
        r"(?:empecemos|empezemos|empieza|comencemos|volvamos a empezar)(?: de nuevo|"
        r" desde cero| otra vez)|volvamos a empezar|reinicia la conversación|nuevo tema",
        "De acuerdo, empezamos de nuevo.",
    ),
    _Language(
        r"(?:ricorda|ricordati|non dimenticare)(?: che |: ?)",
        "Me lo ricorderò: {}",
        r"dimentica (?:che |tutto su )",
        "Dimenticato: {}",
        "Non ho annotato nulla su {}.",
        r"(?:ricominciamo|ricomincia)(?: da capo| da zero| dall['’]inizio)?|"
        r"ripartiamo da (?:capo|zero)|azzera la conversazione|nuovo argomento",
        "Va bene, ricominciamo.",
    ),
    _Language(
        r"(?:onthoud|vergeet niet)(?: dat |: ?)",
        "Ik onthoud: {}",
        r"vergeet (?:dat |alles over )",
        "Vergeten: {}",
        "Ik heb niets genoteerd over {}.",
        r"(?:laten we |we )?(?:opnieuw|overnieuw) beginnen|"
        r"(?:laten we )?(?:weer )?bij het begin beginnen|begin opnieuw|reset het gesprek|"
        r"nieuw onderwerp",
        "Goed, we beginnen opnieuw.",
    ),
)
_REMEMBER_PATTERNS = [
    (re.compile(rf"\A\s*+{POLITE_PREFIX}(?:{lang.remember_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_FORGET_PATTERNS = [
    (re.compile(rf"\A\s*+{POLITE_PREFIX}(?:{lang.forget_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_RESET_PATTERNS = [
    (
        re.compile(rf"{POLITE_PREFIX}(?:{lang.reset_pattern})(?:,? (?:please|bitte))?\s*[.!]*", re.I),
        lang,
    )
    for lang in _LANGUAGES
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
_MAX_RESET_CHARS = 80


class MemoryIntents:
    """Calls the tools `remember`, `forget` and `reset_conversation`."""

    async def understand(self, utterance: Utterance) -> Answer | None:
        if language := _match_reset(utterance.text):
            return self._reset(utterance, language)
        if not _ANY_PATTERN.match(utterance.text):
            return None
        if found := _match(_FORGET_PATTERNS, utterance.text):
            return self._forget(utterance, *found)
        if found := _match(_REMEMBER_PATTERNS, utterance.text):
            return self._remember(utterance, *found)
        return None

    def _reset(self, utterance: Utterance, language: _Language) -> Answer | None:
        if RESET_TOOL not in utterance.tools:
            return None
        if not utterance.results:
            return make_local_call(RESET_TOOL)
        is_done = "reset" in utterance.results[-1].parse_object()
        return make_local_answer(language.reset) if is_done else None

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


def _match_reset(text: str) -> _Language | None:
    """Return the language of a request to start over, or None if the text is something else."""
    text = text.strip()
    if len(text) > _MAX_RESET_CHARS:
        return None
    return next((lang for pattern, lang in _RESET_PATTERNS if pattern.fullmatch(text)), None)


def _match(patterns: list[tuple[re.Pattern[str], _Language]], text: str) -> tuple[str, _Language] | None:
    """Return the fact and the language of a request; None if the model must handle it."""
    for pattern, language in patterns:
        if found := pattern.fullmatch(text):
            fact = found[1].strip().rstrip(".!")
            is_complex = len(fact) > _MAX_CHARS or _COMPLEX_PATTERN.search(fact)
            return None if is_complex or fact.casefold() in _PRONOUNS else (fact, language)
    return None
