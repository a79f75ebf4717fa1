"""Reports which tasks Sash scheduled or cancelled."""

import json
from datetime import datetime
from typing import Any

from sash.intents.acting.already_so import name_entities
from sash.intents.acting.report import find_entities, report_results, say_not_allowed
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.intents.waiting.waiting_list import CANCEL_TOOL

LATER_TOOL = "do_later"
# The sentences for the codes with which the tool refuses a task.
_REFUSALS = {
    "no_conversation": "later.no_conversation",
    "past": "later.past",
    "too_far": "later.too_far",
    "secret": "later.secret",
    "too_many_waiting_turns": "later.too_many_waiting",
}


def report(situation: Situation) -> Reply | None:
    """Return what the calls of a sentence did; None if they promised and cancelled nothing."""
    results = situation.utterance.results
    if not any(result.name in (LATER_TOOL, CANCEL_TOOL) for result in results):
        return None
    done = report_results(results, situation.index, situation.writer)
    text = " ".join(filter(None, [done, report_promised(situation)]))
    ids = _list_ids(results[-1].parse_object())
    return Reply(text, topic=Topic("waiting", (), ids).to_json())


def report_promised(situation: Situation) -> str:
    """Return what the calls of a sentence have promised or cancelled; empty without such calls."""
    results, writer = situation.utterance.results, situation.writer
    parts: list[str] = []
    cancelled: list[str] = []
    is_cancelled = any(result.name == CANCEL_TOOL for result in results)
    # What was cancelled and promised again has a new time.
    is_moved = {LATER_TOOL, CANCEL_TOOL} <= {each.name for each in results}
    for result in results:
        content = result.parse_object()
        if result.name == LATER_TOOL:
            parts.append(_say_registered(situation, content, result.arguments))
        elif result.name == CANCEL_TOOL and not is_moved:
            cancelled.extend(str(each["summary"]).rstrip(".!?") for each in content.get("cancelled", ()))
    if is_cancelled and not is_moved:
        names = writer.join(dict.fromkeys(cancelled))
        parts.append(writer.say("later.cancelled" if names else "later.nothing", names=names))
    return " ".join(dict.fromkeys(parts))


def _say_registered(situation: Situation, content: dict[str, Any], arguments: str) -> str:
    waiting, writer = content.get("waiting"), situation.writer
    if not isinstance(waiting, dict):
        return _say_refused(situation, content.get("refused"), arguments)
    summary = str(waiting["summary"]).rstrip(".!?")
    if at := waiting.get("at"):
        moment = datetime.fromisoformat(at).astimezone(situation.now.tzinfo)
        text = writer.say("later.at", when=writer.moment(moment, situation.now), summary=summary)
    else:
        text = writer.say("later.on_condition", summary=summary)
    conditions = writer.join(map(str, waiting.get("only_if") or ()))
    return f"{text} {writer.say('later.only_if', conditions=conditions)}" if conditions else text


def _say_refused(situation: Situation, refused: object, arguments: str) -> str:
    """Return why a task was not scheduled. `arguments` are those of the call, as JSON."""
    writer, shown = situation.writer, refused if isinstance(refused, dict) else {}
    if shown.get("code") != "not_allowed":
        return writer.say(_REFUSALS.get(str(shown.get("code")), "later.refused"))
    calls = [call for call in json.loads(arguments).get("calls", ()) if call["service"] == shown.get("name")]
    entities = [entity for call in calls for entity in find_entities(call, situation.index)]
    return say_not_allowed(str(shown.get("reason")), name_entities(entities, writer), writer)


def _list_ids(content: dict[str, Any]) -> tuple[str, ...]:
    waiting = content.get("waiting")
    return tuple(map(str, waiting.get("entity_ids") or ())) if isinstance(waiting, dict) else ()
