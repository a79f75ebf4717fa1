"""Understands "remember that …", "forget that …" and "let's start over" without a model, in six languages."""

import re
from typing import NamedTuple

from sash.intents.words.tokens import split_words
from sash.ports.intents import Utterance, make_local_answer, make_local_call
from sash.ports.model import Answer
from sash.values.steps import RESET_TOOL

# A pattern for "hey sash, please can you ". It also matches an empty text.
_POLITE_PREFIX = (
    r"(?:(?:hey |ok |okay )?sash\W+)?(?:(?:please|bitte)\W+)?(?:can you |could you |you can |kannst du )?"
)


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
        r"|(?:remember|don['’]?t forget) "
        r"(?=(?:my|our|the) .+ (?:is|are|was|has|have|goes|comes|needs|lives|likes) )"
        r"|(?:remember|don['’]?t forget)(?: that)? "
        r"(?=(?:i|we)(?:['’]ve| have)? (?:parked|put|left|hid|lent|gave|moved|kept?|stored|placed|locked) )"
        r"|(?:remember|don['’]?t forget) "
        r"(?=(?:i|we) (?:like|prefer|love|hate|want|need|am|are|have|work|live|usually|always|never) )",
        "I will remember: {}.",
        r"forget (?:that |about |(?:everything|all|the thing|what) about "
        r"|(?:what|everything|all) (?:that )?i(?: have|['’]ve)? (?:said|told you|mentioned) about "
        r"|(?=(?:my|our) ))",
        "I have forgotten: {}",
        "I have nothing noted about {}.",
        r"(?:let['’]?s |let us |i want to |can we )?(?:start (?:all )?over(?: again)?|"
        r"start (?:again )?from scratch|begin again)|(?:let['’]?s )?start a new conversation|"
        r"(?:reset|clear) (?:the|this|our) (?:conversation|chat)|forget (?:the|this|"
        r"our) conversation|new topic",
        "All right, we start over.",
    ),
    _Language(
        r"(?:merk dir|merke dir|behalte|denk daran|vergiss nicht|notiere? dir|schreib dir auf"
        r"|dir(?: bitte)? merken)(?: bitte)?(?!,? das .*(?: zu |zu)\w+n\W*$)(?:,? dass? |: ?"
        r"|,? (?=(?:(?:mein|unser)e?|der|die|das) .+ (?:ist|sind|steht|liegt|heißt|hat|kommt|wird)\b)"
        r"|,? (?=(?:ich|wir) (?!muss|müssen|soll)))",
        "Das merke ich mir: {}",
        r"vergiss(?: bitte)?(?: alles über | (?:das|die sache) (?:mit|über) "
        r"|,? (?:alles, )?was ich (?:dir )?über |, dass | dass )",
        "Vergessen: {}",
        "Dazu habe ich mir nichts gemerkt: {}",
        r"(?:lass uns|wir fangen|fangen wir|fang) (?:noch ?mal |nochmals |"
        r"wieder )?(?:ganz )?(?:von vorne?|neu)(?: an(?:fangen)?| beginnen)?|"
        r"von vorne?(?:,? bitte)?|neues thema|(?:setz|setze) (?:das gespräch|"
        r"die unterhaltung) zurück|vergiss (?:das gespräch|diese unterhaltung)",
        "In Ordnung, wir fangen von vorne an.",
    ),
    _Language(
        r"(?:souviens[- ]toi|rappelle[- ]toi|retiens|note|n['’]oublie pas|dis[- ]toi)(?: bien)?"
        r"(?: que | qu['’]| ?: ?)",
        "C'est noté : {}",
        r"oublie (?:que |(?:tout )?ce que je t['’]ai (?:dit|raconté) (?:sur|à propos d[eu]) "
        r"|(?:tout )?ce que j['’]ai dit (?:sur|à propos d[eu]) |tout (?:sur|à propos d[eu]) )",
        "Oublié : {}",
        "Je n'ai rien noté sur {}.",
        r"(?:recommençons|on recommence|recommence)(?: (?:à zéro|depuis le début|tout))?|"
        r"repartons (?:à|de) zéro|on repart (?:à|de) zéro|réinitialise la conversation|"
        r"nouveau sujet",
        "D'accord, on recommence.",
    ),
    _Language(
        r"(?:recuerda|ten en cuenta|no (?:te )?olvides(?: de)?|acu[ée]rdate(?: de)?|ap[úu]ntate|apunta|anota"
        r"|an[óo]tate)(?: que |: ?)",
        "Lo recordaré: {}",
        r"olvida (?:que |lo del? |todo sobre |(?:todo )?lo que te (?:he dicho|dije|conté) (?:sobre|del?) )",
        "Olvidado: {}",
        "No tengo nada anotado sobre {}.",
        r"(?:empecemos|empezemos|empieza|comencemos|volvamos a empezar)(?: de nuevo|"
        r" desde cero| otra vez)|volvamos a empezar|reinicia la conversación|nuevo tema",
        "De acuerdo, empezamos de nuevo.",
    ),
    _Language(
        r"(?:ricorda|ricordati|non dimenticare)(?: che |: ?)"
        r"|(?:segnati|annota(?:ti)?|tieni a mente|tieni presente|memorizza|prendi nota) che ",
        "Me lo ricorderò: {}",
        r"dimentica (?:che |(?:(?:tutto|tutto (?:quello|ciò)|quello|ciò|la cosa)(?: che ti ho detto)?) "
        r"(?:(?:su|d[ei])l?(?:l[aeo]|i)? |(?:su|de)ll['’]|d[ei] ))",
        "Dimenticato: {}",
        "Non ho annotato nulla su {}.",
        r"(?:ricominciamo|ricomincia)(?: da capo| da zero| dall['’]inizio)?|"
        r"ripartiamo da (?:capo|zero)|azzera la conversazione|nuovo argomento",
        "Va bene, ricominciamo.",
    ),
    _Language(
        r"(?:onthoud(?: even| maar| alsjeblieft)?|vergeet niet|denk er ?aan)(?: dat |: ?)",
        "Ik onthoud: {}",
        r"vergeet (?:maar )?(?:dat |(?:alles )?wat ik (?:je |jou )?(?:over (?=.+ (?:heb )?(?:verteld|gezegd))"
        r"|(?:heb )?(?:verteld|gezegd)(?: heb)? over )|alles over |dat van )",
        "Vergeten: {}",
        "Ik heb niets genoteerd over {}.",
        r"(?:laten we |we )?(?:opnieuw|overnieuw) beginnen|"
        r"(?:laten we )?(?:weer )?bij het begin beginnen|begin opnieuw|reset het gesprek|"
        r"nieuw onderwerp",
        "Goed, we beginnen opnieuw.",
    ),
)
_REMEMBER_PATTERNS = [
    (re.compile(rf"\A\s*+{_POLITE_PREFIX}(?:{lang.remember_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_FORGET_PATTERNS = [
    (re.compile(rf"\A\s*+{_POLITE_PREFIX}(?:{lang.forget_pattern})(.+)", re.I), lang) for lang in _LANGUAGES
]
_RESET_PATTERNS = [
    (
        re.compile(rf"{_POLITE_PREFIX}(?:{lang.reset_pattern})(?:,? (?:please|bitte))?\s*[.!]*", re.I),
        lang,
    )
    for lang in _LANGUAGES
]
_ANY_PATTERN = re.compile(
    rf"\A\s*+{_POLITE_PREFIX}"
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
# "Forget about it" and "vergeet dat maar" do not ask to forget a fact.
_EMPTY_WORDS = frozenset(
    {
        "it", "that", "this", "them", "then", "please", "now", "again", "das", "es", "bitte",
        "wieder", "mal", "doch", "einfach", "ça", "cela", "donc", "eso", "esto", "ya", "quello",
        "questo", "pure", "dat", "het", "maar", "weer", "even", "toch", "alsjeblieft", "hoor",
        "dan", "graag", "nu",
    }
)  # fmt: skip
# The end of "was ich dir über den Hund gesagt habe" is no part of what is to be forgotten.
_TOLD_PATTERN = re.compile(
    r"\s(?:(?:gesagt|erzählt) habe?|(?:heb )?(?:verteld|gezegd)(?: heb)?|maar|bitte|please)\Z", re.I
)
_MAX_CHARS = 400
_MAX_RESET_CHARS = 80
# Shorter words, such as "the" and "die", say nothing about what is meant.
_MAX_ARTICLE_CHARS = 3


class MemoryIntents:
    """Calls the tools `remember`, `forget` and `reset_conversation`."""

    async def understand(self, utterance: Utterance) -> Answer | None:
        if language := _match_reset(utterance.text):
            return self._reset(utterance, language)
        if not _ANY_PATTERN.match(utterance.text):
            return None
        if found := _match(_FORGET_PATTERNS, utterance.text):
            text, language = found
            if await _names_waiting(utterance, text):
                return None  # "Forget about the kitchen light" cancels what waits to be done.
            return self._forget(utterance, _TOLD_PATTERN.sub("", text), language)
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


async def _names_waiting(utterance: Utterance, text: str) -> bool:
    """Return whether a text names what waits to be done later, and no noted fact."""
    words = {word for word in split_words(text) if len(word) > _MAX_ARTICLE_CHARS}
    turns = await utterance.dialogue.list_waiting()
    if not words or not any(words.issubset(split_words(turn.summary)) for turn in turns):
        return False
    facts = await utterance.dialogue.list_facts()
    return not any(words.issubset(split_words(fact)) for fact in facts)


def is_memory_request(text: str) -> bool:
    """Return whether a sentence asks to remember or to forget something."""
    return _ANY_PATTERN.match(text) is not None


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
            is_empty = _EMPTY_WORDS.issuperset(fact.casefold().split())
            return None if is_complex or is_empty else (fact, language)
    return None
