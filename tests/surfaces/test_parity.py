"""One scenario over every surface: start, send, stream, cancel, restart, resume. All results are equal."""

import asyncio
import json
import signal
import sys
from contextlib import aclosing, asynccontextmanager

import pytest

from sash import Runtime
from sash.app.settings import Settings
from sash.models.registry import create_model
from sash.stores.sqlite.store import SqliteStore
from tests.models.wire import Reply, Wire, chunk, said
from tests.surfaces.serving import WAIT_S, is_final, listen, serving, until
from tests.surfaces.speaking import call, talking

PROGRAM_S = 60
HANGING = Reply(chunks=[chunk("Let me")], then="hang")
ANSWER, AGAIN = "It is 21.5 °C in the kitchen.", "Here I am again."


@pytest.fixture
async def wire():
    """A model provider that answers, hangs twice, then answers."""
    async with Wire(said(ANSWER), HANGING, HANGING, said(AGAIN)) as wire:
        yield wire


def settings(wire):
    return {"model": "m", "api_key": "k", "api_base": wire.url, "api_mode": "chat", "home": "none"}


class ByRuntime:
    """The library."""

    def __init__(self, folder, wire):
        self._folder, self._wire = folder, wire

    @asynccontextmanager
    async def open(self):
        model = create_model(Settings(**settings(self._wire)))
        async with Runtime(SqliteStore(self._folder / "sash.db"), model) as self._runtime:
            yield

    async def start(self):
        return (await self._runtime.start_session()).id

    async def send(self, session_id, message):
        return (await self._runtime.send_message(session_id, message)).id

    async def wait(self, turn):
        result = await self._runtime.await_continuation(turn, timeout_s=WAIT_S)
        return result.status, result.response and result.response.final_message

    async def stands(self, turn):
        return (await self._runtime.await_continuation(turn, timeout_s=0)).status

    async def cancel(self, turn):
        return (await self._runtime.cancel(turn)).status

    async def resume(self, turn):
        await self._runtime.resume(turn)
        return await self.wait(turn)

    async def last_event(self, session_id):
        async with asyncio.timeout(WAIT_S), aclosing(self._runtime.events(session_id)) as events:
            async for event in events:
                if event.type == "final":
                    return event.payload["final_response"]["final_message"]
        return None

    async def transcript(self, session_id):
        found = await self._runtime.list_messages(session_id)
        return [(one.message.role, one.message.text) for one in found]


class ByRest:
    """HTTP."""

    def __init__(self, folder, wire):
        self._folder, self._wire = folder, wire

    @asynccontextmanager
    async def open(self):
        model = create_model(Settings(**settings(self._wire)))
        async with serving(self._folder, model=model, timeouts={"drain_s": 0.0}) as self._served:
            yield

    async def start(self):
        return await self._served.start()

    async def send(self, session_id, message):
        return await self._served.send(session_id, message)

    async def wait(self, turn):
        shown = await self._served.wait(turn)
        return shown["status"], shown["response"] and shown["response"]["final_message"]

    async def stands(self, turn):
        return (await self._served.client.get(f"/v1/continuations/{turn}")).json()["status"]

    async def cancel(self, turn):
        return (await self._served.client.post(f"/v1/continuations/{turn}/cancel")).json()["status"]

    async def resume(self, turn):
        await self._served.client.post(f"/v1/continuations/{turn}/resume")
        return await self.wait(turn)

    async def last_event(self, session_id):
        events = await listen(self._served.client, session_id, is_final)
        return events[-1]["data"]["payload"]["final_response"]["final_message"]

    async def transcript(self, session_id):
        listed = (await self._served.client.get(f"/v1/sessions/{session_id}/messages")).json()
        return [(one["role"], one["content"]) for one in listed["messages"]]


class ByMcp(ByRest):
    """MCP in its newest revision."""

    @asynccontextmanager
    async def open(self):
        async with super().open(), talking(self._served.url, "2026-07-28") as self._mcp:
            yield

    async def start(self):
        return (await call(self._mcp, "ha_agent_start_session"))["session_id"]

    async def send(self, session_id, message):
        sent = await call(self._mcp, "ha_agent_send_message", session_id=session_id, message=message)
        return sent["continuation_id"]

    async def wait(self, turn):
        shown = await call(self._mcp, "ha_agent_await_continuation", continuation_id=turn)
        return shown["status"], shown["response"] and shown["response"]["final_message"]

    async def stands(self, turn):
        shown = await call(self._mcp, "ha_agent_await_continuation", continuation_id=turn, timeout_ms=0)
        return shown["status"]

    async def cancel(self, turn):
        return (await call(self._mcp, "ha_agent_cancel", continuation_id=turn))["status"]

    async def resume(self, turn):
        shown = await call(self._mcp, "ha_agent_resume", continuation_id=turn)
        return shown["status"], shown["response"]["final_message"]

    async def transcript(self, session_id):
        read = await self._mcp.read_resource(f"sash://sessions/{session_id}")
        turns = json.loads(read.contents[0].text)["turns"]
        return [said for one in turns for said in (("user", one["user"]), ("assistant", one["agent"]))]


class ByCommandLine:
    """The command line: each command is a process on the same data."""

    def __init__(self, folder, wire):
        self._environment = {"HOME": str(folder), "SASH_DATA": str(folder / "data"), "COLUMNS": "200"}
        self._environment |= {f"SASH_{name.upper()}": value for name, value in settings(wire).items()}
        self._asking = None
        self._begun = []

    @asynccontextmanager
    async def open(self):
        try:
            yield
        finally:
            for program in self._begun:
                if program.returncode is None:
                    program.send_signal(signal.SIGKILL)
                    await program.communicate()
            self._asking, self._begun = None, []

    async def _begin(self, *arguments):
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sash", *arguments),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=self._environment,
        )
        self._begun.append(program)
        return program

    async def _run(self, *arguments):
        done = await self._begin(*arguments)
        out, told = await asyncio.wait_for(done.communicate(b""), PROGRAM_S)
        return out.decode(), told.decode()

    async def _show(self, what):
        return json.loads((await self._run("show", what, "--json"))[0])

    async def start(self):
        await self._run("chat", "--new")
        return json.loads((await self._run("sessions", "--json"))[0])["sessions"][0]["id"]

    async def send(self, session_id, message):
        self._asking = await self._begin("ask", "--session", session_id, message)
        async with asyncio.timeout(2 * PROGRAM_S):
            while True:
                shown = await self._show(session_id)
                if shown["open_continuations"]:
                    return shown["open_continuations"][0]
                if self._asking.returncode is not None or self._asking.stdout.at_eof():
                    return (await self._messages(session_id))[-1]["continuation_id"]

    async def wait(self, turn):
        if self._asking is not None:
            await asyncio.wait_for(self._asking.communicate(b""), PROGRAM_S)
        shown = await self._show(turn)
        return shown["status"], shown["response"] and shown["response"]["final_message"]

    async def stands(self, turn):
        return (await self._show(turn))["status"]

    async def cancel(self, turn):
        out, told = await self._run("cancel", turn)
        return "cancelled" if "cancelled" in (out + told).lower() else out + told

    async def resume(self, turn):
        out, _ = await self._run("resume", turn)
        return (await self.stands(turn)), out.strip()

    async def last_event(self, session_id):
        return (await self._messages(session_id))[-1]["content"]

    async def _messages(self, session_id):
        return json.loads((await self._run("show", session_id, "--messages", "50", "--json"))[0])["messages"]

    async def transcript(self, session_id):
        return [(one["role"], one["content"]) for one in await self._messages(session_id)]


@pytest.mark.parametrize("way", [ByRuntime, ByRest, ByMcp, ByCommandLine])
async def test_every_surface_behaves_the_same(tmp_path, wire, way):
    sash = way(tmp_path, wire)
    async with sash.open():
        session = await sash.start()
        first = await sash.send(session, "How warm is it?")
        assert await sash.wait(first) == ("completed", ANSWER)
        assert await sash.last_event(session) == ANSWER

        second = await sash.send(session, "Tell me a story")
        await asked(wire, 2)
        assert await sash.stands(second) in ("running", "streaming")
        assert await sash.cancel(second) == "cancelled"
        assert (await sash.wait(second))[0] == "cancelled"
        assert await sash.transcript(session) == [("user", "How warm is it?"), ("assistant", ANSWER)]

        third = await sash.send(session, "And now?")
        await asked(wire, 3)
    async with sash.open():
        assert await sash.stands(third) == "interrupted"
        assert await sash.resume(third) == ("completed", AGAIN)
        assert await sash.transcript(session) == [
            ("user", "How warm is it?"),
            ("assistant", ANSWER),
            ("user", "And now?"),
            ("assistant", AGAIN),
        ]


async def asked(wire, times):
    """Wait until the model was called `times` times."""
    await until(lambda: len(wire.requests) >= times)
