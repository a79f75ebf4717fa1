"""The tools that the conformance suite needs for its scenarios about tasks. Each runs a turn of the agent."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sash.errors import ContextTooLong
from sash.ports.model import Delta, ModelRequest
from sash.server.mcp.agent_tool import agent_tool
from sash.server.mcp.tool import CallContext
from sash.testing import Line, ScriptedModel, calling
from sash.values.requests import Ask, SendMessage, StartSession
from sash.values.sessions import SessionPolicy
from tests.tools import tool

MAY_DELETE = SessionPolicy(
    allow_actuation=True, allowlisted_services=("delete",), require_confirmation=("delete",)
)
DELETE = tool("delete", lambda arguments, context: "deleted", action=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The arguments that the suite sends to its tools."""

    seconds: float = 0.0
    label: str = ""
    name: str = ""
    filename: str = ""
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Greeting:
    text: str


class ObedientModel:
    """A model that follows the words of the message: sleep, fail, delete."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        last = request.messages[-1]
        told = str(last["content"]) if last["role"] == "user" else ""
        if sleeps := re.search(r"sleep ([\d.]+)", told):
            await asyncio.sleep(float(sleeps[1]))
        line: Line = "done"
        if "fail" in told:
            line = ContextTooLong("it was told to fail")
        elif "delete" in told:
            line = calling("delete")
        async for delta in ScriptedModel(line).stream(request):
            yield delta


DESCRIPTION = "For the conformance suite."


@agent_tool("greet", "greet", DESCRIPTION)
async def greet(context: CallContext, job: Job) -> Greeting:
    return Greeting(f"Hello, {job.name}!")


@agent_tool("slow_compute", "slow_compute", DESCRIPTION, waits_for_turn=True)
async def compute_slowly(context: CallContext, job: Job) -> str:
    return await _ask(context, f"sleep {job.seconds}")


@agent_tool("failing_job", "failing_job", DESCRIPTION, waits_for_turn=True)
async def fail(context: CallContext, job: Job) -> str:
    return await _ask(context, "sleep 0.5 and fail")


@agent_tool("confirm_delete", "confirm_delete", DESCRIPTION, waits_for_turn=True)
async def delete(context: CallContext, job: Job) -> str:
    service, caller = context.service, context.caller
    started = await service.start_session(caller, StartSession(policy=MAY_DELETE))
    sent = await service.send_message(caller, started.id, SendMessage(message="delete it"))
    return sent.id


async def _ask(context: CallContext, message: str) -> str:
    return (await context.service.put_question(context.caller, Ask(message=message))).id


SUITED_TOOLS = (greet, compute_slowly, fail, delete)
