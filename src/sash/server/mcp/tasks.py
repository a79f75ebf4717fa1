"""MCP's extension Tasks: a turn is a task, and its continuation id is the task's.

A task that needs input is a turn that waits for a yes, to a call or to being resumed.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.errors import ContinuationFinal, NotAwaitingApproval, SessionBusy
from sash.server.mcp.errors import protocol_error
from sash.server.mcp.results import of_turn
from sash.server.mcp.waiting import to_the_end
from sash.values.requests import Approve

EXTENSION = "io.modelcontextprotocol/tasks"
REVISION = "2026-07-28"
TTL_MS = 86_400_000
POLL_MS = 500
# The name of the question whether an interrupted turn shall go on; the others have the names of their calls.
RESUME = "resume"

Context = ServerRequestContext[Any, Any]

_STATUS = {
    "awaiting_approval": "input_required",
    "interrupted": "input_required",
    "completed": "completed",
    "failed": "completed",
    "expired": "completed",
    "cancelled": "cancelled",
}


class TaskParams(t.RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers for a task that needs input."""

    input_responses: dict[str, Any]


def declared(ctx: Context) -> bool:
    """Whether who makes this request understands tasks."""
    capabilities = ctx.session.client_capabilities
    extensions = capabilities.extensions if capabilities else None
    return ctx.protocol_version == REVISION and EXTENSION in (extensions or {})


def created(turn: ContinuationShown) -> dict[str, Any]:
    """Return the result of a call that has become a task."""
    return {"resultType": "task", **_task(turn)}


class Tasks:
    """The requests about tasks."""

    def __init__(self, desk: AgentService, caller: Callable[[Context], Caller]) -> None:
        self._desk = desk
        self._caller = caller

    def install(self, server: Server[Any]) -> None:
        """Let a server have tasks."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", UpdateParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    async def get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Say where a task stands, and with which result."""
        turn = await self._find(ctx, params)
        task = _task(turn)
        if task["status"] == "completed":
            result = of_turn(turn)
            task["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        elif task["status"] == "input_required":
            task["inputRequests"] = _questions(turn)
        return task

    async def update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Take the answers that a task waits for; others are not for it."""
        turn, answers = await self._find(ctx, params), params.input_responses
        for call in turn.waiting_calls:
            if call.call_id in answers:
                approved = Approve(call_id=call.call_id, approved=_is_yes(answers[call.call_id]))
                await self._do(self._desk.approve(self._caller(ctx), turn.continuation_id, approved))
        if turn.status == "interrupted" and _is_yes(answers.get(RESUME)):
            await self._do(self._desk.resume(self._caller(ctx), turn.continuation_id))
        return {}

    async def cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """End a task; one that is over already stays as it is."""
        await self._find(ctx, params)
        with protocol_error():
            await to_the_end(self._desk.cancel(self._caller(ctx), params.task_id))
        return {}

    async def _find(self, ctx: Context, params: TaskParams) -> ContinuationShown:
        """Return the turn that a task is; who does not understand tasks is told so."""
        if ctx.protocol_version != REVISION:
            raise MCPError(t.METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not declared(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)
        _check_name(ctx, params.task_id)
        with protocol_error():
            return await self._desk.await_continuation(self._caller(ctx), params.task_id)

    async def _do(self, work: Coroutine[Any, Any, object]) -> None:
        somebody_else_was_first = suppress(NotAwaitingApproval, ContinuationFinal, SessionBusy)
        with protocol_error(), somebody_else_was_first:
            await to_the_end(work)


def _check_name(ctx: Context, task_id: str) -> None:
    """Refuse a header that names another task: a proxy may have let the request in by it."""
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(t.HEADER_MISMATCH, "the Mcp-Name header is not the taskId of the request")


def _task(turn: ContinuationShown) -> dict[str, Any]:
    task: dict[str, Any] = {
        "taskId": turn.continuation_id,
        "status": _STATUS.get(turn.status, "working"),
        "createdAt": _at(turn.created_at),
        "lastUpdatedAt": _at(turn.updated_at),
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_MS,
    }
    if turn.error is not None:
        task["statusMessage"] = turn.error.message
    elif task["status"] == "working":
        task["statusMessage"] = f"The turn is {turn.status}"
    return task


def _questions(turn: ContinuationShown) -> dict[str, Any]:
    """Return what a turn waits to be told, by the name of each answer."""
    if turn.status == "interrupted":
        return {
            RESUME: _question("The agent was interrupted. Shall it go on? What was done is not done again.")
        }
    return {
        call.call_id: _question(f"The agent wants to use {call.in_words} ({call.reason}). May it?")
        for call in turn.waiting_calls
    }


def _question(message: str) -> dict[str, Any]:
    """Return a question to the user that takes a yes or a no."""
    approved = {"type": "boolean", "title": "Yes", "description": "Whether it may."}
    schema = {"type": "object", "properties": {"approved": approved}, "required": ["approved"]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def _is_yes(answer: Any) -> bool:
    """Whether an answer is a yes; all that is not plainly one is a no."""
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return False
    content = answer.get("content")
    return isinstance(content, dict) and content.get("approved") is True


def _at(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
