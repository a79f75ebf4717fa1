"""One short line for each tool call of a turn: "looked up 4 states", "turned on Kitchen light"."""

import json
from typing import Any

from sash.values.continuations import Action
from sash.values.steps import ToolResult

MAX_NAMES = 3

# What a reading tool has done, and the list in its result that is counted.
_READING = {
    "search_index": ("looked up {count} {things}", "entities", ("thing", "things")),
    "get_states": ("looked up {count} {things}", "entities", ("state", "states")),
    "get_history": ("looked up the history", "", ("", "")),
    "get_logbook": ("looked up {count} {things} in the logbook", "entries", ("entry", "entries")),
    "analyze_history": ("calculated with the history", "", ("", "")),
    "diagnose_entity": ("examined {name}", "", ("", "")),
    "analyze_errors": ("looked for errors", "", ("", "")),
    "query_service": ("asked the house", "", ("", "")),
    "recall": ("looked up what was said before", "", ("", "")),
    "remember": ("noted a fact", "", ("", "")),
    "forget": ("forgot a fact", "", ("", "")),
    "reset_conversation": ("started over", "", ("", "")),
    "list_services": ("looked up what can be done", "", ("", "")),
    "do_later": ("noted it for later", "", ("", "")),
    "list_waiting": ("looked up {count} waiting {things}", "waiting", ("task", "tasks")),
    "cancel_waiting": ("cancelled {count} {things}", "cancelled", ("task", "tasks")),
}
_UNDO_TOOL = "undo_last_action"
# The arguments that a person wants to read, with the words around them.
_DETAILS = {
    "position": "to {} %",
    "tilt_position": "to {} %",
    "brightness_pct": "at {} %",
    "temperature": "to {} degrees",
    "percentage": "to {} %",
    "humidity": "to {} %",
    "hvac_mode": "to {}",
    "option": "to {}",
    "value": "to {}",
}
_IRREGULAR = {
    "set": "set",
    "run": "ran",
    "send": "sent",
    "get": "got",
    "put": "put",
    "shut": "shut",
    "stop": "stopped",
    "dim": "dimmed",
    "skip": "skipped",
}
# Services that are said in other words, in the present and in the past tense.
_WORDS = {
    "alarm_arm_home": ("arm (home)", "armed (home)"),
    "alarm_arm_away": ("arm (away)", "armed (away)"),
    "alarm_arm_night": ("arm (night)", "armed (night)"),
    "alarm_arm_vacation": ("arm (vacation)", "armed (vacation)"),
    "alarm_disarm": ("disarm", "disarmed"),
    "alarm_trigger": ("set off", "set off"),
    "return_to_base": ("send back", "sent back"),
    "volume_mute": ("mute", "muted"),
    "volume_set": ("set the volume of", "set the volume of"),
    "volume_up": ("turn up", "turned up"),
    "volume_down": ("turn down", "turned down"),
    "toggle": ("switch", "switched"),
}
_RUNNING = {"script": ("run", "ran"), "scene": ("activate", "activated"), "automation": ("run", "ran")}
_RUNNING_VERBS = ("turn_on", "trigger", "apply")
_NOT_RUNNING_VERBS = ("turn_off", "toggle", "reload")


def fold_result(result: ToolResult) -> str:
    """Return what a tool call has done, in the past tense, without a name of a tool or an id."""
    content = _read_object(result.content)
    if result.action is not None:
        return fold_action(result.action, result.content)
    if content.get("already_so"):
        return f"nothing to do: {_name_things(content, {})}"
    tool = result.name.replace("_", " ").replace(".", " ")
    words, counted, things = _READING.get(result.name, (f"used “{tool}”", "", ("", "")))
    if result.content.startswith(("failed:", "not done:")):
        return f"{words.format(count='nothing', things='', name='nothing').strip()}: it failed"
    found = content.get(counted)
    if counted and not isinstance(found, list):
        return "looked something up"
    count = len(found) if isinstance(found, list) else 0
    name = str(content.get("name") or "something")
    return words.format(count=count, things=things[count != 1], name=name)


def fold_action(action: Action, content: str = "") -> str:
    """Return an action in words: "turned on Kitchen light", or "turn on …" if it was not done.

    `content` is the result of the tool.
    """
    is_past, result = action.outcome == "done", _read_object(content)
    if action.name == _UNDO_TOOL:
        words, names = (
            "undid the last action" if is_past else "undo the last action",
            _name_things(result, {}),
        )
        return f"{words}: {names}" if names else words
    if not (service := str(action.arguments.get("service") or "")):
        tool = action.name.replace("_", " ").replace(".", " ")
        return f"{'used' if is_past else 'use'} “{tool}”"
    names, data = _name_things(result, action.arguments), action.arguments.get("data")
    given = data if isinstance(data, dict) else {}
    details = [words.format(given[name]) for name, words in _DETAILS.items() if name in given]
    return " ".join(filter(None, (_write_verb(service, is_past), names, *details)))


def _write_verb(service: str, is_past: bool) -> str:
    """Return a service in words: "turn on" or "turned on" for `light.turn_on`."""
    domain, _, verb = service.partition(".")
    if domain in _RUNNING and verb not in _NOT_RUNNING_VERBS:
        words = _RUNNING[domain][is_past]
        return words if verb in _RUNNING_VERBS else f"{words} {_to_words(verb)}"
    if verb in _WORDS:
        return _WORDS[verb][is_past]
    for part in (
        f"_{domain}",
        "_cover_position",
        "_valve_position",
        "_temperature",
        "_hvac_mode",
        "_percentage",
    ):
        verb = verb.removesuffix(part)
    first, *rest = verb.removeprefix("media_").removeprefix("select_").split("_")
    return " ".join(((_IRREGULAR.get(first) or _add_ed(first)) if is_past else first, *rest))


def _add_ed(verb: str) -> str:
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else f"{verb}ed"


def _name_things(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    """Return the names of the entities in a result, or else words for their ids in the arguments."""
    listed = result.get("entities")
    named = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    names = [str(each["name"]) for each in named if each.get("name")]
    if not names:
        ids = [*(arguments.get("entity_ids") or ()), *(arguments.get("areas") or ())]
        names = [_to_words(str(each).rpartition(".")[2]) for each in ids]
    shown = names[:MAX_NAMES]
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return ", ".join([*shown, *more])


def _to_words(name: str) -> str:
    return name.replace("_", " ")


def _read_object(content: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
