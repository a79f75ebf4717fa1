"""The tools that MCP offers, as a table: what each is called, takes, gives, and does at the desk.

Nothing here knows the protocol. A tool that `waits` returns the id of a turn, which somebody else waits for.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from sash.app.access import Caller
from sash.app.schemas import Acknowledged, Cancelled, SessionOver, SessionShown, SessionStarted
from sash.app.service import AgentService
from sash.errors import ContinuationNotFound, HomeUnavailable, InvalidInput
from sash.ports.tools import ToolSpec
from sash.server.mcp.schemas import input_schema, output_schema
from sash.server.mcp.shapes import (
    Awaited,
    MessageToSend,
    Question,
    SessionNamed,
    SessionsWanted,
    SessionToEnd,
    SummaryList,
    TurnNamed,
    TurnToApprove,
    TurnToAwait,
    TurnToCancel,
    summaries,
)
from sash.values.codec import adapter
from sash.values.requests import StartSession

# At the beginning, and when it comes back, a house is waited for.
HOUSE_S = 2.0
MAX_FAULTS = 5

DESCRIBED = {
    "session_id": "The session, as ha_agent_start_session has returned it.",
    "continuation_id": "The turn, as ha_agent_send_message has returned it.",
    "message": "What the user says or asks, in any language.",
    "planner_hints": "Hints for the agent, such as entities that matter.",
    "allow_tools": "Whether the agent may use its tools.",
    "time_budget_ms": "How long the turn may take.",
    "idempotency_key": "The same key is the same turn: a message that is sent twice is answered once.",
    "stream": "Changes nothing: a turn's events can always be listened to at /events/{session_id}.",
    "busy": "What to do if another turn is under way: reject, wait behind it, or cancel it.",
    "timeout_ms": "How long to wait; then the answer says how far it is, and nothing is lost.",
    "call_id": "The call that waits, out of waiting_calls.",
    "approved": "The user's answer. Never say yes for the user.",
    "reason": "Why, for the record.",
    "policy": "What the agent may do in the house; without it nothing is changed.",
    "name": "A name to find the session again by.",
    "area": "Where in the house the user is.",
}


@dataclass(frozen=True, slots=True)
class Visit:
    """One call of a tool: who calls, and where."""

    desk: AgentService
    caller: Caller


Run = Callable[[Visit, Any], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `reads` says that it changes nothing, `destroys` that something may be gone or done after it.

    `repeats` says that doing it twice is as once, `outside` that it asks a model.
    """

    name: str
    title: str
    description: str
    run: Run
    takes: dict[str, Any]
    gives: dict[str, Any] | None
    check: Callable[[dict[str, Any]], Any]
    waits: bool = False
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    outside: bool = False


def agent_tool(
    name: str, title: str, description: str, run: Run, takes: type[Any], gives: type[Any], **nature: bool
) -> Tool:
    """Return a tool of the agent, whose arguments and result are dataclasses."""
    return Tool(
        name,
        title,
        description,
        run,
        input_schema(takes, DESCRIBED),
        output_schema(gives),
        lambda arguments: _checked(takes, arguments),
        **nature,
    )


def house_tools(desk: AgentService) -> Iterator[Tool]:
    """Give the tools that read the house; what they keep, they keep in a session."""
    for spec in desk.runtime.direct_tools:
        yield Tool(
            spec.name,
            spec.name.replace("_", " ").capitalize(),
            spec.description,
            _HouseCall(spec.name),
            _with_session(spec),
            spec.output_schema,
            dict,
            reads=True,
            repeats=True,
        )


@dataclass(frozen=True, slots=True)
class _HouseCall:
    name: str

    async def __call__(self, visit: Visit, arguments: dict[str, Any]) -> Any:
        session_id = arguments.pop("session_id", None)
        if not isinstance(session_id, str | None):
            raise InvalidInput("session_id: it must be a text, the id of a session")
        call = partial(visit.desk.call_tool, visit.caller, self.name, arguments, session_id)
        try:
            return await call()
        except HomeUnavailable:
            await visit.desk.runtime.home_ready(timeout_s=HOUSE_S)
            return await call()


def _with_session(spec: ToolSpec) -> dict[str, Any]:
    described = "A session of yours, in which a picture is kept; only needed for one."
    session_id = {"type": "string", "description": described}
    properties = {**spec.input_schema.get("properties", {}), "session_id": session_id}
    return {**spec.input_schema, "type": "object", "properties": properties}


def _checked(kind: type[Any], arguments: dict[str, Any]) -> Any:
    """Return arguments as what they should be, or say what is wrong with them; not with which value."""
    try:
        return adapter(kind).validate_python(arguments)
    except ValidationError as error:
        faults = error.errors(include_url=False)[:MAX_FAULTS]
        told = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise InvalidInput("; ".join(told)) from error


async def _list_sessions(visit: Visit, wanted: SessionsWanted) -> SummaryList:
    found = await visit.desk.list_sessions(
        visit.caller, status=wanted.status, limit=wanted.limit, cursor=wanted.cursor
    )
    return summaries(found)


async def _get_session(visit: Visit, named: SessionNamed) -> SessionShown:
    return await visit.desk.get_session(visit.caller, named.session_id)


async def _start_session(visit: Visit, wanted: StartSession) -> SessionStarted:
    return await visit.desk.start_session(visit.caller, wanted)


async def _send_message(visit: Visit, message: MessageToSend) -> Acknowledged:
    return await visit.desk.send_message(visit.caller, message.session_id, message)


async def _await_continuation(visit: Visit, turn: TurnToAwait) -> str:
    return turn.continuation_id


async def _ask(visit: Visit, question: Question) -> str:
    return (await visit.desk.put_question(visit.caller, question)).continuation_id


async def _cancel(visit: Visit, turn: TurnToCancel) -> Cancelled:
    try:
        return await visit.desk.cancel(visit.caller, turn.continuation_id, turn.reason)
    except ContinuationNotFound:
        return Cancelled("not_found")


async def _approve(visit: Visit, answer: TurnToApprove) -> str:
    return (await visit.desk.approve(visit.caller, answer.continuation_id, answer)).continuation_id


async def _resume(visit: Visit, turn: TurnToAwait) -> str:
    return (await visit.desk.resume(visit.caller, turn.continuation_id)).continuation_id


async def _retry(visit: Visit, turn: TurnNamed) -> Acknowledged:
    return await visit.desk.retry(visit.caller, turn.continuation_id)


async def _end_session(visit: Visit, session: SessionToEnd) -> SessionOver:
    return await visit.desk.end_session(visit.caller, session.session_id, session.reason)


AGENT_TOOLS: tuple[Tool, ...] = (
    agent_tool(
        "ha_agent_list_sessions",
        "List sessions",
        "List your sessions with the home agent, newest first. Use it to find a conversation to go on with.",
        _list_sessions,
        SessionsWanted,
        SummaryList,
        reads=True,
        repeats=True,
    ),
    agent_tool(
        "ha_agent_ask",
        "Ask the agent once",
        "Ask the home agent one question and get its answer, with no conversation to keep. Use it for a "
        "single question about the house, or a single task. For follow-up questions start a session instead.",
        _ask,
        Question,
        Awaited,
        waits=True,
        destroys=True,
        outside=True,
    ),
    agent_tool(
        "ha_agent_start_session",
        "Start a session",
        "Start a conversation with the home agent that lasts for weeks: it remembers what was said. Returns "
        "the session_id to send messages with. Unless a policy allows it, nothing in the house is changed.",
        _start_session,
        StartSession,
        SessionStarted,
    ),
    agent_tool(
        "ha_agent_send_message",
        "Send a message",
        "Say something to the agent in a session. It returns at once with a continuation_id, and the agent "
        "works on; get the answer with ha_agent_await_continuation.",
        _send_message,
        MessageToSend,
        Acknowledged,
        destroys=True,
        outside=True,
    ),
    agent_tool(
        "ha_agent_await_continuation",
        "Wait for an answer",
        "Wait for the agent's answer to a message. If the time is up first, it says how far the turn is: "
        "call it again. Nothing is lost by waiting twice, or not at all.",
        _await_continuation,
        TurnToAwait,
        Awaited,
        waits=True,
        reads=True,
        repeats=True,
    ),
    agent_tool(
        "ha_agent_approve",
        "Answer a call that needs a yes",
        "Tell the agent whether it may make a call that waits for a yes, such as unlocking a door. Only "
        "after the user was asked. Then it waits for the agent's answer.",
        _approve,
        TurnToApprove,
        Awaited,
        waits=True,
        destroys=True,
        outside=True,
    ),
    agent_tool(
        "ha_agent_cancel",
        "Cancel a turn",
        "Stop the agent's work on a message, at once and for good, when the user does not want it any more.",
        _cancel,
        TurnToCancel,
        Cancelled,
        destroys=True,
        repeats=True,
    ),
    agent_tool(
        "ha_agent_resume",
        "Resume a turn",
        "Go on with a turn that was interrupted, as by a restart: what was done is not done again. Then it "
        "waits for the agent's answer.",
        _resume,
        TurnToAwait,
        Awaited,
        waits=True,
        destroys=True,
        outside=True,
    ),
    agent_tool(
        "ha_agent_retry",
        "Retry a turn",
        "Send the message of a turn that has failed, or was cancelled or interrupted, once more. Returns the "
        "continuation_id of the new turn, as ha_agent_send_message does.",
        _retry,
        TurnNamed,
        Acknowledged,
        destroys=True,
        outside=True,
    ),
    agent_tool(
        "ha_agent_get_session",
        "Look at a session",
        "Show a session: its model, policy, budgets, what it remembers, what it has cost, and which of its "
        "turns are not over.",
        _get_session,
        SessionNamed,
        SessionShown,
        reads=True,
        repeats=True,
    ),
    agent_tool(
        "ha_agent_end_session",
        "End a session",
        "End a session when its conversation is over: it takes no more messages, and what runs in it is "
        "cancelled. What was said is kept.",
        _end_session,
        SessionToEnd,
        SessionOver,
        destroys=True,
        repeats=True,
    ),
)
