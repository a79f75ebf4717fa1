"""The tools that the conformance suite wants for its scenarios about tasks, each a turn of the real agent."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sash.errors import ContextTooLong
from sash.ports.model import Delta, ModelRequest
from sash.server.mcp.shapes import Awaited
from sash.server.mcp.tools import Tool, Visit, agent_tool
from sash.testing import Line, ScriptedModel, calling
from sash.values.requests import Ask, SendMessage, StartSession
from sash.values.sessions import SessionPolicy
from tests.runtime.test_turns import tool

MAY_DELETE = SessionPolicy(
    allow_actuation=True, allowlisted_services=("delete",), require_confirmation=("delete",)
)
DELETE = tool("delete", lambda arguments, context: "deleted", action=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the suite says to its tools."""

    seconds: float = 0.0
    label: str = ""
    name: str = ""
    filename: str = ""
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Greeting:
    text: str


class Suited:
    """A model that does as it is told: sleep, fail, delete."""

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


async def _greet(visit: Visit, job: Job) -> Greeting:
    return Greeting(f"Hello, {job.name}!")


async def _sleep(visit: Visit, job: Job) -> str:
    return (await visit.desk.put_question(visit.caller, Ask(message=f"sleep {job.seconds}"))).continuation_id


async def _fail(visit: Visit, job: Job) -> str:
    return (await visit.desk.put_question(visit.caller, Ask(message="sleep 0.5 and fail"))).continuation_id


async def _delete(visit: Visit, job: Job) -> str:
    started = await visit.desk.start_session(visit.caller, StartSession(policy=MAY_DELETE))
    sent = await visit.desk.send_message(visit.caller, started.session_id, SendMessage(message="delete it"))
    return sent.continuation_id


def _suited(name: str, run: Any, gives: type = Awaited, *, waits: bool = True) -> Tool:
    return agent_tool(name, name, "For the conformance suite.", run, Job, gives, waits=waits)


SUITED_TOOLS = (
    _suited("greet", _greet, Greeting, waits=False),
    _suited("slow_compute", _sleep),
    _suited("failing_job", _fail),
    _suited("confirm_delete", _delete),
)
