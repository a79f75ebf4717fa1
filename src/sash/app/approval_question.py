"""The question for an approval in the user's language, as a person says it: "Unlock the front door lock?"."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.app.approval_phrases import FORMS, LANGUAGES, fill, has_phrase, quote
from sash.home.actions import UNKNOWN_CALLS
from sash.intents.answers.writer import choose_writer
from sash.values.steps import ApprovalRequested

DEFAULT_LANGUAGE = "en"
MAX_NAMES = 6
MAX_DETAIL_CHARS = 60

_OPENED_DOMAINS = ("cover", "valve")
_QUOTED = ("script", "scene", "automation")
_NO_DETAILS = frozenset({"code"})
_ENTITY_ID = re.compile(r"\b[a-z][a-z0-9_]*\.[a-z0-9_]+\b")
# A name that says whose thing it is needs no article: "Anna's lamp", "my desk".
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_WORD_BREAKS = re.compile(r"[._]+")
_OWNED = re.compile(r"(?:[^\W\d_]{1,40}['’]s?|the|my|our|your|his|her|their)\s", re.IGNORECASE)
# Languages whose names get their articles.
_WITH_ARTICLES = ("en", "de", "es", "fr", "it", "nl")
# Services whose phrase has another name than the service without its domain.
_KEYS = {
    "lock.open": "open",
    "alarm_control_panel.alarm_trigger": "alarm",
    "alarm_control_panel.alarm_disarm": "disarm",
    "cover.open_cover_tilt": "tilt",
    "cover.close_cover_tilt": "tilt",
    "cover.stop_cover_tilt": "stop",
    "scene.turn_on": "scene",
    "script.turn_on": "script",
    "automation.trigger": "automation",
    "button.press": "press",
    "input_button.press": "press",
    "vacuum.start": "start",
    "vacuum.stop": "stop",
    "timer.start": "start",
}


@dataclass(frozen=True, slots=True)
class _Thing:
    """The name of a thing and its other names, of which one may be in the language of the question."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """What one call does: the key of its phrase, its things, the argument that matters, and its effects."""

    key: str
    things: tuple[_Thing, ...] = ()
    value: str = ""
    effects: tuple["_Part", ...] = ()
    details: str = ""


def write_question(calls: Sequence[ApprovalRequested], *languages: str | None) -> str:
    """Return one question that asks for the approval of some calls, and ends in a question mark.

    It says what will happen, also inside scripts and scenes, and names no entity id and no service. It is in
    the first of the languages that has a question here, then in that of the calls, or else in English. A
    language is a tag such as "de" or "de-AT". Without a call the question is empty.
    """
    if not calls:
        return ""
    tags = [tag.lower().replace("_", "-").partition("-")[0] for tag in (*languages, calls[0].language) if tag]
    language = next((tag for tag in tags if tag in LANGUAGES), DEFAULT_LANGUAGE)
    parts = _merge(part for call in calls for part in _read_call(call))
    phrases = _join([_write(part, language) for part in parts], language)
    question = FORMS[language].question.format(phrases=phrases)
    return question[:1].upper() + question[1:]


def _read_call(call: ApprovalRequested) -> Iterator[_Part]:
    """Yield what a call does. An undo makes several calls."""
    would = call.would if isinstance(call.would, dict) else {}
    if would.get("service"):
        yield _read_service(would)
    elif isinstance(would.get("calls"), list) and all(isinstance(each, dict) for each in would["calls"]):
        yield _Part("undo")
        yield from map(_read_service, would["calls"])
    else:
        yield _Part("other", value=_to_words(call.name), details=_describe_details(call.would))


def _read_service(would: dict[str, Any]) -> _Part:
    """Return what a service call does, from the preview of the call."""
    service, data = str(would["service"]), would.get("data") or {}
    domain, _, verb = service.partition(".")
    entities = [each for each in would.get("entities") or () if isinstance(each, dict)]
    things = tuple(_read_thing(each) for each in entities if each.get("name"))
    effects = tuple(_read_effects(would))
    if domain == "script" and would.get("name"):
        return _Part("script", (_read_thing(would),), "", effects)
    states = {str(each.get("now")) for each in entities}
    if domain == "homeassistant":
        service = _find_meaning(verb, {str(each.get("entity_id")).partition(".")[0] for each in entities})
    key, value = _choose_phrase(service, data, states)
    if has_phrase(key) and things:
        return _Part(key, things, value, effects)
    words = _to_words(verb.removesuffix(f"_{domain}") or domain)
    return _Part("other_with" if things else "other", things, words, effects, _describe_details(data))


def _read_thing(named: dict[str, Any]) -> _Thing:
    return _Thing(str(named["name"]), tuple(map(str, named.get("aliases") or ())))


def _find_meaning(verb: str, domains: set[str]) -> str:
    """Return what a service for all domains does to things of some domains: it opens a cover, for example."""
    domain = next(iter(domains)) if len(domains) == 1 else "homeassistant"
    if domain in _OPENED_DOMAINS:
        verb = {"turn_on": "open", "turn_off": "close"}.get(verb, verb)
    if domain == "lock":
        verb = {"turn_on": "lock", "turn_off": "unlock"}.get(verb, verb)
    return f"{domain}.{verb}"


def _choose_phrase(service: str, data: dict[str, Any], states: set[str]) -> tuple[str, str]:
    """Return the key of the phrase for a service, and the value that it says."""
    domain, _, verb = service.partition(".")
    key = _KEYS.get(service) or verb.removesuffix(f"_{domain}").removeprefix("alarm_")
    if key == "toggle":
        return _choose_toggle(domain, states), ""
    position = data.get("position", data.get("tilt_position"))
    if key in ("set_cover_position", "set_valve_position") and position is not None:
        ends = {0: "close", 100: "open"}
        return ends.get(position, "open_to"), _write_number(position)
    if key == "set_cover_tilt_position" and position is not None:
        return "tilt_to", _write_number(position)
    if key == "turn_on" and (brightness := data.get("brightness_pct")) is not None:
        return "turn_on_at", _write_number(brightness)
    if key == "set_temperature":
        return key, "–".join(
            _write_number(data[name])
            for name in ("temperature", "target_temp_low", "target_temp_high")
            if name in data
        )
    if key in ("set_hvac_mode", "select_option", "set_preset_mode", "set_value"):
        chosen = next(iter(data.values()), "")
        return ("turn_off", "") if chosen == "off" else ("set_to", _to_words(str(chosen)))
    return key, ""


def _choose_toggle(domain: str, states: set[str]) -> str:
    """Return the phrase of a toggle: what it does to things that all have the same state."""
    state = next(iter(states)) if len(states) == 1 else ""
    if domain in _OPENED_DOMAINS:
        return {"closed": "open", "open": "close"}.get(state, "open_or_close")
    return {"on": "turn_off", "off": "turn_on"}.get(state, "turn_on_or_off")


def _read_effects(would: dict[str, Any]) -> Iterator[_Part]:
    """Yield what a script, a scene or a group does to things that need care, such as locks."""
    for within in would.get("within") or ():
        aliases = within.get("aliases") or {}
        things = tuple(_Thing(str(name), tuple(aliases.get(name, ()))) for name in within.get("names") or ())
        service = within.get("service")
        key = _choose_phrase(str(service), {}, set())[0] if service else "change"
        yield _Part(key if has_phrase(key) else "change", things)
    if UNKNOWN_CALLS in (would.get("calls") or ()):
        yield _Part("unknown")


def _merge(parts: Iterable[_Part]) -> list[_Part]:
    """Return the parts without repetitions. Parts that do the same to several things become one."""
    merged: list[_Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.things
            and replace(last, things=part.things) == part
            and not part.effects
        ):
            merged[-1] = replace(last, things=(*dict.fromkeys((*last.things, *part.things)),))
        else:
            merged.append(part)
    return merged


def _write(part: _Part, language: str) -> str:
    """Return what a call does as the middle of a sentence."""
    forms = FORMS[language]
    names = [_write_name(thing, part.key, language) for thing in part.things]
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 1], forms.others.format(count=len(names) - MAX_NAMES + 1)]
    phrase = fill(part.key, language, names=_join(names, language), value=_localize(part.value, language))
    if part.details:
        phrase += forms.details.format(details=part.details)
    if not part.effects:
        return phrase
    effects = _join([_write(effect, language) for effect in _merge(part.effects)], language)
    return forms.within.format(phrase=phrase, effects=effects)


def _write_name(thing: _Thing, key: str, language: str) -> str:
    if language not in _WITH_ARTICLES or (language == "en" and _OWNED.match(thing.name)):
        return quote(thing.name, language) if key in _QUOTED else thing.name
    if key in _QUOTED:
        return quote(choose_writer(language).title(thing.name, thing.aliases), language)
    return choose_writer(language).name_text(thing.name, thing.aliases).accusative


def _join(items: Sequence[str], language: str) -> str:
    """Return a list as it is said: "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {FORMS[language].conjunction} {items[-1]}"


def _localize(value: str, language: str) -> str:
    return value if language == "en" else _DECIMAL_POINT.sub(",", value)


def _write_number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _to_words(name: str) -> str:
    return _WORD_BREAKS.sub(" ", name).strip()


def _describe_details(data: Any) -> str:
    """Return the arguments of a call in words, without ids and secrets."""
    if isinstance(data, str):
        return _ENTITY_ID.sub("", data).strip()[:MAX_DETAIL_CHARS]
    if not isinstance(data, dict):
        return ""
    return ", ".join(
        f"{_to_words(name)}: {_write_number(value)[:MAX_DETAIL_CHARS]}"
        for name, value in data.items()
        if name not in _NO_DETAILS
        and isinstance(value, str | int | float)
        and not _ENTITY_ID.search(str(value))
    )
