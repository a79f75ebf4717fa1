"""MCP's Tasks extension: a turn is a task, and the task id is the continuation id.

A task that needs input is a turn that waits for an approval, or that was interrupted and can be resumed.
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
from sash.server.mcp.rpc_errors import raise_as_rpc_error
from sash.server.mcp.tool import finish
from sash.server.mcp.tool_results import make_turn_result
from sash.values.requests import Approve

EXTENSION = "io.modelcontextprotocol/tasks"
REVISION = "2026-07-28"
TTL_MS = 86_400_000
POLL_MS = 500
# The key of the question whether to resume a turn. The key of an approval question is its call id.
RESUME = "resume"

Context = ServerRequestContext[Any, Any]

_TASK_STATUS = {
    "awaiting_approval": "input_required",
    "interrupted": "input_required",
    "completed": "completed",
    "failed": "completed",
    "expired": "completed",
    "cancelled": "cancelled",
}


class TaskParams(t.RequestParams):
    """The id of a task."""

    task_id: str


class UpdateParams(TaskParams):
    """The answers for a task that needs input."""

    input_responses: dict[str, Any]


def supports_tasks(ctx: Context) -> bool:
    """Return True if the client declares the Tasks extension."""
    capabilities = ctx.session.client_capabilities
    extensions = capabilities.extensions if capabilities else None
    return ctx.protocol_version == REVISION and EXTENSION in (extensions or {})


def make_created_task(turn: ContinuationShown) -> dict[str, Any]:
    """Return the result of a tool call that continues as a task."""
    return {"resultType": "task", **_make_task(turn)}


class TaskHandlers:
    """Handles the requests about tasks."""

    def __init__(self, service: AgentService, get_caller: Callable[[Context], Caller]) -> None:
        self._service = service
        self._get_caller = get_caller

    def install(self, server: Server[Any]) -> None:
        """Add the Tasks extension to a server."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", UpdateParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    async def get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Return the state of a task, with its result or its questions."""
        turn = await self._find_turn(ctx, params)
        task = _make_task(turn)
        if task["status"] == "completed":
            result = make_turn_result(turn)
            task["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        elif task["status"] == "input_required":
            task["inputRequests"] = _make_questions(turn)
        return task

    async def update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Apply the answers that a task waits for. Other answers are ignored."""
        turn, answers = await self._find_turn(ctx, params), params.input_responses
        for call in turn.waiting_calls:
            if call.call_id in answers:
                approved = Approve(call_id=call.call_id, approved=_is_approved(answers[call.call_id]))
                await self._finish_unless_done(
                    self._service.approve(self._get_caller(ctx), turn.continuation_id, approved)
                )
        if turn.status == "interrupted" and _is_approved(answers.get(RESUME)):
            await self._finish_unless_done(self._service.resume(self._get_caller(ctx), turn.continuation_id))
        return {}

    async def cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Cancel a task. A task that has ended does not change."""
        await self._find_turn(ctx, params)
        await self._finish_unless_done(self._service.cancel(self._get_caller(ctx), params.task_id))
        return {}

    async def _find_turn(self, ctx: Context, params: TaskParams) -> ContinuationShown:
        """Return the turn of a task. Raise `MCPError` if it is unknown, or the client lacks the extension."""
        if ctx.protocol_version != REVISION:
            raise MCPError(t.METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not supports_tasks(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)
        _check_name_header(ctx, params.task_id)
        with raise_as_rpc_error():
            turn = await self._service.await_continuation(self._get_caller(ctx), params.task_id)
        return ContinuationShown.of(turn)

    async def _finish_unless_done(self, work: Coroutine[Any, Any, object]) -> None:
        """Apply an answer or a cancellation. Ignore it if another client was first, or the turn has ended."""
        with raise_as_rpc_error(), suppress(NotAwaitingApproval, ContinuationFinal, SessionBusy):
            await finish(work)


def _check_name_header(ctx: Context, task_id: str) -> None:
    """Raise `MCPError` if the header names another task: a proxy may have authorized that one only."""
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(t.HEADER_MISMATCH, "the Mcp-Name header is not the taskId of the request")


def _make_task(turn: ContinuationShown) -> dict[str, Any]:
    task: dict[str, Any] = {
        "taskId": turn.continuation_id,
        "status": _TASK_STATUS.get(turn.status, "working"),
        "createdAt": _format_time(turn.created_at),
        "lastUpdatedAt": _format_time(turn.updated_at),
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_MS,
    }
    if turn.error is not None:
        task["statusMessage"] = turn.error.message
    elif task["status"] == "working":
        task["statusMessage"] = f"The turn is {turn.status}"
    return task


def _make_questions(turn: ContinuationShown) -> dict[str, Any]:
    """Return the questions of a turn to the user. The key of a question is the key of its answer."""
    if turn.status == "interrupted":
        return {
            RESUME: _make_question(
                "The agent was interrupted. Shall it continue? Finished steps are not repeated."
            )
        }
    return {
        call.call_id: _make_question(
            call.question, f"Whether the agent may do it. Why it is asked: {call.reason}."
        )
        for call in turn.waiting_calls
    }


def _make_question(message: str, meaning: str = "Whether the agent may do it.") -> dict[str, Any]:
    """Return a request to the client, in the form of MCP's elicitation, to answer yes or no."""
    approved = {"type": "boolean", "title": "Yes", "description": meaning}
    schema = {"type": "object", "properties": {"approved": approved}, "required": ["approved"]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def _is_approved(answer: Any) -> bool:
    """Return True only for an explicit approval; every other answer denies."""
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return False
    content = answer.get("content")
    return isinstance(content, dict) and content.get("approved") is True


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
