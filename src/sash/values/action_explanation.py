"""The reason of an action: the sentence that led to it, its speaker, and the rule that allowed it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sash.values.continuations import Action, Outcome, TurnCaller

Way = Literal["local", "model"]


@dataclass(frozen=True, slots=True)
class ActionExplanation:
    """An action with the turn that it belongs to.

    `sentence` is the user's message, and `caller` the user if known. `way` tells if a model chose the action,
    or if the sentence was understood without one. `service` is None for a tool that does not name one.
    `allowed_by` is the entry of the session's allowlist that allowed the action. `approved` is the answer of
    a person who was asked first, and None if no person was asked.

    Some details go with the steps of the turn, which a sweep drops: then `acted_at` is the end of the turn,
    and `way` may be None. `allowed_by` and `approved` are None for actions of an older version.
    """

    owner: str
    session_id: str
    continuation_id: str
    sentence: str
    asked_at: datetime
    acted_at: datetime
    caller: TurnCaller | None
    way: Way | None
    tool: str
    service: str | None
    entity_ids: tuple[str, ...]
    outcome: Outcome
    verified: bool | None
    allowed_by: str | None
    approved: bool | None


@dataclass(frozen=True, slots=True)
class PastAction:
    """An action of an earlier turn with its explanation.

    `reversed_action` is the action that this one undid, if this is an undo and the other turn still exists.
    `is_undone` tells if a later action of the session undid this one, and `can_undo` if an undo would reverse
    this one now.
    """

    explanation: ActionExplanation
    action: Action
    reversed_action: Action | None
    is_undone: bool
    can_undo: bool
