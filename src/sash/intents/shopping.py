"""Adds, completes and removes the items of to-do lists, and tells what is on them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sash.errors import SashError
from sash.intents.list_sentences import ListSentence, read_list_sentence, read_more_items, read_same_items
from sash.intents.parts import split_requests
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.intents.undoing import asks_to_undo
from sash.intents.words.tokens import remove_accents, split_words
from sash.memory.words import stem
from sash.ports.home import UNAVAILABLE, Entity
from sash.ports.intents import LocalCallResult
from sash.values.continuations import Continuation

MAX_NAMED = 10
# So many earlier turns are read for the items that "it" means.
MAX_EARLIER = 4
# A list does not tell when or by whom something was added.
_TIMES = frozenset({"ask.when", "ask.who", "ask.how_long", "ask.how_often"})
_TOOL = "call_service"
_GET_ITEMS = "todo.get_items"
_NEEDS_ACTION = "needs_action"
_SERVICES = {"add": "todo.add_item", "complete": "todo.update_item", "remove": "todo.remove_item"}
_UNDONE_BY = {"todo.add_item": "remove", "todo.remove_item": "add"}
_VERBS = {service: verb for verb, service in _SERVICES.items()}


async def answer_list_sentence(situation: Situation) -> Reply | None:
    """Return the reply to a sentence about a to-do list, or its calls; None for any other sentence."""
    found = await _read(situation)
    if found is None:
        return None
    found = replace(found, items=tuple(map(situation.writer.write_noun, found.items)))
    if found.entity is None:
        return _tell_missing_list(situation, found)
    if situation.index.get_state(found.entity.id) == UNAVAILABLE:
        return Reply(situation.writer.say("list.unavailable", list=_name(situation, found.entity)))
    try:
        items = await _read_items(situation, found.entity)
    except SashError:
        return Reply(situation.writer.say("list.unreadable", list=_name(situation, found.entity)))
    topic = Topic("other", (), (found.entity.id,)).to_json()
    if found.is_question and any(m.tag in _TIMES for m in situation.sentence.find("ask")):
        return Reply(situation.writer.say("past.unrecorded"), topic=topic)
    if found.is_question:
        return Reply(_tell_items(situation, found, found.entity, items), topic=topic)
    if _TOOL not in situation.utterance.tools:
        return None
    reply = _plan(situation, found, found.entity, items)
    return replace(reply, topic=topic)


async def _read(situation: Situation) -> ListSentence | None:
    """Return what the sentence says about a list, also if it goes on: "and eggs", "take them off again"."""
    turns = await situation.utterance.dialogue.list_recent(MAX_EARLIER)
    if asks_to_undo(situation.sentence):
        return _undo(situation, turns[-1]) if turns else None
    found = read_list_sentence(situation)
    if found or not any(entity_id.startswith("todo.") for entity_id in situation.focus_ids[:1]):
        return found
    for turn in turns:
        earlier = replace(situation, sentence=situation.reader.read(turn.request.message))
        found = read_list_sentence(earlier) or _go_on(earlier, found)
    return _go_on(situation, found)


def changed_items(turn: Continuation) -> dict[str, tuple[str, ...]]:
    """Return the items that a turn added to a list or removed from it, by the service that did it."""
    found: dict[str, tuple[str, ...]] = {}
    for action in turn.response.actions if turn.response else ():
        service = str(action.arguments.get("service"))
        if service in _UNDONE_BY and action.verified is not False:
            item = str((action.arguments.get("data") or {}).get("item"))
            found[service] = (*found.get(service, ()), item)
    return found


def _undo(situation: Situation, turn: Continuation) -> ListSentence | None:
    """Return what takes back the change that a turn made to a list."""
    changed = changed_items(turn)
    lists = [key for key in situation.focus_ids[:1] if key.startswith("todo.")]
    if len(changed) != 1 or not lists:
        return None
    ((service, items),) = changed.items()
    return ListSentence(_UNDONE_BY[service], items, situation.index.entities.get(lists[0]))


def _go_on(situation: Situation, before: ListSentence | None) -> ListSentence | None:
    if before is None:
        return None
    return read_more_items(situation, before) or read_same_items(situation, before)


def report_items(situation: Situation) -> Reply | None:
    """Return one report of the calls that changed a list; None if one was no such call, or did not work."""
    names: list[str] = []
    service, list_id = "", ""
    for result in situation.utterance.results:
        content, arguments = result.parse_object(), _read_arguments(result)
        service = str(arguments.get("service"))
        is_done = "entities" in content and content.get("verified") is not False
        if service not in _VERBS or not is_done:
            return None
        names.append(str(arguments["data"]["item"]))
        list_id = str(arguments["entity_ids"][0])
    entity = situation.index.entities.get(list_id)
    if entity is None:
        return None
    said = _join(situation, names)
    text = situation.writer.say(f"list.{_VERBS[service]}", items=said, list=_name(situation, entity))
    there = _list_already_there(situation, names) if _VERBS[service] == "add" else []
    if there:
        text = f"{text} {_say_already(situation, entity, there)}"
    return Reply(text, topic=Topic("other", (), (entity.id,)).to_json())


def _list_already_there(situation: Situation, added: Sequence[str]) -> list[str]:
    """Return the items of a sentence that were not added, because they were on the list."""
    sentence, reader = situation.sentence, situation.reader
    parts = [reader.read(text, corrects=sentence.corrected) for text in split_requests(sentence, reader)]
    read = [read_list_sentence(replace(situation, sentence=part)) for part in parts]
    items = [item for found in read if found and found.verb == "add" for item in found.items]
    return [item for item in items if item not in added] if set(added) <= set(items) else []


def _say_already(situation: Situation, entity: Entity, items: Sequence[str]) -> str:
    return situation.writer.say("list.already", items=_join(situation, items), list=_name(situation, entity))


def _join(situation: Situation, items: Sequence[str]) -> str:
    """Return items in the middle of a sentence. Only German nouns keep the capital of their first letter."""
    is_capitalized = situation.writer.language == "de"
    return situation.writer.join(item if is_capitalized else _lower_first(item) for item in items)


def _lower_first(item: str) -> str:
    return item[:1].lower() + item[1:] if item[1:].islower() else item


def _read_arguments(result: LocalCallResult) -> dict[str, Any]:
    value = json.loads(result.arguments)
    return value if isinstance(value, dict) else {}


async def _read_items(situation: Situation, entity: Entity) -> list[str]:
    """Return the items of a list that are still to be done."""
    response = await situation.home.home.call_service(
        _GET_ITEMS, {"status": [_NEEDS_ACTION]}, [entity.id], return_response=True
    )
    found = (response or {}).get(entity.id)
    items = found.get("items") if isinstance(found, dict) else None
    return [
        str(item["summary"])
        for item in items or ()
        if isinstance(item, dict)
        and item.get("summary")
        and item.get("status", _NEEDS_ACTION) == _NEEDS_ACTION
    ]


def _plan(situation: Situation, found: ListSentence, entity: Entity, items: list[str]) -> Reply:
    """Return the calls for a sentence, or an answer if there is nothing to do."""
    say, name = situation.writer.say, _name(situation, entity)
    if found.verb == "add":
        new = [item for item in found.items if _find_item(item, items, is_exact=True) is None]
        if not new:
            there = [_find_item(item, items, is_exact=True) or item for item in found.items]
            return Reply(_say_already(situation, entity, there))
        return Reply(calls=tuple(_call("add", entity, item) for item in new))
    if found.is_all:
        if not items:
            return Reply(say("list.empty", list=name))
        return Reply(calls=tuple(_call(found.verb, entity, item) for item in items))
    known = {item: _find_item(item, items) for item in found.items}
    missing = [item for item, listed in known.items() if listed is None]
    if missing:
        is_guess = not found.has_list
        return Reply(_tell_missing(situation, entity, missing, items), is_guess=is_guess)
    named = dict.fromkeys(listed for listed in known.values() if listed is not None)
    return Reply(calls=tuple(_call(found.verb, entity, item) for item in named))


def _call(verb: str, entity: Entity, item: str) -> PlannedCall:
    data = {"item": item, "status": "completed"} if verb == "complete" else {"item": item}
    return PlannedCall(_TOOL, {"service": _SERVICES[verb], "entity_ids": [entity.id], "data": data})


def _tell_items(situation: Situation, found: ListSentence, entity: Entity, items: list[str]) -> str:
    say, name = situation.writer.say, _name(situation, entity)
    if not found.items:
        return _tell_all(situation, name, items)
    known = [_find_item(item, items) for item in found.items]
    missing = [item for item, listed in zip(found.items, known, strict=True) if listed is None]
    if missing:
        return _tell_missing(situation, entity, missing, items, prefix="no_")
    there = [item for item in known if item is not None]
    return say("list.yes", items=_join(situation, there), list=name)


def _tell_all(situation: Situation, name: str, items: list[str]) -> str:
    if not items:
        return situation.writer.say("list.empty", list=name)
    shown, more = items[:MAX_NAMED], len(items) - MAX_NAMED
    if more > 0:
        return situation.writer.say("list.items_more", list=name, items=", ".join(shown), count=more)
    return situation.writer.say("list.items", list=name, items=_join(situation, shown))


def _tell_missing(
    situation: Situation, entity: Entity, missing: Sequence[str], items: list[str], *, prefix: str = ""
) -> str:
    """Say that items are not on a list, and what is."""
    writer, name = situation.writer, _name(situation, entity)
    text = writer.phrase("list.missing", items=_join(situation, missing), list=name)
    text = writer.say("list.no_there", text=text) if prefix else f"{text[:1].upper()}{text[1:]}"
    return f"{text} {_tell_all(situation, name, items)}"


def _tell_missing_list(situation: Situation, found: ListSentence) -> Reply:
    writer = situation.writer
    lists = [entity for entity in situation.index.entities.values() if entity.domain == "todo"]
    if not lists:
        return Reply(writer.say("list.none"), is_guess=situation.utterance.has_model or not found.has_list)
    if found.list_name:
        names = writer.names(lists)
        return Reply(writer.say("list.no_such", name=found.list_name, lists=names))
    return Reply(writer.say("list.which", lists=writer.names(lists, "or")))


def _find_item(wanted: str, items: Sequence[str], *, is_exact: bool = False) -> str | None:
    """Return the item with this name, or else the only one with all its words."""
    for item in items:
        if _simplify(item) == _simplify(wanted):
            return item
    if is_exact:
        return None
    words = _list_stems(wanted)
    found = [item for item in items if words and words <= _list_stems(item)]
    return found[0] if len(found) == 1 else None


def _simplify(text: str) -> tuple[str, ...]:
    return tuple(remove_accents(word).rstrip("s") or word for word in split_words(text))


def _list_stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _simplify(text))


def _name(situation: Situation, entity: Entity) -> str:
    return situation.writer.name(entity)
