"""Parsing of a sentence without a language model, in English and in German."""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from sash.memory.words import extract_keywords, normalize, split_words

Kind = Literal[
    "recall",
    "help",
    "permission",
    "time",
    "unavailable",
    "batteries",
    "logbook",
    "why",
    "diagnosis",
    "errors",
    "order",
    "question",
    "",
]

# Longer texts are not requests about one thing; the limit also bounds the time of the patterns.
MAX_LENGTH = 1000
PUNCTUATION = " ?.!,:"


class Sentence(NamedTuple):
    """A parsed sentence: the kind of request, the words that say what it is about, and the whole text."""

    kind: Kind
    subject: str = ""
    text: str = ""


Rule = Callable[[str], Sentence | None]

_ASKS_ABOUT_EARLIER = re.compile(
    r"\b(?:what did (?:i|we|you) (?:say|tell|ask|talk|decide|mention|agree)(?: you| me| to you)?"
    r"|did (?:i|we|you) (?:say|mention|tell you)(?: anything| something)?"
    r"|when did (?:i|we|you) (?:say|mention|talk)|what do you (?:remember|know)|do you remember"
    r"|remind me(?: of)? what (?:i|we) said"
    r"|was (?:habe ich|haben wir|hast du) (?:dir |mir )?(?=.*\b(?:gesagt|erzählt)\b)"
    r"|was weißt du|erinnerst du dich)"
    r"(?: about| of| on| that| regarding| über| an)?\b(?P<about>.*)",
    re.I | re.S,
)
_ASKS_FOR_HELP = re.compile(
    r"\A\W*+(?:help|help me|\?+|hilfe|hilf mir|what can (?:you do|i (?:say|ask|do))(?: here)?"
    r"|was (?:kannst du|kann ich (?:sagen|fragen|tun)))\W*",
    re.I,
)
_ASKS_FOR_PERMISSION = re.compile(
    r"\bhow (?:do|can) (?:i|we) (?:allow|let) you (?:to )?(?:control|switch|use)\b|\bwie erlaube ich dir\b",
    re.I,
)
_ASKS_FOR_TIME = re.compile(
    r"\bwhat (?:time|day|date|weekday)(?: of the week)? is (?:it|today)\b"
    r"|\bwhat(?:['’]s| is) (?:the )?(?:time|date|day|weekday)\b|\bwelcher (?:wochen)?tag\b|\bwelches datum\b"
    r"|\bwie (?:spät|viel uhr)\b|\bwieviel uhr\b",
    re.I,
)
_ASKS_FOR_UNAVAILABLE = re.compile(
    r"\A\W*+(?:what|which|show|list|(?:is|are)(?: there)? any|any|was|welche|zeig|gibt es|ist irgend)"
    r".*\b(?:unavailable|offline|unreachable|dead|not (?:available|reachable|responding|connected|working)"
    r"|nicht (?:verfügbar|erreichbar|verbunden)|ausgefallen)\b",
    re.I,
)
_BATTERY = re.compile(r"\b(?:batter(?:y|ies)|batterien?|akkus?)\b", re.I)
LOW_BATTERY = re.compile(r"\b(?:low|empty|flat|weak|dead|die|leer|schwach|niedrig|fast leer)\b", re.I)
_ASKS_FOR_EVENTS = re.compile(
    r"\b(?:what(?:['’]s| has| have| was| is)? (?:been )?(?:i missed|happened|happening|going on)"
    r"|did (?:anything|something) happen|any news|what(?:['’]s| is) new|what did i miss|logbook|logbuch"
    r"|was (?:ist|war)\b(?=.{0,200}\b(?:passiert|geschehen|los)\b))(?P<about>.*)",
    re.I | re.S,
)
# The current state does not answer these questions. "was" alone may also start a German question.
_LAST_NIGHT = re.compile(r"\b(?:last night|overnight|nacht)\b", re.I)
_LAST_HOUR = re.compile(r"\b(?:last hour|past hour|1 hour|letzten? stunde)\b", re.I)
_WEEK = re.compile(r"\b(?:week|7 days|woche|7 tagen?)\b", re.I)
_ASKS_ABOUT_PAST = re.compile(
    r"^\s*(?:when (?:did|was|were|has|have)|what did|did|were|has|have|wann (?:wurde|war|hat|ist|haben|sind)"
    r"|war|waren|wurden?|hat|haben|was(?= (?:the|my|our|any|anybody|somebody|there)\b))\b(?P<about>.*)",
    re.I | re.S,
)
_ASKS_WHY = re.compile(
    r"\b(?:why (?:is|does|did|do|are|was|were|has|have|isn['’]t|won['’]t|doesn['’]t|didn['’]t)"
    r"|(?:warum|wieso|weshalb) \w+)\b(?P<about>.*)",
    re.I | re.S,
)
_ASKS_FOR_DIAGNOSIS = re.compile(
    r"\b(?:diagnos(?:e|iere)|what(?:['’]s| is) (?:wrong|the (?:matter|problem)) with"
    r"|what happened (?:to|with)|problems? with|check|was (?:ist (?:los )?mit|stimmt (?:nicht )?mit)"
    r"|(?:über)?prüfe?)\b(?P<about>.*)",
    re.I | re.S,
)
_ASKS_FOR_ERRORS = re.compile(
    r"\b(?:errors?|problems?|incidents?|faults?|warnings?|anything wrong|what(?:['’]s| is) wrong"
    r"|fehler|probleme?|störung(?:en)?|warnung(?:en)?)\b",
    re.I,
)
_ORDER = re.compile(
    r"\A\s*+(?:(?:please|bitte|can you|could you|kannst du)\W+)*(?:turn|switch|set|dim|open|close|shut|lock"
    r"|unlock|start|stop|pause|activate|deactivate|raise|lower|mute|arm|disarm|schalte?|mache?|stelle?|dimme?|öffne"
    r"|schließe?|sperre?|verriegele?|entriegele?|starte?|stoppe?|aktiviere?)\b(?P<about>.*)",
    re.I | re.S,
)
_QUESTION = re.compile(
    r"\?\s*$|^\s*(?:is|are|was|were|which|what|how|where|who|show|list|tell me|status|state of|ist|sind"
    r"|wie|wo|welche\w*|zeige?|liste)\b",
    re.I,
)
_SHOW_ME = re.compile(
    r"^\s*(?:please |bitte )?(?:show|list|tell|give|zeige?|liste?)\b(?: me| us| mir| uns)?", re.I
)
_POSSESSIVE = re.compile(r"\b(?:my|our|mein|meine|meinen|unser|unsere)\b", re.I)
_ASKS_ABOUT_TASTE = re.compile(
    r"\A(?:what|which|how|when|where|who|was|welche[rsn]?|wie|wann|wo|wen)\b(?P<about>.*?)\b"
    r"(?:(?:do|did|would) (?:i|we) (?:usually |always )?(?:like|love|prefer|want|need|hate)"
    r"|(?:mag|mögen|bevorzuge|bevorzugen|hätte|hätten) (?:ich|wir))\b(?P<more>.*)",
    re.I | re.S,
)
# A fact names the value ("21 degrees"), and a question names the quantity ("temperature").
_UNITS_OF = {
    "temperature": "degrees celsius fahrenheit",
    "warm": "temperature degrees",
    "cold": "temperature degrees",
    "bright": "brightness percent",
    "brightness": "bright percent",
    "loud": "volume percent",
    "temperatur": "grad",
    "kalt": "temperatur grad",
    "hell": "helligkeit prozent",
    "laut": "lautstärke prozent",
}
_TIME_SPAN = re.compile(
    r"\b(?:(?:in|over|during|for|within) the (?:last|past) (?:\d+ |few )?(?:minutes?|hours?|days?|night|week)"
    r"|(?:last|this|yesterday) (?:night|morning|afternoon|evening|week|hour)|yesterday|today|tonight"
    r"|overnight|right now|just now|at the moment|at night|while i was (?:away|out|asleep|gone)|recently"
    r"|lately|(?:in der )?(?:letzten?|vergangenen) (?:nacht|woche|stunden?|tage?n?)|im moment|momentan|gerade"
    r"|(?:heute|gestern)(?: (?:nacht|früh|morgen|abend|mittag))?)\b",
    re.I,
)
_ENTITY_ID = re.compile(r"(?<![\w.])[a-z][a-z_]*\.[a-z0-9_]+(?![\w.])")
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

# Words that say something about a thing but never name one.
_NOT_A_NAME = frozenset(
    split_words("""
    open opened opening closed close closing shut locked lock unlocked running run working work works
    playing play paused charging charged home away cleaning docked armed disarmed turned turn switched
    switch left bright dark warm cold hot cool wet dry high low full empty long many often far current
    currently present state states status value level levels reading okay fine alright good bad broken
    wrong dead unavailable offline online available happened happening going doing everything anybody
    anyone somebody someone people right moment degrees percent come came went gone last lately first
    again always never ever already since report responding reachable done finished ready seconds minute
    minutes hour hours device devices entity entities house offen geöffnet geschlossen abgeschlossen
    verschlossen verriegelt entriegelt eingeschaltet ausgeschaltet läuft spielt hell dunkel kalt heiß
    trocken hoch leer voll lange viele kaputt verfügbar erreichbar passiert fertig geschehen los alles
    jemand zustand stand grad prozent sekunden minute minuten stunde stunden geräte gerät zuhause hause
    brennt leuchtet steht macht tut gesaugt schalte mach mache stelle zeig zeige
    """)
)
_SHORT_WORDS = frozenset(
    split_words("""
    is it on off in at to of by my me we i a an do be so or if no up as am us he go ok es im zu er du ja
    wo ob da um s t d m re ve ll
    """)
)


def parse_sentence(text: str) -> Sentence:
    """Parse a text. The kind of the sentence is empty if no rule applies."""
    text = text[:MAX_LENGTH]
    return next(filter(None, (rule(text) for rule in _RULES)), Sentence(""))._replace(text=text)


def is_about_speaker(text: str) -> bool:
    """Whether a sentence asks about something of the speaker ("my", "our")."""
    return _POSSESSIVE.search(text) is not None


def is_about_last_night(text: str) -> bool:
    return _LAST_NIGHT.search(text) is not None


def find_entity_id(text: str) -> str | None:
    """Return the first entity id (`light.kitchen`) in a text, or None."""
    found = _ENTITY_ID.search(text)
    return found[0] if found else None


def read_hours(text: str) -> int:
    """Return how many hours back a sentence asks about; 24 if it does not say."""
    if _WEEK.search(text):
        return 24 * 7
    return 1 if _LAST_HOUR.search(text) else 24


def extract_names(text: str) -> list[str]:
    """Return the words of a text that may name a thing, once each, in lower case and without accents."""
    return list(dict.fromkeys(name for token in _TOKEN.findall(text) if (name := _to_name(token))))


def find_phrase(text: str, name: str) -> str:
    """Return the words around a name that may name the same thing, as the user wrote them."""
    run: list[str] = []
    for token in [*_TOKEN.findall(text), ""]:
        if _to_name(token):
            run.append(token)
            continue
        if name in map(_normalize_token, run):
            break
        run = []
    return " ".join(run) or name


def _to_name(token: str) -> str:
    """Return a word in lower case and without accents if it may name a thing, else an empty string."""
    word = _normalize_token(token)
    if word in _NOT_A_NAME or word.isdecimal() or (len(word) > 4 and word.endswith("ly")):
        return ""
    is_short_name = 0 < len(word) <= 2 and word not in _SHORT_WORDS
    return word if is_short_name or extract_keywords(word) else ""


def _normalize_token(token: str) -> str:
    return normalize(token).replace("’", "'").partition("'")[0]


def _trim_subject(text: str) -> str:
    """Return the subject of a sentence without time spans and punctuation."""
    return " ".join(_TIME_SPAN.sub(" ", text).split()).strip(PUNCTUATION)


def _match(kind: Kind, pattern: re.Pattern[str]) -> Rule:
    """Return a rule for sentences of this kind: the pattern occurs anywhere in the text."""

    def apply(text: str) -> Sentence | None:
        found = pattern.search(text)
        return Sentence(kind, _trim_subject(found.groupdict().get("about") or "")) if found else None

    return apply


def _match_with_subject(kind: Kind, pattern: re.Pattern[str]) -> Rule:
    """Return a rule like `_match` that applies only if the subject of the sentence may name a thing."""
    match = _match(kind, pattern)

    def apply(text: str) -> Sentence | None:
        found = match(text)
        return found if found and _names_something(found.subject) else None

    return apply


def _names_something(subject: str) -> bool:
    return bool(extract_names(subject) or find_entity_id(subject))


def _parse_recall(text: str) -> Sentence | None:
    found = _ASKS_ABOUT_EARLIER.search(text)
    return Sentence("recall", found["about"].strip(PUNCTUATION)) if found else None


def _parse_taste(text: str) -> Sentence | None:
    """Parse a question about what the speaker likes. Only a noted fact can answer it."""
    found = _ASKS_ABOUT_TASTE.match(text.strip())
    if not found:
        return None
    words = split_words(f"{found['about']} {found['more']}")
    return Sentence("recall", " ".join([*words, *(_UNITS_OF[w] for w in words if w in _UNITS_OF)]))


def _parse_help(text: str) -> Sentence | None:
    return Sentence("help") if _ASKS_FOR_HELP.fullmatch(text) else None


def _parse_time(text: str) -> Sentence | None:
    if not _ASKS_FOR_TIME.search(text) or extract_names(_trim_subject(_ASKS_FOR_TIME.sub("", text))):
        return None
    return Sentence("time")


def _parse_unavailable(text: str) -> Sentence | None:
    if not _ASKS_FOR_UNAVAILABLE.match(text) or _ASKS_WHY.search(text):
        return None
    return Sentence("unavailable", " ".join(extract_names(text)))


def _parse_batteries(text: str) -> Sentence | None:
    if not _BATTERY.search(text) or _ORDER.match(text):
        return None
    names = extract_names(text)
    is_general = all(_BATTERY.fullmatch(name) or LOW_BATTERY.fullmatch(name) for name in names)
    return Sentence("batteries", "battery") if is_general else None


def _parse_order(text: str) -> Sentence | None:
    found = _ORDER.match(text)
    if not found or not extract_names(found["about"]):
        return None
    return Sentence("order", found["about"].strip(PUNCTUATION))


def _parse_question(text: str) -> Sentence | None:
    subject = _trim_subject(_SHOW_ME.sub("", text))
    return Sentence("question", subject) if _QUESTION.search(text) and _names_something(subject) else None


# The first rule that applies wins.
_RULES: tuple[Rule, ...] = (
    _parse_recall,
    _parse_taste,
    _parse_help,
    _match("permission", _ASKS_FOR_PERMISSION),
    _parse_time,
    _parse_unavailable,
    _parse_batteries,
    _match_with_subject("why", _ASKS_WHY),
    _match_with_subject("diagnosis", _ASKS_FOR_DIAGNOSIS),
    _match("logbook", _ASKS_FOR_EVENTS),
    _match("errors", _ASKS_FOR_ERRORS),
    _match_with_subject("logbook", _ASKS_ABOUT_PAST),
    _parse_order,
    _parse_question,
)
