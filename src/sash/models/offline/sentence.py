"""What a sentence asks for, as far as its words tell without a language model: in English and in German."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from sash.memory.words import plain, stem, telling, words

Kind = Literal[
    "said", "help", "time", "away", "batteries", "happened", "why", "wrong", "errors", "order", "question", ""
]


# Nobody asks for a thing at greater length.
LONGEST = 1000


class Wish(NamedTuple):
    """What is wanted, and the words that say of what."""

    kind: Kind
    about: str = ""
    said: str = ""


Form = Callable[[str], Wish | None]


_said_before = re.compile(
    r"\b(?:what did (?:i|we|you) (?:say|tell|ask|talk|decide|mention|agree)(?: you| me| to you)?"
    r"|did (?:i|we|you) (?:say|mention|tell you)(?: anything| something)?"
    r"|when did (?:i|we|you) (?:say|mention|talk)|what do you (?:remember|know)|do you remember"
    r"|remind me(?: of)? what (?:i|we) said"
    r"|was (?:habe ich|haben wir|hast du) (?:dir |mir )?(?=.*\b(?:gesagt|erzählt)\b)"
    r"|was weißt du|erinnerst du dich)"
    r"(?: about| of| on| that| regarding| über| an)?\b(?P<about>.*)",
    re.I | re.S,
)
_help = re.compile(
    r"\W*(?:help|help me|\?+|hilfe|hilf mir|what can (?:you do|i (?:say|ask|do))(?: here)?"
    r"|was (?:kannst du|kann ich (?:sagen|fragen|tun)))\W*",
    re.I,
)
_time = re.compile(
    r"\bwhat (?:time|day|date|weekday)(?: of the week)? is (?:it|today)\b"
    r"|\bwhat(?:['’]s| is) (?:the )?(?:time|date|day|weekday)\b|\bwelcher (?:wochen)?tag\b|\bwelches datum\b"
    r"|\bwie (?:spät|viel uhr)\b|\bwieviel uhr\b",
    re.I,
)
_away = re.compile(
    r"\W*(?:what|which|show|list|(?:is|are)(?: there)? any|any|was|welche|zeig|gibt es|ist irgend)"
    r".*\b(?:unavailable|offline|unreachable|dead|not (?:available|reachable|responding|connected|working)"
    r"|nicht (?:verfügbar|erreichbar|verbunden)|ausgefallen)\b",
    re.I,
)
_battery = re.compile(r"\b(?:batter(?:y|ies)|batterien?|akkus?)\b", re.I)
LOW = re.compile(r"\b(?:low|empty|flat|weak|dead|die|leer|schwach|niedrig|fast leer)\b", re.I)
_happened = re.compile(
    r"\b(?:what(?:['’]s| has| have| was| is)? (?:been )?(?:i missed|happened|happening|going on)"
    r"|did (?:anything|something) happen|any news|what(?:['’]s| is) new|what did i miss|logbook|logbuch"
    r"|was (?:ist|war)\b(?=.*\b(?:passiert|geschehen|los)\b))(?P<about>.*)",
    re.I | re.S,
)
# How something was is not told by how it is; "was" is also what a German question begins with.
_past = re.compile(
    r"^\s*(?:when (?:did|was|were|has|have)|what did|did|were|has|have|wann (?:wurde|war|hat|ist|haben|sind)"
    r"|war|waren|wurden?|hat|haben|was(?= (?:the|my|our|any|anybody|somebody|there)\b))\b(?P<about>.*)",
    re.I | re.S,
)
_why = re.compile(
    r"\b(?:why (?:is|does|did|do|are|was|were|has|have|isn['’]t|won['’]t|doesn['’]t|didn['’]t)"
    r"|(?:warum|wieso|weshalb) \w+)\b(?P<about>.*)",
    re.I | re.S,
)
_wrong = re.compile(
    r"\b(?:diagnos(?:e|iere)|what(?:['’]s| is) (?:wrong|the (?:matter|problem)) with"
    r"|what happened (?:to|with)|problems? with|check|was (?:ist (?:los )?mit|stimmt (?:nicht )?mit)"
    r"|(?:über)?prüfe?)\b(?P<about>.*)",
    re.I | re.S,
)
_errors = re.compile(
    r"\b(?:errors?|problems?|incidents?|faults?|warnings?|anything wrong|what(?:['’]s| is) wrong"
    r"|fehler|probleme?|störung(?:en)?|warnung(?:en)?)\b",
    re.I,
)
_order = re.compile(
    r"\s*(?:(?:please|bitte|can you|could you|kannst du)\W+)*(?:turn|switch|set|dim|open|close|shut|lock"
    r"|unlock|start|stop|pause|activate|deactivate|raise|lower|mute|arm|disarm|schalte?|mache?|stelle?|dimme?|öffne"
    r"|schließe?|sperre?|verriegele?|entriegele?|starte?|stoppe?|aktiviere?)\b(?P<about>.*)",
    re.I | re.S,
)
_question = re.compile(
    r"\?\s*$|^\s*(?:is|are|was|were|which|what|how|where|who|show|list|tell me|status|state of|ist|sind"
    r"|wie|wo|welche\w*|zeige?|liste)\b",
    re.I,
)
_asks_to_see = re.compile(
    r"^\s*(?:please |bitte )?(?:show|list|tell|give|zeige?|liste?)\b(?: me| us| mir| uns)?", re.I
)
_own = re.compile(r"\b(?:my|our|mein|meine|meinen|unser|unsere)\b", re.I)
_WHEN = re.compile(
    r"\b(?:(?:in|over|during|for|within) the (?:last|past) (?:\d+ |few )?(?:minutes?|hours?|days?|night|week)"
    r"|(?:last|this|yesterday) (?:night|morning|afternoon|evening|week|hour)|yesterday|today|tonight"
    r"|overnight|right now|just now|at the moment|at night|while i was (?:away|out|asleep|gone)|recently"
    r"|lately|(?:in der )?(?:letzten?|vergangenen) (?:nacht|woche|stunden?|tage?n?)|im moment|momentan|gerade"
    r"|(?:heute|gestern)(?: (?:nacht|früh|morgen|abend|mittag))?)\b",
    re.I,
)
_id = re.compile(r"(?<![\w.])[a-z][a-z_]*\.[a-z0-9_]+(?![\w.])")
_several = re.compile(r"\b(?:and|or|und|oder)\b|,", re.I)
_token = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

# What is said of a thing, and is none.
_ASKING = frozenset(
    words("""
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
_SHORT = frozenset(
    words("""
    is it on off in at to of by my me we i a an do be so or if no up as am us he go ok es im zu er du ja
    wo ob da um s t d m re ve ll
    """)
)


def read(said: str) -> Wish:
    """Say what a sentence wants; what is not understood has no kind."""
    said = said[:LONGEST]
    return next(filter(None, (form(said) for form in _FORMS)), Wish(""))._replace(said=said)


def is_about_own(said: str) -> bool:
    """Whether a sentence asks for what somebody has told of himself."""
    return _own.search(said) is not None


def entity_id(text: str) -> str | None:
    """Return the id of an entity that is written in a text."""
    found = _id.search(text)
    return found[0] if found else None


def hours(said: str) -> int:
    """Return how far back a sentence speaks of."""
    if re.search(r"\b(?:week|7 days|woche|7 tagen?)\b", said, re.I):
        return 24 * 7
    return 1 if re.search(r"\b(?:last hour|past hour|1 hour|letzten? stunde)\b", said, re.I) else 24


def is_of_the_night(said: str) -> bool:
    """Whether a sentence speaks of last night."""
    return re.search(r"\b(?:last night|overnight|nacht)\b", said, re.I) is not None


def names(text: str) -> list[str]:
    """Return the words of a text that may name a thing, as they are compared."""
    return [key for token in _token.findall(text) if (key := _name(token))]


def phrase(text: str, word: str) -> str:
    """Return the words around one that together name a thing, as they were said."""
    run: list[str] = []
    for token in [*_token.findall(text), ""]:
        if _name(token):
            run.append(token)
            continue
        if word in map(_key, run):
            break
        run = []
    return " ".join(run) or word


def missing(wish: Wish, found: dict[str, Any]) -> list[str]:
    """Return the words that name a thing and that the first of what was found has not.

    At the end of "why did the light flicker" there is what it did.
    """
    asked, unmatched = names(wish.about), set(found.get("unmatched") or ())
    lacking = [word for word in asked if word in unmatched]
    if _several.search(wish.about):
        return [word for word in lacking if not is_known(word, found.get("entities", ()))]
    if wish.kind == "why" and len(lacking) < len(asked):
        while asked and asked[-1] in unmatched:
            lacking.remove(asked.pop())
    return lacking


def meant(about: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is spoken of, of what was found: of one thing, or of each of several."""
    parts = [part for part in _several.split(about) if names(part)]
    if len(parts) < 2:
        return _fits_best(about, entities)
    found = [entity for part in parts for entity in _fits_best(part, _by_fitting(part, entities))]
    return list({entity["entity_id"]: entity for entity in found}.values())


def _by_fitting(about: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what has any of the words in its name, that with the most first."""
    fitting = {entity["entity_id"]: len(_fitting(names(about), entity)) for entity in entities}
    having = [entity for entity in entities if fitting[entity["entity_id"]]]
    return sorted(having, key=lambda entity: -fitting[entity["entity_id"]])


def _fits_best(about: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return that which has as many of the words as the first, or just that name.

    What the first was found by may be known only to who has found it: then it stands for itself.
    """
    asked = names(about)
    best = _fitting(asked, entities[0]) if entities else frozenset()
    if not best:
        return entities[:1] if len(asked) > 1 else entities
    alike = [entity for entity in entities if best <= _fitting(asked, entity)]
    called_so = [entity for entity in alike if is_called(about, entity)]
    return called_so or _without_rules(about, alike)


def is_called(about: str, entity: dict[str, Any]) -> bool:
    """Whether a text has all words of an entity's name."""
    said, called = words(about), words(str(entity.get("name") or ""))
    return bool(called) and all(any(_alike(word, one) for one in said) for word in called)


def is_known(word: str, entities: Iterable[dict[str, Any]]) -> bool:
    """Whether some entity has a word in its name, its area or its id."""
    return any(_fitting([word], entity) for entity in entities)


def _without_rules(about: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out automations and the like, unless there is nothing else or they are asked for."""
    rules = ("automation", "scene", "script")
    if any(_alike(rule, word) for rule in (*rules, "szene", "skript") for word in words(about)):
        return entities
    return [e for e in entities if e["entity_id"].partition(".")[0] not in rules] or entities


def _fitting(asked: Iterable[str], entity: dict[str, Any]) -> frozenset[str]:
    text = f"{entity.get('name', '')} {entity.get('area', '')} {entity['entity_id'].replace('_', ' ')}"
    has = words(text)
    return frozenset(word for word in asked if any(_alike(word, one) for one in has))


def _alike(one: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    if min(len(one), len(other)) < 4:
        return one == other
    return one.startswith(stem(other)) or other.startswith(stem(one))


def _name(token: str) -> str:
    """Return a word as it is compared if it may name a thing; nothing if it may not."""
    key = _key(token)
    if key in _ASKING or key.isdecimal() or (len(key) > 4 and key.endswith("ly")):
        return ""
    is_short_name = 0 < len(key) <= 2 and key not in _SHORT
    return key if is_short_name or telling(key) else ""


def _key(token: str) -> str:
    return re.split(r"['’]", plain(token))[0]


def _about(text: str) -> str:
    return " ".join(_WHEN.sub(" ", text).split()).strip(" ?.!,:")


def _of(kind: Kind, pattern: re.Pattern[str]) -> Form:
    def form(said: str) -> Wish | None:
        found = pattern.search(said)
        return Wish(kind, _about(found.groupdict().get("about") or "")) if found else None

    return form


def _is_said(said: str) -> Wish | None:
    found = _said_before.search(said)
    return Wish("said", found["about"].strip(" ?.!,:")) if found else None


def _is_help(said: str) -> Wish | None:
    return Wish("help") if _help.fullmatch(said) else None


def _is_time(said: str) -> Wish | None:
    return Wish("time") if _time.search(said) and not names(_about(_time.sub("", said))) else None


def _is_away(said: str) -> Wish | None:
    return Wish("away", " ".join(names(said))) if _away.match(said) and not _why.search(said) else None


def _is_batteries(said: str) -> Wish | None:
    others = [word for word in names(said) if not _battery.fullmatch(word) and not LOW.fullmatch(word)]
    asked = _battery.search(said) and not others and not _order.match(said)
    return Wish("batteries", "battery") if asked else None


def _naming(kind: Kind, pattern: re.Pattern[str]) -> Form:
    """A form that needs a thing."""
    search = _of(kind, pattern)

    def form(said: str) -> Wish | None:
        found = search(said)
        return found if found and (names(found.about) or entity_id(found.about)) else None

    return form


def _is_order(said: str) -> Wish | None:
    found = _order.match(said)
    return Wish("order", found["about"].strip(" ?.!,:")) if found and names(found["about"]) else None


def _is_question(said: str) -> Wish | None:
    about = _about(_asks_to_see.sub("", said))
    return Wish("question", about) if _question.search(said) and (names(about) or entity_id(about)) else None


_FORMS = (
    _is_said,
    _is_help,
    _is_time,
    _is_away,
    _is_batteries,
    _naming("why", _why),
    _naming("wrong", _wrong),
    _of("happened", _happened),
    _of("errors", _errors),
    _naming("happened", _past),
    _is_order,
    _is_question,
)
