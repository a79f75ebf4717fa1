"""Finds what changed an entity: the user through Sash, an automation, or a person."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sash.intents.situation import Situation
from sash.ports.home import Entity, LogbookEntry
from sash.values.action_explanation import ActionExplanation

# A change belongs to an action of Sash, or to an entry of the logbook, that is this close.
ACTION_WINDOW = timedelta(seconds=60)
ENTRY_WINDOW = timedelta(seconds=3)

CauseKind = Literal["you", "user", "person", "automation", "script", "scene", "thing"]
_NAMED = re.compile(r"(automation|script|scene) (.+)")
_CALL = re.compile(r"(?:action )?[a-z_]{1,60}\.[a-z0-9_]{1,100}")
_CHANGED, _BY = " changed to ", " by "
_CONTAINERS = ("automation", "script", "scene")


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """What made a change. `name` is empty for a cause that is hidden, `sentence` is what the user said."""

    kind: CauseKind
    name: str = ""
    sentence: str = ""
    asked_at: datetime | None = None


async def find_cause(situation: Situation, entity: Entity, at: datetime) -> ChangeCause | None:
    """Return what changed an entity at a time; None if nothing knows."""
    explanation = await situation.utterance.dialogue.explain_action(entity.id)
    if explanation is not None and abs(explanation.acted_at - at) <= ACTION_WINDOW:
        return describe_action(situation, explanation)
    if "get_logbook" not in situation.utterance.tools:
        return None
    home = situation.home.home
    entries = await home.get_logbook(at - ENTRY_WINDOW, at + ENTRY_WINDOW, [entity.id])
    near = sorted((entry for entry in entries if entry.cause), key=lambda entry: abs(entry.at - at))
    return read_cause(situation, near[0]) if near else None


def describe_action(situation: Situation, explanation: ActionExplanation) -> ChangeCause:
    """Return the cause of a change that Sash made: the one who asked for it."""
    caller, asker = situation.utterance.caller, explanation.caller
    name = asker.user_name if asker else None
    is_other = bool(name) and (caller is None or caller.user_id != (asker.user_id if asker else None))
    kind: CauseKind = "user" if is_other else "you"
    return ChangeCause(kind, name or "", explanation.sentence, explanation.asked_at)


def read_cause(situation: Situation, entry: LogbookEntry) -> ChangeCause | None:
    """Return the cause that an entry of the logbook names; None if it names none."""
    text, index = situation.index.redact(entry.cause), situation.index
    cause_domain = (entry.cause_id or "").partition(".")[0]
    if named := _NAMED.fullmatch(text):
        return ChangeCause(named[1], named[2])  # type: ignore[arg-type]
    if cause_domain in _CONTAINERS:
        entity = index.entities.get(entry.cause_id or "")
        return ChangeCause(cause_domain, entity.name if entity else "")  # type: ignore[arg-type]
    is_hidden = entry.cause_id is not None and entry.cause_id not in index.entities
    done, _, person = text.partition(_BY)
    if _CALL.fullmatch(done):
        return _make_person(situation, person or None)
    if text.startswith("by "):
        return _make_person(situation, text.removeprefix("by "))
    name, changed, _ = done.partition(_CHANGED)
    if changed:
        by_person = _make_person(situation, person or None)
        return by_person or (None if is_hidden else ChangeCause("thing", name))
    return None if is_hidden else ChangeCause("automation", text.partition(",")[0])


def _make_person(situation: Situation, name: str | None) -> ChangeCause | None:
    caller = situation.utterance.caller
    if not name:
        return None
    is_caller = caller is not None and caller.user_name == name
    return ChangeCause("you" if is_caller else "person", name)
