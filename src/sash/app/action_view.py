"""The agent's past actions, for a person: the reason, the effect in words, and the states."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from sash.app.effect_text import describe_call
from sash.home.index import HomeIndex
from sash.ports.store import Page
from sash.values.action_explanation import PastAction, Way
from sash.values.continuations import Action, Outcome, TurnCaller

# A message may have a megabyte, and a page of actions has many sentences.
MAX_SENTENCE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class ActionShown:
    """An action with the sentence that led to it, at most its first 1000 characters.

    `in_words` is the call, such as "turn on Floor lamp (light.floor_lamp)". `way` is "local" if the sentence
    was understood without a model, and null if unknown. `verified` is null if the effect cannot be observed.
    `before` and `after` are the states by entity. `allowed_by` is the entry of the allowlist, and `approved`
    the answer of a person who was asked first. `can_undo` tells if an undo of the session would reverse this
    action now. It may still fail, for example because the state has changed since.
    """

    continuation_id: str
    session_id: str
    call_id: str
    sentence: str
    asked_at: datetime
    acted_at: datetime
    caller: TurnCaller | None
    way: Way | None
    tool: str
    service: str | None
    in_words: str
    entity_ids: tuple[str, ...]
    outcome: Outcome
    verified: bool | None
    before: dict[str, Any]
    after: dict[str, Any]
    allowed_by: str | None
    approved: bool | None
    is_undone: bool
    can_undo: bool

    @classmethod
    def of(cls, past: PastAction, index: HomeIndex | None) -> Self:
        """Return an action. `index` tells the names of entities; without it their ids stand for them."""
        reason, action = past.explanation, past.action
        if past.reversed_action is not None:
            words = f"undo: {_describe_action(past.reversed_action, reason.entity_ids, index)}"
        else:
            words = _describe_action(action, reason.entity_ids, index)
        return cls(
            reason.continuation_id,
            reason.session_id,
            action.call_id,
            reason.sentence[:MAX_SENTENCE_CHARS],
            reason.asked_at,
            reason.acted_at,
            reason.caller,
            reason.way,
            reason.tool,
            reason.service,
            words,
            reason.entity_ids,
            reason.outcome,
            reason.verified,
            action.before,
            action.after,
            reason.allowed_by,
            reason.approved,
            past.is_undone,
            past.can_undo,
        )


@dataclass(frozen=True, slots=True)
class ActionList:
    actions: tuple[ActionShown, ...]
    next_cursor: str | None = None

    @classmethod
    def of(cls, page: Page, index: HomeIndex | None) -> Self:
        return cls(tuple(ActionShown.of(past, index) for past in page.items), page.next_cursor)


def _describe_action(action: Action, entity_ids: tuple[str, ...], index: HomeIndex | None) -> str:
    """Return a call as "turn on Floor lamp (light.floor_lamp) (40 % bright)"."""
    arguments = action.arguments
    if "service" not in arguments:
        return describe_call(action.name, arguments)
    known = {} if index is None else index.entities
    data = arguments.get("data")
    entities = [{"entity_id": key, "name": known[key].name} if key in known else key for key in entity_ids]
    call = {"service": arguments["service"], "entities": entities or arguments.get("areas") or ()}
    return describe_call(action.name, call | {"data": data if isinstance(data, dict) else None})
