"""'Remember that …' and 'forget that …', in some languages, without a model."""

import json
import re
from typing import Any, NamedTuple

from sash.ports.intents import Utterance, answering, calling
from sash.ports.model import Answer


class _Language(NamedTuple):
    remember: str
    remembered: str
    forget: str
    forgot: str
    unknown: str


_POLITE = r"(?:(?:hey |ok |okay )?sash\W+)?(?:(?:please|bitte)\W+)?(?:can you |could you |kannst du )?"
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
_remember = [(re.compile(rf"\s*{_POLITE}(?:{lang.remember})(.+)", re.I), lang) for lang in _LANGUAGES]
_forget = [(re.compile(rf"\s*{_POLITE}(?:{lang.forget})(.+)", re.I), lang) for lang in _LANGUAGES]

_any = re.compile(
    rf"\s*{_POLITE}(?:{'|'.join(f'{lang.remember}|{lang.forget}' for lang in _LANGUAGES)})", re.I
)

# More than one sentence, or a wish beside the fact, is for the model: it can note the one and do the other.
_more = re.compile(
    r"[.!?;]\s+\S|\?"
    r"|(?:^|[,:]\s*(?:so |and |then |but |und |dann |also )?|\b(?:and|then|so|und|dann|et|y|e|en)\s+)"
    r"(?:please |bitte )?(?:turn|switch|set|open|close|lock|unlock|play|stop|start|dim|pause|call|add|remind"
    r"|tell|show|summari[sz]e|translate|mach|mache|schalt|schalte|stell|stelle|öffne|schließ|schließe|spiel"
    r"|spiele|sag|zeig|allume|éteins|ouvre|ferme|enciende|apaga|abre|cierra|accendi|spegni|apri|chiudi|zet"
    r"|doe)\b",
    re.I,
)
# "Forget about it" is no wish to forget anything.
_NOTHING = frozenset({"it", "that", "this", "them", "das", "es", "ça", "eso", "dat"})
_LONGEST = 400


class MemoryIntents:
    """Keeps facts and drops them, by the tools `remember` and `forget`."""

    async def understand(self, heard: Utterance) -> Answer | None:
        if not _any.match(heard.text):
            return None
        if found := _match(_forget, heard.text):
            return self._forget(heard, *found)
        if found := _match(_remember, heard.text):
            return self._remember(heard, *found)
        return None

    def _remember(self, heard: Utterance, text: str, language: _Language) -> Answer | None:
        if "remember" not in heard.tools:
            return None
        if not heard.results:
            return calling("remember", text=text)
        result = _read(heard.results[-1].content)
        return answering(language.remembered.format(result["fact"])) if "fact" in result else None

    def _forget(self, heard: Utterance, text: str, language: _Language) -> Answer | None:
        if "forget" not in heard.tools:
            return None
        if not heard.results:
            return calling("forget", about=text)
        result = _read(heard.results[-1].content)
        if "forgotten" not in result:
            return None
        facts = "; ".join(result["forgotten"])
        return answering(language.forgot.format(facts) if facts else language.unknown.format(text))


def _match(patterns: list[tuple[re.Pattern[str], _Language]], text: str) -> tuple[str, _Language] | None:
    for pattern, language in patterns:
        if found := pattern.fullmatch(text):
            what = found[1].strip().rstrip(".!")
            for_the_model = len(what) > _LONGEST or _more.search(what) or what.casefold() in _NOTHING
            return None if for_the_model else (what, language)
    return None


def _read(content: str) -> dict[str, Any]:
    """Return what a tool has returned; one that could not do it says so in words, and the model answers."""
    try:
        result = json.loads(content)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
