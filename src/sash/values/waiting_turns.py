"""Waiting turns: what a user asked for later, such as "turn off the light in ten minutes".

A waiting turn belongs to a session. When its time comes, or the state that it waits for, it fires: it becomes
a continuation of the session, which does the calls or says the text.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, AllowInfNan, Field, Strict

from sash.values.bounds import Time
from sash.values.sessions import JsonObject, Label
from sash.values.turn_caller import TurnCaller

# The limits of waiting turns in one session, and of the parts of one waiting turn.
MAX_WAITING_TURNS = 50
MAX_CALLS = 10
MAX_CONDITIONS = 20
MAX_TARGETS = 100
MAX_DATA_BYTES = 4096
MAX_TEXT_CHARS = 500
MAX_AHEAD = timedelta(days=366)
MAX_HOLD_S = 24 * 3600
# A waiting turn that fires later than this says that it is late.
LATE = timedelta(seconds=60)
# A waiting turn that could not fire for this long is reported as missed, and does nothing.
MISSED = timedelta(hours=24)

# The states of an entity that has no state now. A condition must name them.
_NO_STATE = frozenset({"unavailable", "unknown"})


def _check_data(data: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(data)) > MAX_DATA_BYTES:
        raise ValueError(f"the data of a call may have at most {MAX_DATA_BYTES} bytes")
    return data


WatchedId = Annotated[str, Strict(), Field(pattern=r"^[a-z0-9_]+\.[a-z0-9_]+$", max_length=255)]
States = Annotated[tuple[Label, ...], MaxLen(20)]
Threshold = Annotated[float, AllowInfNan(False), Ge(-1e12), Le(1e12)]
HoldSeconds = Annotated[float, AllowInfNan(False), Ge(0), Le(MAX_HOLD_S)]
WaitingText = Annotated[str, Strict(), MinLen(1), MaxLen(MAX_TEXT_CHARS)]
CallData = Annotated[JsonObject, AfterValidator(_check_data)]


@dataclass(frozen=True, slots=True)
class StateCondition:
    """A condition on the state of one entity. All parts that are set have to hold, for `for_s` seconds.

    An entity that is unavailable or unknown meets a condition only if `states` names that.
    """

    entity_id: WatchedId
    states: States = ()
    not_states: States = ()
    above: Threshold | None = None
    below: Threshold | None = None
    for_s: HoldSeconds = 0.0

    def is_met(self, state: str) -> bool:
        """Return True if the entity meets the condition with this state. `for_s` is not regarded."""
        if state in _NO_STATE and state not in self.states:
            return False
        if (self.states and state not in self.states) or state in self.not_states:
            return False
        if self.above is None and self.below is None:
            return True
        try:
            number = float(state)
        except ValueError:
            return False
        is_above = self.above is None or number > self.above
        return isfinite(number) and is_above and (self.below is None or number < self.below)

    def is_known(self, state: str) -> bool:
        """Return True if this state tells whether the condition is met."""
        return state not in _NO_STATE or state in self.states


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """A service call that a waiting turn makes when it fires."""

    service: Label
    entity_ids: Annotated[tuple[WatchedId, ...], MaxLen(MAX_TARGETS)] = ()
    data: CallData = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool `call_service`."""
        named: dict[str, Any] = {"service": self.service}
        if self.entity_ids:
            named["entity_ids"] = list(self.entity_ids)
        return named | ({"data": self.data} if self.data else {})


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """What a session does later. `summary` says it in the language of the user.

    It waits for the time `at`, or for the condition `when`. When it fires, `only_if` is checked, then the
    `calls` are made, or `say` is told. `asked_in` is the key of the tool call that registered it. `due_at` is
    the time at which it fires; None while the condition is not met. With the status "already_so", the
    condition was met at the registration: it has to stop being met first.
    """

    id: Annotated[str, Field(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
    session_id: Label
    owner: Label
    summary: WaitingText
    created_at: Time
    at: Time | None = None
    when: StateCondition | None = None
    only_if: Annotated[tuple[StateCondition, ...], MaxLen(MAX_CONDITIONS)] = ()
    calls: Annotated[tuple[DeferredCall, ...], MaxLen(MAX_CALLS)] = ()
    say: WaitingText | None = None
    language: Label | None = None
    area: Label | None = None
    caller: TurnCaller | None = None
    asked_in: Label | None = None
    due_at: Time | None = None
    status: Literal["waiting", "already_so"] = "waiting"

    @property
    def key(self) -> str:
        """The idempotency key of the continuation that this one becomes, so that it fires only once."""
        return f"waiting-turn:{self.id}"

    @property
    def fires_at(self) -> datetime | None:
        """The time at which it is due, or at which it is given up. None if neither is near."""
        return self.due_at or (None if self.when is None else self.created_at + MAX_AHEAD)

    @property
    def needs_home(self) -> bool:
        """Return True if it cannot fire without the home."""
        return bool(self.calls or self.only_if)

    @property
    def entity_ids(self) -> tuple[str, ...]:
        """The entities that it watches, checks and changes, each once."""
        conditions = (*(() if self.when is None else (self.when,)), *self.only_if)
        watched = [condition.entity_id for condition in conditions]
        return tuple(dict.fromkeys([*watched, *(each for call in self.calls for each in call.entity_ids)]))


@dataclass(frozen=True, slots=True)
class FiredTurn:
    """A waiting turn that has fired, in the request of the continuation that it became.

    With `was_down`, no process of Sash was running when it was due.
    """

    turn: WaitingTurn
    was_down: bool = False
