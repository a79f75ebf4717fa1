"""What the model that is none answers, from what the tools have returned and from nothing else."""

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any, NamedTuple

from sash.memory.words import beginnings, plain
from sash.models.offline.sentence import (
    LOW,
    Wish,
    hours,
    is_about_own,
    is_called,
    is_known,
    is_of_the_night,
    meant,
    missing,
    names,
    phrase,
)
from sash.models.offline.speech import (
    ENGLISH,
    GERMAN,
    MAX_LISTED,
    MAX_NAMED,
    UNAVAILABLE,
    Speech,
    listed,
)
from sash.ports.model import extract_text
from sash.ports.prompt import split_time

LOW_PERCENT = 20.0
MAX_SAID = 10
LONGEST_SAID = 300
MAX_INCIDENTS = 10
MAX_ENTRIES = 15
NIGHT_BEGINS, NIGHT_ENDS = 18, 8
# What cannot be told to do anything.
_READ_ONLY = frozenset(
    {"sensor", "binary_sensor", "person", "weather", "zone", "sun", "event", "device_tracker"}
)
_REFUSALS = (ENGLISH.cannot, GERMAN.cannot)

Results = list[tuple[str, Any]]


class Found(NamedTuple):
    """What an answer is made of: the results of this turn, its message, and what was said before it."""

    results: Results
    message: dict[str, Any]
    time: str | None
    before: list[dict[str, Any]]
    tools: frozenset[str]


class _Line(NamedTuple):
    """What somebody has said."""

    at: str
    who: str
    text: str


def answer(wish: Wish, found: Found, say: Speech) -> str:
    """Answer a sentence."""
    results = [result for result in found.results if result[0] != "recall"]
    content = found.message["content"]
    if wish.kind == "said" or is_told(wish, found.results):
        return _tell_said(wish, found, say)
    if results and not isinstance(results[-1][1], dict):
        return say.reason(str(results[-1][1]))
    if results and results[-1][0] in ("call_service", "undo_last_action"):
        return _tell_action(results[-1][1], say)
    if not isinstance(content, str) and any(part["type"] != "text" for part in content):
        return say.no_images
    if wish.kind == "help":
        return say.help
    if wish.kind == "time" and found.time:
        return _tell_time(found.time, say)
    if wish.kind != "order" and _is_recalled(found.results) and not _is_found(wish, results):
        return _tell_said(wish, found, say)
    told = _TELLING[wish.kind](wish, results, say) if results and wish.kind in _TELLING else ""
    if not told and wish.kind == "question" and is_about_own(wish.said):
        told = _tell_own(wish, found, say)
    return told or _refuse(results, say)


def entities_of(result: Any) -> list[dict[str, Any]]:
    """Return the entities of a result."""
    found = result.get("entities") if isinstance(result, dict) else None
    return [e for e in (found if isinstance(found, list) else ()) if isinstance(e, dict) and "entity_id" in e]


def found_in(results: Results) -> list[dict[str, Any]]:
    """Return the entities that were found by their names."""
    return next((entities_of(result) for name, result in results if name == "search_index"), [])


def is_told(wish: Wish, results: Results) -> bool:
    """Whether a fact was recalled that has all the words of a sentence."""
    asked = beginnings(wish.said)
    facts = [fact for result in _recalled(results) for fact in result.get("facts", ())]
    return any(all(stem in plain(fact) for stem in asked) for fact in facts)


def _recalled(results: Results) -> list[dict[str, Any]]:
    return [result for name, result in results if name == "recall" and isinstance(result, dict)]


def _is_recalled(results: Results) -> bool:
    return any(result.get("facts") or result.get("turns") for result in _recalled(results))


def _is_found(wish: Wish, results: Results) -> bool:
    """Whether the tools have found what a sentence speaks of."""
    if not results or results[0][0] != "search_index":
        return bool(results)
    return bool(found_in(results)) and not missing(wish, results[0][1])


def _refuse(results: Results, say: Speech) -> str:
    """Say that there is no such thing, if a thing was looked for, and that this needs a language model."""
    looked = any(name == "search_index" and isinstance(r, dict) and "entities" in r for name, r in results)
    return f"{say.nothing_so_called} {say.cannot}" if looked else say.cannot


def _near(wish: Wish, results: Results, say: Speech) -> str | None:
    """Say that nothing fits the words, and what comes near; None if something fits."""
    result, entities = results[0][1], found_in(results)
    if not entities:
        return ""
    if not (lacking := missing(wish, result)):
        return None
    asked = names(wish.about)
    has = [word for word in asked if word not in lacking and is_known(word, entities)]
    if len(has) < len(lacking):
        return ""
    called = phrase(wish.about, lacking[0])
    if called.count(" ") == 0 and is_known(lacking[0], entities):
        lead = say.nothing_fits.format(" + ".join(f"“{word}”" for word in asked))
    else:
        lead = say.nothing_so.format(called)
    shown = map(_called, _able(wish, results)) if wish.kind == "order" else ()
    lines = listed(list(shown) or _tell_entities(wish, results, say), MAX_NAMED, say)
    return f"{lead} {say.nearest.format('; '.join(lines))}"


def _tell_question(wish: Wish, results: Results, say: Speech) -> str:
    """Tell the states of what was asked for."""
    if results[0][0] == "search_index" and (near := _near(wish, results, say)) is not None:
        return near
    lines = listed(_tell_entities(wish, results, say), MAX_LISTED, say)
    return "\n".join([*lines, *map(str, results[-1][1].get("not_found") or ())])


def _tell_entities(wish: Wish, results: Results, say: Speech) -> list[str]:
    """Tell the states of what is meant, by what was read last of it."""
    read = {e["entity_id"]: e for name, r in results if name == "get_states" for e in entities_of(r)}
    found = meant(wish.about, found_in(results)) or list(read.values())
    return [_tell_entity(read.get(e["entity_id"], e), say) for e in found]


def _tell_away(wish: Wish, results: Results, say: Speech) -> str:
    entities = entities_of(results[-1][1])
    lines = listed([_called(e) for e in meant(wish.about, entities)], MAX_LISTED, say)
    return say.all_away.format("; ".join(lines)) if lines else say.none_away


def _tell_batteries(wish: Wish, results: Results, say: Speech) -> str:
    """Tell which batteries are low, or how all are; of those that say nothing what they said last."""
    last = {
        e["entity_id"]: e for name, result in results if name == "get_history" for e in entities_of(result)
    }
    read = next((entities_of(r) for name, r in results if name == "get_states"), [])
    lines: dict[str, list[str]] = {"low": [], "silent": [], "fine": []}
    for entity in read:
        if _class(entity) == "battery":
            level, told = _tell_battery(entity, last.get(entity["entity_id"], {}), say)
            lines["silent" if level is None else "low" if level <= LOW_PERCENT else "fine"].append(told)
    shown = [say.low.format(_joined(lines["low"], say)) if lines["low"] else say.none_low]
    if not LOW.search(wish.said):
        shown += listed(lines["fine"], MAX_LISTED, say)
    if lines["silent"]:
        shown.append(say.unknown_level.format(_joined(lines["silent"], say)))
    return "\n".join(shown)


def _tell_battery(entity: dict[str, Any], past: dict[str, Any], say: Speech) -> tuple[float | None, str]:
    """Return the level of a battery, or what it was last, in words too."""
    state, last = entity.get("state"), past.get("last")
    if state in ("on", "off"):
        return (0.0 if state == "on" else 100.0), _tell_entity(entity, say)
    if (level := _number(state)) is not None:
        return level, _tell_entity(entity, say)
    if not isinstance(last, int | float):
        return None, _called(entity)
    return last, say.last_level.format(_called(entity), f"{last:g} {entity.get('unit', '%')}")


def _joined(items: list[str], say: Speech) -> str:
    return "; ".join(listed(items, MAX_LISTED, say))


def _tell_happened(wish: Wish, results: Results, say: Speech) -> str:
    """Tell what the logbook has, the newest last."""
    if results[-1][0] != "get_logbook":
        return _near(wish, results, say) or ""  # how it is would not tell how it was
    entries = _entries(results[-1][1])
    if not entries:
        return say.nothing_happened
    if is_of_the_night(wish.said):
        entries = [e for e in entries if not NIGHT_ENDS <= _at(e).hour < NIGHT_BEGINS] or entries
    shown = entries[-MAX_ENTRIES:]
    total = results[-1][1].get("total", len(entries))
    head = say.happened.format(shown=len(shown), total=total, hours=hours(wish.said))
    return "\n".join([head, *(_tell_entry(entry, say) for entry in shown)])


def _tell_diagnoses(wish: Wish, results: Results, say: Speech) -> str:
    """Tell what was asked about first, and of the others only what is wrong with them."""
    diagnoses = [result for name, result in results if name == "diagnose_entity" and isinstance(result, dict)]
    if not diagnoses:
        return _tell_question(wish, results, say)
    lines = [_tell_diagnosis(diagnoses[0], say)]
    lines += [say.also.format(_tell_diagnosis(d, say)) for d in diagnoses[1:] if d.get("status") != "healthy"]
    if results[-1][0] == "get_logbook" and (entries := _entries(results[-1][1])):
        lines.append(say.logged.format("; ".join(_tell_entry(entry, say) for entry in entries[-3:])))
    return "\n".join(lines)


def _tell_errors(wish: Wish, results: Results, say: Speech) -> str:
    result = results[-1][1]
    incidents = [_in_words(item) for item in result.get("incidents") or ()]
    lines = [say.incidents.format(result.get("total_incidents", 0)), *listed(incidents, MAX_INCIDENTS, say)]
    lines += [say.to_do.format(_in_words(item).rstrip(".")) for item in result.get("recommendations") or ()]
    return "\n".join(lines)


def _tell_order(wish: Wish, results: Results, say: Speech) -> str:
    """Ask which thing is meant; nothing is done here."""
    if (near := _near(wish, results, say)) is not None:
        return near and f"{near} {say.not_done}"
    able = [
        e for e in meant(wish.about, found_in(results)) if e["entity_id"].partition(".")[0] not in _READ_ONLY
    ]
    if len(able) > 1:
        return say.which.format(", ".join(listed([_called(e) for e in able], MAX_NAMED, say)))
    if not able or is_called(wish.about, able[0]):
        return say.cannot
    return say.only_one.format(_called(able[0]))


def _able(wish: Wish, results: Results) -> list[dict[str, Any]]:
    """Return of what is meant that which can be told to do something."""
    found = meant(wish.about, found_in(results))
    return [e for e in found if e["entity_id"].partition(".")[0] not in _READ_ONLY]


def _tell_said(wish: Wish, found: Found, say: Speech) -> str:
    """Say what was said of something: noted facts, turns that were recalled, and what is still in sight.

    Who asks for a fact gets the fact, and nobody gets what tools returned then.
    """
    results = _recalled(found.results)
    facts = [say.noted.format(fact) for result in results for fact in result.get("facts", ())]
    if facts and wish.kind != "said":
        return _quoted(facts, say) or say.nothing_said
    turns = (turn for result in results for turn in result.get("turns", ()))
    lines = [line for turn in turns for line in _of_turn(turn, found.tools)]
    asked = beginnings(wish.about or wish.said)
    lines += [line for line in _in_sight(found, say) if any(stem in plain(line.text) for stem in asked)]
    # What was said again is told once, as it was said last.
    once = {(line.who, line.text): line for line in lines}
    said = [f"{line.at}, {say.speakers.get(line.who, line.who)}: {line.text}" for line in once.values()]
    return _quoted([*facts, *said], say) or say.nothing_said


def _tell_own(wish: Wish, found: Found, say: Speech) -> str:
    """Say what somebody has told of himself, if it has all the words that are asked for."""
    asked = beginnings(wish.said)
    return _quoted(
        [
            f"{line.at}, {say.speakers[line.who]}: {line.text}"
            for line in _in_sight(found, say)
            if line.who == "user" and "?" not in line.text and all(stem in plain(line.text) for stem in asked)
        ],
        say,
    )


def _quoted(lines: list[str], say: Speech) -> str:
    shown = [line if len(line) <= LONGEST_SAID else f"{line[:LONGEST_SAID]} …" for line in lines]
    return "\n".join(listed(shown, MAX_SAID, say))


def _in_sight(found: Found, say: Speech) -> Iterator[_Line]:
    for message in found.before:
        time, text = split_time(extract_text(message))
        if not any(refusal in text for refusal in _REFUSALS):
            yield _Line(time or say.lately, message["role"], " ".join(text.split()))


def _of_turn(turn: dict[str, Any], tools: frozenset[str]) -> Iterator[_Line]:
    at = turn["date"][:16].replace("T", " ")
    for line in turn["said"]:
        if line["role"] not in tools and line["role"] != "tool" and not line["text"].startswith(("{", "[")):
            yield _Line(at, line["role"], " ".join(line["text"].split()))


def _tell_action(result: dict[str, Any], say: Speech) -> str:
    """Say what was done, and that it was not, if that is so."""
    if result.get("dry_run"):
        would = result.get("would")
        service = would.get("service", would) if isinstance(would, dict) else would
        return say.dry_run.format(service)
    lines = [f"{e.get('name', e['entity_id'])}: {e.get('after', 'unknown')}" for e in entities_of(result)]
    if result.get("verified") is False:
        lines.insert(0, say.not_seen)
    return "\n".join(lines) or say.unseen


def _tell_time(time: str, say: Speech) -> str:
    return say.now.format(day=say.weekdays[date.fromisoformat(time[:10]).weekday()], time=time)


def _tell_diagnosis(result: dict[str, Any], say: Speech) -> str:
    sentences = {"healthy": say.fine, UNAVAILABLE: say.away, "unknown": say.no_value}
    head = sentences.get(str(result.get("status")), say.not_fine).format(_called(result))
    state = result.get("current_state")
    # What on and off mean to a sensor is not in a diagnosis.
    told = state in (None, UNAVAILABLE, "unknown") or str(result.get("entity_id")).startswith(
        "binary_sensor."
    )
    shown = f": {say.state(state)}" if result.get("status") == "healthy" else f" ({say.state(state)})"
    lines = [f"{head}." if told else f"{head}{shown}."]
    for title, key in ((say.causes, "root_causes"), (say.to_do, "recommendations")):
        items = [_in_words(item) for item in result.get(key) or ()]
        if items:
            lines.append(title.format("; ".join(items)))
    return "\n".join(lines)


def _tell_entity(entity: dict[str, Any], say: Speech) -> str:
    state = entity.get("state", "unknown")
    unit = f" {entity['unit']}" if entity.get("unit") and state not in (UNAVAILABLE, "unknown") else ""
    return f"{_called(entity)}: {say.state(state, _class(entity))}{unit}"


def _called(entity: dict[str, Any]) -> str:
    name = entity.get("name") or entity.get("entity_id", "?")
    return f"{name} ({entity['area']})" if entity.get("area") else str(name)


def _class(entity: dict[str, Any]) -> str:
    return str((entity.get("attributes") or {}).get("device_class") or "")


def _number(state: Any) -> float | None:
    try:
        return float(state)
    except (ValueError, TypeError):
        return None


def _entries(result: Any) -> list[dict[str, Any]]:
    entries = result.get("entries") if isinstance(result, dict) else None
    return [e for e in entries or () if isinstance(e, dict) and e.get("at")]


def _tell_entry(entry: dict[str, Any], say: Speech) -> str:
    cause = f" ({entry['cause']})" if entry.get("cause") else ""
    at = _at(entry)
    day = say.weekdays[at.weekday()][: say.short_day]
    return f"{day} {at:%H:%M} {entry.get('name', '')} {entry.get('message', '')}{cause}".strip()


def _at(entry: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _in_words(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("message") or item.get("description") or json.dumps(item, ensure_ascii=False))
    return str(item)


_TELLING: dict[str, Callable[[Wish, Results, Speech], str]] = {
    "away": _tell_away,
    "batteries": _tell_batteries,
    "happened": _tell_happened,
    "why": _tell_diagnoses,
    "wrong": _tell_diagnoses,
    "errors": _tell_errors,
    "order": _tell_order,
    "question": _tell_question,
}
