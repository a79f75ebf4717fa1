"""Reports what a command has done, from the results of its calls."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sash.home.index import HomeIndex
from sash.intents.acting.already_so import MAX_NAMED, name_entities, say_already
from sash.intents.acting.planner import CALL_TOOL
from sash.intents.answers.names import Name
from sash.intents.answers.writer import AnswerWriter
from sash.ports.home import UNAVAILABLE, Entity
from sash.ports.intents import LocalCallResult
from sash.ports.tools import RATE_LIMIT

_NOT_DONE = "not done: "
_FAILED = "failed: "
# The sentences about services that end in these names, if no data says more.
_BY_VERB = {
    "turn_on": "turned_on",
    "turn_off": "turned_off",
    "toggle": "toggled",
    "open_cover": "opened",
    "open_valve": "opened",
    "close_cover": "closed",
    "close_valve": "closed",
    "stop_cover": "stopped",
    "stop_valve": "stopped",
    "lock": "locked",
    "unlock": "unlocked",
    "media_play": "playing",
    "media_pause": "paused",
    "media_stop": "stopped",
    "media_next_track": "next",
    "media_previous_track": "previous",
    "start": "started",
    "start_mowing": "started",
    "pause": "paused",
    "stop": "stopped",
    "return_to_base": "docking",
    "dock": "docking",
    "press": "pressed",
    "trigger": "started",
    "alarm_disarm": "disarmed",
    "alarm_arm_home": "armed_home",
    "alarm_arm_away": "armed_away",
    "alarm_arm_night": "armed_night",
    "volume_up": "louder",
    "volume_down": "quieter",
    "cancel": "stopped",
    "locate": "locating",
}
# The values that a service sets, with their units.
_VALUES = {
    "brightness_pct": "%",
    "percentage": "%",
    "position": "%",
    "humidity": "%",
    "temperature": "°C",
    "value": "",
}
# The fields of services that choose an option by its name.
_OPTION_FIELDS = ("source", "fan_speed", "preset_mode", "mode", "option")
# Entity ids and names of services are no words for a person.
_OUR_WORDS = re.compile(r"\b[a-z_]{1,60}\.[a-z_]|\bservice\b")
_MIN_COLD_KELVIN = 4000
# Things of these domains can be set while they are off.
_OFF_DOMAINS = frozenset({"climate", "fan"})
_STARTED_DOMAINS = frozenset({"scene", "script"})
# After these calls a thing has one state, whatever state it had before.
_SETTLING = frozenset(
    {
        *("turn_on", "turn_off", "open_cover", "close_cover", "open_valve", "close_valve", "lock", "unlock"),
        *("media_play", "media_pause", "start_mowing", "return_to_base", "dock"),
    }
)


def report_results(results: Sequence[LocalCallResult], index: HomeIndex, writer: AnswerWriter) -> str:
    """Return what the calls have done, in a few short sentences."""
    calls = [result for result in results if result.name == CALL_TOOL]
    if calls and all(result.is_denied_by_user for result in calls):
        return writer.say("command.denied")
    made = [result for result in calls if not result.is_held_back]
    done: dict[str, _Done] = {}
    sentences: list[str | _Done] = []
    for result in made:
        one = _read_done(result, index)
        if one is None:
            sentences.append(_report(result, index, writer))
        elif (same := done.get(one.key)) is not None:
            same.entities.extend(one.entities)
        else:
            done[one.key] = one
            sentences.append(one)
    texts = [each if isinstance(each, str) else _say_done(each, index, writer) for each in sentences]
    if len(made) < len(calls):
        texts.append(writer.say("command.nothing_done"))
    return " ".join(dict.fromkeys(filter(None, texts)))


@dataclass(frozen=True, slots=True)
class _Done:
    """The effect of a call. Calls with the same key are reported together."""

    key: str
    service: str
    data: dict[str, Any]
    entities: list[Entity]


def _read_done(result: LocalCallResult, index: HomeIndex) -> _Done | None:
    """Return what a call has done; None if it did not work, or changed nothing."""
    content, arguments = result.parse_object(), _parse(result.arguments)
    is_done = content and content.get("verified") is not False and "already_so" not in content
    if not is_done or content.get("dry_run") or not has_worked(result) or _was_so(content, arguments):
        return None
    service, data = str(arguments.get("service")), arguments.get("data") or {}
    domain, _, verb = service.partition(".")
    scope = domain if domain in _STARTED_DOMAINS else _BY_VERB.get(verb, service)
    return _Done(f"{scope} {json.dumps(data)}", service, data, find_entities(arguments, index))


def _was_so(content: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """Return whether a call left all its things as they were: turned off what was off."""
    domain, _, verb = str(arguments.get("service")).partition(".")
    listed = content.get("entities") or ()
    is_same = all(each.get("before") == each.get("after") for each in listed if isinstance(each, dict))
    has_one_end = verb in _SETTLING and domain not in _STARTED_DOMAINS and not arguments.get("data")
    return bool(listed) and is_same and has_one_end and "more" not in content


def find_entities(arguments: dict[str, Any], index: HomeIndex) -> list[Entity]:
    wanted = [str(key) for key in arguments.get("entity_ids") or ()]
    return [index.entities[key] for key in wanted if key in index.entities]


def has_worked(result: LocalCallResult) -> bool:
    """Return whether a call had its effect, had nothing to change, or was refused by the user."""
    if result.is_denied_by_user:
        return True
    content = result.parse_object()
    if content.get("already_so"):
        return True
    has_problem = "note" in content or "refused" in content or content.get("verified") is False
    return bool(content) and not has_problem


def _report(result: LocalCallResult, index: HomeIndex, writer: AnswerWriter) -> str:
    """Report a call that did not work, or that had nothing to do."""
    content = result.parse_object()
    entities = find_entities(_parse(result.arguments), index)
    names = name_entities(entities, writer)
    if not content:
        return _explain_failure(result, names, writer)
    if content.get("dry_run"):
        return writer.say("command.dry_run", names=names)
    if content.get("already_so") or _was_so(content, _parse(result.arguments)):
        return say_already(entities, index, writer)
    return writer.say("command.not_seen", names=names)


def _explain_failure(result: LocalCallResult, names: Name, writer: AnswerWriter) -> str:
    """Return why a call was not made or failed. The messages of Sash and of the home are in English."""
    if result.is_denied_by_user:
        return writer.say("command.denied_one", names=names)
    if RATE_LIMIT in result.content:
        return writer.say("command.too_many")
    if result.content.startswith(_NOT_DONE):
        return say_not_allowed(result.content, names, writer)
    reason = result.content.removeprefix(_FAILED).rstrip(".")
    if _OUR_WORDS.search(reason):
        return writer.say("command.failed_plain", names=names)
    return writer.say("command.failed", names=names, reason=reason)


def say_not_allowed(reason: str, names: Name, writer: AnswerWriter) -> str:
    """Return that the policy allows no actions at all, or not this one. `reason` is that of the policy."""
    if "I am not allowed to control devices" in reason:
        return writer.say("command.not_allowed")
    return writer.say("command.not_allowed_this", names=names)


def _say_done(done: _Done, index: HomeIndex, writer: AnswerWriter) -> str:
    entities, data, names = done.entities, done.data, name_entities(done.entities, writer)
    domain, _, verb = done.service.partition(".")
    if domain in _STARTED_DOMAINS and verb == "turn_on":
        return _say_started(entities, index, writer)
    value = next((writer.quantity(data[name], unit) for name, unit in _VALUES.items() if name in data), "")
    if colour := _name_colour(data, writer):
        colour = f"{colour}, {value}" if value else colour
        return writer.say("command.coloured", names=names, colour=colour)
    if value:
        text = writer.say("command.set_to", names=names, value=value)
        return f"{text} {_say_still_off(entities, index, writer)}".rstrip()
    if option := next((data[field] for field in _OPTION_FIELDS if field in data), ""):
        return writer.say("command.set_to", names=names, value=option)
    if "volume_level" in data:
        percent = writer.quantity(data["volume_level"] * 100, "%")
        return writer.say("command.volume", names=names, value=percent)
    if "is_volume_muted" in data:
        return writer.say("command.muted" if data["is_volume_muted"] else "command.unmuted", names=names)
    if "oscillating" in data:
        text = writer.say("command.swinging" if data["oscillating"] else "command.not_swinging", names=names)
        return f"{text} {_say_still_off(entities, index, writer) if data['oscillating'] else ''}".rstrip()
    if "hvac_mode" in data:
        verb = "turn_off" if data["hvac_mode"] == "off" else "turn_on"
    key = _BY_VERB.get(verb, "set")
    return writer.say(f"command.{key}", names=names)


def _say_still_off(entities: Sequence[Entity], index: HomeIndex, writer: AnswerWriter) -> str:
    """Return that thermostats or fans were set, but are off, so that nothing happens; else an empty text."""
    off = [each for each in entities if each.domain in _OFF_DOMAINS and index.get_state(each.id) == "off"]
    if not off:
        return ""
    state = writer.state(index, off[0])
    key = "state.is" if len(off) == 1 else "state.are"
    return writer.say("command.but", things=writer.phrase(key, names=writer.names(off), state=state))


def _name_colour(data: dict[str, Any], writer: AnswerWriter) -> str:
    """Return the colour that a light was given; empty if it was given none."""
    if "color_temp_kelvin" in data:
        is_warm = data["color_temp_kelvin"] < _MIN_COLD_KELVIN
        return writer.phrase("colour.warm_white" if is_warm else "colour.cold_white")
    name = str(data.get("color_name") or "")
    return writer.phrase(f"colour.{name}") if writer.has(f"colour.{name}") else name


def _say_started(entities: Sequence[Entity], index: HomeIndex, writer: AnswerWriter) -> str:
    """Report a script or a scene, with what it changed."""
    members = [
        index.entities[key]
        for entity in entities
        for key in sorted(index.list_contents(entity.id)[0])
        if key in index.entities and index.get_state(key) != UNAVAILABLE
    ]
    names = writer.join(writer.phrase("talk.quoted", text=entity.name) for entity in entities)
    if not members:
        return writer.say("command.started", names=names)
    states = [
        writer.phrase("state.is", names=writer.name(member), state=writer.state(index, member))
        for member in members[:MAX_NAMED]
    ]
    return writer.say("command.started_with", names=names, states=writer.join(states))


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
