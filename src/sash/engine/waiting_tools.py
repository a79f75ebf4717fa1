"""The agent's tools for later work: `do_later`, `list_waiting` and `cancel_waiting`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sash.engine.parts import Parts
from sash.engine.policy import judge
from sash.engine.redaction import redact, redact_json
from sash.engine.turn.fired_turn import CALL_TOOL
from sash.engine.waiting_text import describe_waiting_turn
from sash.engine.waiting_turns import WaitingTurns
from sash.errors import EntityNotFound, HomeUnavailable, InvalidInput, SashError, TooManyWaitingTurns
from sash.ports.tools import ToolContext, ToolSpec
from sash.values.state_words import find_on_off
from sash.values.validated import parse
from sash.values.waiting_turns import (
    MAX_AHEAD,
    MAX_CALLS,
    MAX_CONDITIONS,
    MAX_HOLD_S,
    MAX_TARGETS,
    MAX_TEXT_CHARS,
    DeferredCall,
    StateCondition,
    WaitingTurn,
)

TOOLS = ("do_later", "list_waiting", "cancel_waiting")
MAX_IN_S = MAX_AHEAD.total_seconds()

# The model reads on and off of these entities by the device class.
_NAMED_DOMAINS = ("binary_sensor", "update")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 20}
_CONDITION = {
    "type": "object",
    "properties": {
        "entity_id": _TEXT,
        "states": _TEXTS | {"description": "It has one of these states."},
        "not_states": _TEXTS | {"description": "It has none of these states."},
        "above": {"type": "number"},
        "below": {"type": "number"},
        "for_s": {"type": "number", "minimum": 0, "maximum": MAX_HOLD_S},
    },
    "required": ["entity_id"],
    "additionalProperties": False,
}
_CALL = {
    "type": "object",
    "properties": {
        "service": _TEXT,
        "entity_ids": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MAX_TARGETS},
        "data": {"type": "object"},
    },
    "required": ["service"],
    "additionalProperties": False,
}


class _Refused(Exception):
    """The reason for which nothing is registered, with a stable code and the name of what is missing."""

    def __init__(self, code: str, reason: str, name: str | None = None) -> None:
        super().__init__(reason)
        self.shown = {"code": code, "reason": reason} | ({} if name is None else {"name": name})


@dataclass(frozen=True, slots=True)
class WaitingTools:
    """The functions behind the tools. `call_service` is the tool for services; None without a home."""

    find_parts: Callable[[], tuple[Parts, WaitingTurns]]
    call_service: ToolSpec | None

    async def do_later(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Register a waiting turn. Return it as `waiting`, or the reason for which it is `refused`."""
        parts, waiting_turns = self.find_parts()
        try:
            turn = await waiting_turns.add(await self._read(arguments, context))
        except _Refused as refused:
            return {"refused": refused.shown}
        except TooManyWaitingTurns as error:
            return {"refused": _Refused(error.code, error.message).shown}
        return {"waiting": describe_waiting_turn(turn, parts.find_index(), parts.local_time.zone)}

    async def list_waiting(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Return the waiting turns of the session, the next one first."""
        parts, _ = self.find_parts()
        turns = await parts.store.waiting_turns(context.session.owner, session_id=context.session.id)
        index, zone = parts.find_index(), parts.local_time.zone
        in_order = sorted(turns, key=lambda turn: (turn.at is None, turn.at or turn.created_at))
        return {"waiting": [describe_waiting_turn(turn, index, zone) for turn in in_order]}

    async def cancel_waiting(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Cancel one waiting turn of the session, all of them, or the newest. Return the cancelled ones."""
        parts, waiting_turns = self.find_parts()
        session = context.session
        turns = await parts.store.waiting_turns(session.owner, session_id=session.id)
        wanted = arguments.get("id")
        if wanted is not None:
            turns = [turn for turn in turns if turn.id == wanted]
        elif not arguments.get("all"):
            turns = turns[-1:]
        cancelled = [await waiting_turns.cancel(session.owner, turn.id) for turn in turns]
        return {"cancelled": [{"id": turn.id, "summary": turn.summary} for turn in cancelled]}

    async def _read(self, arguments: dict[str, Any], context: ToolContext) -> WaitingTurn:
        parts, _ = self.find_parts()
        session, now = context.session, parts.clock.now()
        if session.is_one_question:
            raise _Refused(
                "no_conversation", "this conversation ends with the answer, so nothing can wait in it"
            )
        if len([name for name in ("at", "in_s", "when") if name in arguments]) != 1:
            raise InvalidInput("do_later needs exactly one of at, in_s and when")
        summary = redact(arguments["summary"])
        calls = tuple([await self._read_call(call, context) for call in arguments.get("calls", ())])
        say = redact(arguments["say"]) if arguments.get("say") else None
        when = arguments.get("when")
        return parse(
            WaitingTurn,
            {
                "id": parts.new_id(),
                "session_id": session.id,
                "owner": session.owner,
                "summary": summary,
                "created_at": now,
                "at": None if when is not None else self._read_time(arguments, now),
                "when": None if when is None else self._read_condition(when),
                "only_if": tuple(self._read_condition(each) for each in arguments.get("only_if", ())),
                "calls": calls,
                "say": say if calls or say else summary,
                "language": context.language,
                "area": context.area,
                "caller": context.caller,
                "asked_in": context.key[-256:],
            },
        )

    def _read_time(self, arguments: dict[str, Any], now: datetime) -> datetime:
        if "in_s" in arguments:
            at = now + timedelta(seconds=min(arguments["in_s"], 2 * MAX_IN_S))
        else:
            at = self._parse_time(arguments["at"])
        if at <= now:
            raise _Refused("past", f"{at.isoformat(timespec='minutes')} is in the past")
        if at - now > MAX_AHEAD:
            raise _Refused("too_far", "that is more than a year ahead")
        return at

    def _parse_time(self, text: str) -> datetime:
        """Return an ISO time. Without an offset it is a time of the home."""
        parts, _ = self.find_parts()
        try:
            at = datetime.fromisoformat(text)
            if at.tzinfo is None:
                zone = parts.local_time.zone
                at = at.astimezone() if zone is None else at.replace(tzinfo=zone)
            return at.astimezone(parts.clock.now().tzinfo)
        except (ValueError, OverflowError) as error:
            raise InvalidInput(f"{text!r:.80} is not an ISO time such as 2026-01-17T21:05") from error

    def _read_condition(self, given: dict[str, Any]) -> StateCondition:
        if self.call_service is None:
            raise _Refused("no_home", "there is no home whose states could be watched", given["entity_id"])
        entity_id = self._find_entity(given["entity_id"])
        spelled = {
            name: self._spell_states(entity_id, given[name])
            for name in ("states", "not_states")
            if name in given
        }
        condition = parse(StateCondition, given | spelled | {"entity_id": entity_id})
        is_empty = not condition.states and not condition.not_states
        if is_empty and condition.above is None and condition.below is None:
            raise InvalidInput("a condition needs states, not_states, above or below")
        return condition

    def _spell_states(self, entity_id: str, states: list[str]) -> list[str]:
        """Return states as the home spells them. The model reads "open" for the "on" of a window."""
        index, domain = self.find_parts()[0].find_index(), entity_id.partition(".")[0]
        device_class = index.get_device_class(entity_id) if index and domain in _NAMED_DOMAINS else ""
        return [find_on_off(state, domain, device_class) for state in states]

    def _find_entity(self, name: str) -> str:
        """Return the id of an entity. Refuse one that does not exist or is not exposed."""
        parts, _ = self.find_parts()
        assert parts.home is not None  # There is a tool for services, so there is a home.
        try:
            return parts.home.index.find(name).id
        except EntityNotFound as error:
            raise _Refused("unknown_entity", error.message, name) from error
        except HomeUnavailable as error:
            raise _Refused("home_unavailable", error.message) from error

    async def _read_call(self, given: dict[str, Any], context: ToolContext) -> DeferredCall:
        """Return a call that the policy may allow when it is due. Refuse one that it never allows."""
        parts, _ = self.find_parts()
        service = self.call_service
        if service is None or service.uses is None:
            raise _Refused("no_home", "there is no home to act in", given["service"])
        if redact_json(given) != given:
            raise _Refused("secret", "a secret such as a code is not kept: ask for this when it is due")
        ids = tuple(self._find_entity(name) for name in given.get("entity_ids", ()))
        call = parse(DeferredCall, given | {"service": given["service"].strip().lower(), "entity_ids": ids})
        try:
            uses = list(await service.uses(call.arguments, context))
        except EntityNotFound as error:
            raise _Refused("unknown_entity", error.message) from error
        except SashError as error:
            raise _Refused(error.code, error.message, call.service) from error
        verdict = judge(uses, context.session.policy, parts.operator.policy)
        if verdict.what == "deny":
            raise _Refused("not_allowed", verdict.reason, call.service)
        return call


def waiting_tools(tools: WaitingTools) -> Iterator[ToolSpec]:
    """Yield the tools. Without a home, only texts can be said later, and only at a time."""
    has_home = tools.call_service is not None
    home_properties: dict[str, Any] = {
        "when": _CONDITION | {"description": "Instead of a time: when this entity changes to that."},
        "only_if": {
            "type": "array",
            "items": _CONDITION,
            "maxItems": MAX_CONDITIONS,
            "description": "Checked when it is due. If one does not hold, nothing is done.",
        },
        "calls": {
            "type": "array",
            "items": _CALL,
            "maxItems": MAX_CALLS,
            "description": f"What to do then, as for {CALL_TOOL}.",
        },
    }
    action = (
        "Do something later, or tell the user something later: at a time, or when a state is reached. Never "
        "use it for what the user wants now, and never act now for what the user wants later. Example: "
        '{"summary": "turn off the kitchen light", "in_s": 600, "calls": [{"service": "light.turn_off", '
        '"entity_ids": ["light.kitchen"]}]}'
    )
    reminder = (
        "Tell the user something later: reminders and timers. Never use it for what the user wants now. "
        'Example: {"summary": "pizza timer", "in_s": 600, "say": "Your pizza is ready."}'
    )
    yield ToolSpec(
        TOOLS[0],
        action if has_home else reminder,
        {
            "type": "object",
            "properties": {
                "summary": _TEXT
                | {
                    "minLength": 1,
                    "maxLength": MAX_TEXT_CHARS,
                    "description": "What will be done, in the language of the user.",
                },
                "at": _TEXT | {"description": "An ISO time of the home: 2026-01-17T21:05."},
                "in_s": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "Instead of at: in so many seconds.",
                },
                **(home_properties if has_home else {}),
                "say": _TEXT
                | {"minLength": 1, "maxLength": MAX_TEXT_CHARS, "description": "What to tell the user then."},
            },
            "required": ["summary"],
            "additionalProperties": False,
        },
        tools.do_later,
        safety="idempotent",
    )
    yield ToolSpec(
        TOOLS[1],
        "List what waits to be done or told later in this conversation. Use it before you cancel one of "
        "several.",
        {"type": "object", "properties": {}, "additionalProperties": False},
        tools.list_waiting,
        safety="idempotent",
    )
    yield ToolSpec(
        TOOLS[2],
        "Cancel something that waits in this conversation: the one with this id, all, or else the newest. "
        "It undoes nothing that was done already.",
        {
            "type": "object",
            "properties": {"id": _TEXT, "all": {"type": "boolean"}},
            "additionalProperties": False,
        },
        tools.cancel_waiting,
        # A repeated call without an id would cancel the next one.
        safety="unsafe",
    )
