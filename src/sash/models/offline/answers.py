"""Answers of the offline model. Every answer comes from the results of the tools."""

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, NamedTuple

from sash.models.offline.entity_matching import (
    contains_name,
    find_missing_names,
    is_in_any_name,
    select_entities,
)
from sash.models.offline.phrases import MAX_LISTED, MAX_NAMED, UNAVAILABLE, Phrases, limit_list
from sash.models.offline.recollections import (
    has_recalled,
    is_answered_by_fact,
    quote_recalled,
    quote_user,
)
from sash.models.offline.sentence import (
    LOW_BATTERY,
    Sentence,
    extract_names,
    find_phrase,
    is_about_last_night,
    is_about_speaker,
    read_hours,
)
from sash.models.offline.tool_output import ToolOutput, get_entities, get_found_entities

LOW_PERCENT = 20.0
MAX_INCIDENTS = 10
MAX_SHOWN_ENTRIES = 15
MAX_ENTRIES_OF_DIAGNOSIS = 3
NIGHT_STARTS_HOUR, NIGHT_ENDS_HOUR = 18, 8
_READ_ONLY_DOMAINS = frozenset(
    {"sensor", "binary_sensor", "person", "weather", "zone", "sun", "event", "device_tracker"}
)


class AnswerInput(NamedTuple):
    """The input for an answer.

    `outputs` are the tool results of this turn. `content` and `time` are those of the user's message.
    `earlier` are the messages before it. `tools` are the names of the available tools.
    """

    sentence: Sentence
    outputs: list[ToolOutput]
    content: Any
    time: str | None
    earlier: list[dict[str, Any]]
    tools: frozenset[str]


def compose_answer(given: AnswerInput, phrases: Phrases) -> str:
    """Return the final answer to the user's sentence, from the results of all tool calls of the turn."""
    sentence, content = given.sentence, given.content
    outputs = [output for output in given.outputs if output.tool != "recall"]
    if sentence.kind == "recall" or is_answered_by_fact(sentence, given.outputs):
        return _quote_recalled(given, phrases)
    if outputs and not isinstance(outputs[-1].value, dict):
        return phrases.translate_reason(str(outputs[-1].value))
    if outputs and outputs[-1].tool in ("call_service", "undo_last_action"):
        return _describe_action(outputs[-1].value, phrases)
    if not isinstance(content, str) and any(part["type"] != "text" for part in content):
        return phrases.cannot_see_media
    if sentence.kind == "help":
        return phrases.help
    if sentence.kind == "permission":
        return phrases.how_to_allow
    if sentence.kind == "time" and given.time:
        return _describe_time(given.time, phrases)
    if sentence.kind != "order" and has_recalled(given.outputs) and not _has_found(sentence, outputs):
        return _quote_recalled(given, phrases)
    compose = _COMPOSERS.get(sentence.kind)
    text = compose(sentence, outputs, phrases) if outputs and compose else ""
    if not text and sentence.kind == "question" and is_about_speaker(sentence.text):
        text = quote_user(sentence, given.earlier, phrases)
    return text or _refuse(sentence, outputs, phrases)


def _quote_recalled(given: AnswerInput, phrases: Phrases) -> str:
    return quote_recalled(given.sentence, given.outputs, given.earlier, given.tools, phrases)


def _has_found(sentence: Sentence, outputs: list[ToolOutput]) -> bool:
    """Whether the tools found the things that the sentence names."""
    if not outputs or outputs[0].tool != "search_index":
        return bool(outputs)
    return bool(get_found_entities(outputs)) and not find_missing_names(sentence, outputs[0].value)


def _refuse(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    """Return a refusal: this needs a language model and, after a search, nothing was found."""
    has_searched = any(o.tool == "search_index" and "entities" in o.value for o in outputs if _is_object(o))
    if phrases.is_brief:
        return phrases.nothing_found if has_searched and sentence.kind == "order" else phrases.cannot_answer
    return f"{phrases.nothing_found} {phrases.cannot_answer}" if has_searched else phrases.cannot_answer


def _is_object(output: ToolOutput) -> bool:
    return isinstance(output.value, dict)


def _describe_closest(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str | None:
    """Return a sentence that no entity matches all names, with the closest entities.

    Returns:
        None if an entity matches. An empty string if nothing is close.
    """
    entities = get_found_entities(outputs)
    if not entities:
        return ""
    if not (missing := find_missing_names(sentence, outputs[0].value)):
        return None
    names = extract_names(sentence.subject)
    matched = [name for name in names if name not in missing and is_in_any_name(name, entities)]
    if len(matched) < len(missing):
        return ""
    phrase = find_phrase(sentence.subject, missing[0])
    if " " not in phrase and is_in_any_name(missing[0], entities):
        lead = phrases.no_match.format(" + ".join(f"“{name}”" for name in names))
    else:
        lead = phrases.unknown_name.format(phrase)
    shown = map(_name_entity, _select_controllable(sentence, outputs)) if sentence.kind == "order" else ()
    lines = limit_list(list(shown) or _describe_entities(sentence, outputs, phrases), MAX_NAMED, phrases)
    return f"{lead} {phrases.closest_matches.format('; '.join(lines))}"


def _compose_states(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    if outputs[0].tool == "search_index":
        closest = _describe_closest(sentence, outputs, phrases)
        if closest is not None:
            return closest
    lines = limit_list(_describe_entities(sentence, outputs, phrases), MAX_LISTED, phrases)
    return "\n".join([*lines, *map(str, outputs[-1].value.get("not_found") or ())])


def _describe_entities(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> list[str]:
    """Describe the entities that the sentence means, with the states that were read last."""
    read = {e["entity_id"]: e for o in outputs if o.tool == "get_states" for e in get_entities(o.value)}
    entities = select_entities(sentence.subject, get_found_entities(outputs)) or list(read.values())
    return [_describe_entity(read.get(e["entity_id"], e), phrases) for e in entities]


def _compose_unavailable(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    entities = select_entities(sentence.subject, get_entities(outputs[-1].value))
    if not entities:
        return phrases.none_unavailable
    return phrases.list_unavailable.format(_join([_name_entity(e) for e in entities], phrases))


def _compose_batteries(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    """Return a list of the low batteries, or of all.

    A battery without a current level is listed with its last level.
    """
    last = {e["entity_id"]: e for o in outputs if o.tool == "get_history" for e in get_entities(o.value)}
    read = next((get_entities(o.value) for o in outputs if o.tool == "get_states"), [])
    low: list[str] = []
    unknown: list[str] = []
    normal: list[str] = []
    for entity in read:
        if _get_device_class(entity) != "battery":
            continue
        level, text = _describe_battery(entity, last.get(entity["entity_id"], {}), phrases)
        (unknown if level is None else low if level <= LOW_PERCENT else normal).append(text)
    lines = [phrases.low_batteries.format(_join(low, phrases)) if low else phrases.no_low_battery]
    if not LOW_BATTERY.search(sentence.text):
        lines += limit_list(normal, MAX_LISTED, phrases)
    if unknown:
        lines.append(phrases.unknown_levels.format(_join(unknown, phrases)))
    return "\n".join(lines)


def _describe_battery(
    entity: dict[str, Any], history: dict[str, Any], phrases: Phrases
) -> tuple[float | None, str]:
    """Return the level of a battery in percent, or its last known one, and a description. None is unknown."""
    state, last = entity.get("state"), history.get("last")
    if state in ("on", "off"):  # a binary sensor: on means low
        return (0.0 if state == "on" else 100.0), _describe_entity(entity, phrases)
    if (level := _parse_number(state)) is not None:
        return level, _describe_entity(entity, phrases)
    if not isinstance(last, int | float):
        return None, _name_entity(entity)
    level_text = f"{last:g} {entity.get('unit', '%')}"
    return last, phrases.last_known_level.format(_name_entity(entity), level_text)


def _join(items: list[str], phrases: Phrases) -> str:
    return "; ".join(limit_list(items, MAX_LISTED, phrases))


def _compose_logbook(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    """Return the logbook entries as lines, oldest first."""
    if outputs[-1].tool != "get_logbook":
        # The current state would not answer a question about the past.
        return _describe_closest(sentence, outputs, phrases) or ""
    entries = _get_entries(outputs[-1].value)
    if not entries:
        return phrases.no_entries
    if is_about_last_night(sentence.text):
        entries = [e for e in entries if _is_at_night(e)] or entries
    shown = entries[-MAX_SHOWN_ENTRIES:]
    total = outputs[-1].value.get("total", len(entries))
    head = phrases.entries.format(shown=len(shown), total=total, hours=read_hours(sentence.text))
    return "\n".join([head, *(_describe_entry(entry, phrases) for entry in shown)])


def _is_at_night(entry: dict[str, Any]) -> bool:
    return not NIGHT_ENDS_HOUR <= _get_time(entry).hour < NIGHT_STARTS_HOUR


def _compose_diagnosis(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    """Return a text about the first diagnosis, and about the others only if they report a problem."""
    diagnoses = [o.value for o in outputs if o.tool == "diagnose_entity" and _is_object(o)]
    if not diagnoses:
        return _compose_states(sentence, outputs, phrases)
    first, *others = diagnoses
    lines = [_describe_diagnosis(first, phrases)]
    lines += [
        phrases.also.format(_describe_diagnosis(other, phrases))
        for other in others
        if other.get("status") != "healthy"
    ]
    entries = _get_entries(outputs[-1].value) if outputs[-1].tool == "get_logbook" else []
    if entries:
        shown = [_describe_entry(entry, phrases) for entry in entries[-MAX_ENTRIES_OF_DIAGNOSIS:]]
        lines.append(phrases.in_logbook.format("; ".join(shown)))
    return "\n".join(lines)


def _compose_errors(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    value = outputs[-1].value
    incidents = [_to_text(item) for item in value.get("incidents") or ()]
    advice = [_to_text(item).rstrip(".") for item in value.get("recommendations") or ()]
    return "\n".join(
        [
            phrases.incidents.format(value.get("total_incidents", 0)),
            *limit_list(incidents, MAX_INCIDENTS, phrases),
            *(phrases.recommendations.format(item) for item in advice),
        ]
    )


def _compose_order(sentence: Sentence, outputs: list[ToolOutput], phrases: Phrases) -> str:
    """Return a question: which device is meant? The offline model never acts itself."""
    closest = _describe_closest(sentence, outputs, phrases)
    if closest is not None:
        return closest and f"{closest} {phrases.nothing_done}"
    entities = _select_controllable(sentence, outputs)
    if len(entities) > 1:
        names = limit_list([_name_entity(e) for e in entities], MAX_NAMED, phrases)
        return phrases.ask_which.format(", ".join(names))
    if not entities or contains_name(sentence.subject, entities[0]):
        return phrases.cannot_answer
    return phrases.ask_if_meant.format(_name_entity(entities[0]))


def _select_controllable(sentence: Sentence, outputs: list[ToolOutput]) -> list[dict[str, Any]]:
    """Return the entities that the sentence means and that a service can control."""
    entities = select_entities(sentence.subject, get_found_entities(outputs))
    return [e for e in entities if e["entity_id"].partition(".")[0] not in _READ_ONLY_DOMAINS]


def _describe_action(value: dict[str, Any], phrases: Phrases) -> str:
    """Return a text about the result of an action: the new states, and whether the effect was seen."""
    if value.get("dry_run"):
        would = value.get("would")
        service = would.get("service", would) if isinstance(would, dict) else would
        return phrases.dry_run.format(service)
    lines = [f"{e.get('name', e['entity_id'])}: {e.get('after', 'unknown')}" for e in get_entities(value)]
    if value.get("verified") is False:
        lines.insert(0, phrases.effect_not_seen)
    return "\n".join(lines) or phrases.effect_not_checked


def _describe_time(time: str, phrases: Phrases) -> str:
    weekday = phrases.weekdays[date.fromisoformat(time[:10]).weekday()]
    return phrases.current_time.format(day=weekday, time=time)


def _describe_diagnosis(value: dict[str, Any], phrases: Phrases) -> str:
    heads = {
        "healthy": phrases.is_healthy,
        UNAVAILABLE: phrases.is_unavailable,
        "unknown": phrases.has_no_value,
    }
    status, state = value.get("status"), value.get("current_state")
    head = heads.get(str(status), phrases.needs_attention).format(_name_entity(value))
    # A diagnosis lacks the device class, without which on and off of a binary sensor mean nothing.
    is_binary = str(value.get("entity_id")).startswith("binary_sensor.")
    if state not in (None, UNAVAILABLE, "unknown") and not is_binary:
        name = phrases.name_state(state)
        head += f": {name}" if status == "healthy" else f" ({name})"
    lines = [f"{head}."]
    for phrase, key in (
        (phrases.likely_causes, "root_causes"),
        (phrases.recommendations, "recommendations"),
    ):
        if items := [_to_text(item) for item in value.get(key) or ()]:
            lines.append(phrase.format("; ".join(items)))
    return "\n".join(lines)


def _describe_entity(entity: dict[str, Any], phrases: Phrases) -> str:
    state = entity.get("state", "unknown")
    unit = f" {entity['unit']}" if entity.get("unit") and state not in (UNAVAILABLE, "unknown") else ""
    return f"{_name_entity(entity)}: {phrases.name_state(state, _get_device_class(entity))}{unit}"


def _name_entity(entity: dict[str, Any]) -> str:
    name = entity.get("name") or entity.get("entity_id", "?")
    return f"{name} ({entity['area']})" if entity.get("area") else str(name)


def _get_device_class(entity: dict[str, Any]) -> str:
    return str((entity.get("attributes") or {}).get("device_class") or "")


def _parse_number(state: Any) -> float | None:
    try:
        return float(state)
    except (ValueError, TypeError):
        return None


def _get_entries(value: Any) -> list[dict[str, Any]]:
    entries = value.get("entries") if isinstance(value, dict) else None
    return [e for e in entries or () if isinstance(e, dict) and e.get("at")]


def _describe_entry(entry: dict[str, Any], phrases: Phrases) -> str:
    cause = f" ({entry['cause']})" if entry.get("cause") else ""
    at = _get_time(entry)
    day = phrases.weekdays[at.weekday()][: phrases.weekday_length]
    return f"{day} {at:%H:%M} {entry.get('name', '')} {entry.get('message', '')}{cause}".strip()


def _get_time(entry: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _to_text(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("message") or item.get("description") or json.dumps(item, ensure_ascii=False))
    return str(item)


_COMPOSERS: dict[str, Callable[[Sentence, list[ToolOutput], Phrases], str]] = {
    "unavailable": _compose_unavailable,
    "batteries": _compose_batteries,
    "logbook": _compose_logbook,
    "why": _compose_diagnosis,
    "diagnosis": _compose_diagnosis,
    "errors": _compose_errors,
    "order": _compose_order,
    "question": _compose_states,
}
