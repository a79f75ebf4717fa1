"""`sash mcp` as a process: its output and its shutdown."""

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import pytest

from sash.stores.sqlite.store import SqliteStore
from tests.models.wire import Reply, Wire, chunk
from tests.surfaces.speaking import PROTOCOL, program

WAIT_S = 60
ABOUT = {f"{PROTOCOL}protocolVersion": "2026-07-28", f"{PROTOCOL}clientCapabilities": {}}


class Talk:
    """A running process, line by line."""

    def __init__(self, process):
        self.process = process
        self._count = 0

    async def ask(self, method, **params):
        """Send a request and return its response."""
        await self.say(method, **params)
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), WAIT_S))

    async def say(self, method, **params):
        self._count += 1
        body = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": {**params, "_meta": ABOUT}}
        self.process.stdin.write(json.dumps(body).encode() + b"\n")
        await self.process.stdin.drain()

    async def call(self, name, **arguments):
        answer = await self.ask("tools/call", name=name, arguments=arguments)
        return answer["result"]["structuredContent"]

    async def end(self):
        """Wait for the end. Return the exit code and the rest of both outputs."""
        said, complaint = await asyncio.wait_for(self.process.communicate(), WAIT_S)
        return self.process.returncode, said.decode(), complaint.decode()


@asynccontextmanager
async def running(folder, *options, **environment):
    start = program(folder, *options, **environment)
    process = await asyncio.create_subprocess_exec(
        start.command,
        *start.args,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **start.env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
    )
    try:
        yield Talk(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def wire():
    """A model provider that starts to answer and hangs."""
    async with Wire(Reply(chunks=[chunk("Let me")], then="hang")) as wire:
        yield wire


async def test_standard_output_carries_only_mcp_messages(tmp_path):
    async with running(tmp_path, SASH_LOG_LEVEL="debug") as sash:
        listed = await sash.ask("tools/list")
        assert listed["result"]["tools"][0]["name"] == "ha_agent_list_sessions"
        sash.process.stdin.write(b"this is no JSON \xff\n\n")
        assert "error" in json.loads(await asyncio.wait_for(sash.process.stdout.readline(), WAIT_S))
        asked = await sash.call("ha_agent_ask", message="Is the kitchen light on?")
        assert asked["status"] == "completed"
        sash.process.stdin.write_eof()
        code, said, complaint = await sash.end()
        assert (code, said) == (0, "")
        assert "DEBUG" in complaint and "Traceback" not in complaint


async def test_sigterm_marks_a_running_turn_as_interrupted(tmp_path, wire):
    options = {
        "SASH_MODEL": "m",
        "SASH_API_KEY": "k",
        "SASH_API_BASE": wire.url,
        "SASH_API_MODE": "chat",
        "SASH_HOME": "none",
    }
    async with running(tmp_path, **options) as sash:
        session_id = (await sash.call("ha_agent_start_session"))["session_id"]
        sent = await sash.call("ha_agent_send_message", session_id=session_id, message="Make a plan.")
        await sash.say(
            "tools/call",
            name="ha_agent_await_continuation",
            arguments={"continuation_id": sent["continuation_id"]},
        )
        async with asyncio.timeout(WAIT_S):
            while not wire.requests:
                await asyncio.sleep(0.01)
        sash.process.send_signal(signal.SIGTERM)
        code, said, complaint = await sash.end()
        assert (code, complaint) == (0, "")
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in said.splitlines())
    store = SqliteStore(tmp_path / "sash.db")
    await store.open()
    try:
        turn = await store.get_continuation("local", sent["continuation_id"])
        assert turn.status == "interrupted"
    finally:
        await store.close()


async def test_a_wrong_setting_is_explained_on_standard_error(tmp_path):
    async with running(tmp_path, "--store", "nonsense") as sash:
        code, said, complaint = await sash.end()
        assert (code, said) == (2, "")
        assert (
            complaint.startswith("error: --store must be sqlite, files or memory")
            and "Traceback" not in complaint
        )


async def test_a_malformed_line_gets_an_error_response(tmp_path):
    async with running(tmp_path, SASH_HOME="none") as sash:
        for line, request_id, code in (
            (b"hello", None, -32700),
            (b"\xff\xfe", None, -32700),
            (b"[" * 100_000, None, -32700),
            (b"{}", None, -32600),
            (b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]', None, -32600),
            (b'{"jsonrpc": "2.0", "id": 1}', 1, -32600),
            (b'{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": []}', "a", -32600),
        ):
            sash.process.stdin.write(line + b"\n")
            answer = json.loads(await asyncio.wait_for(sash.process.stdout.readline(), WAIT_S))
            assert (answer["id"], answer["error"]["code"]) == (request_id, code), line
        assert "result" in await sash.ask("tools/list")


async def test_an_unreadable_input_counts_as_ended(tmp_path):
    start = program(tmp_path, SASH_HOME="none")
    with (tmp_path / "out").open("wb") as only_written:
        process = await asyncio.create_subprocess_exec(
            start.command,
            *start.args,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **start.env},
            stdin=only_written,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, complaint = await asyncio.wait_for(process.communicate(), WAIT_S)
        finally:
            if process.returncode is None:
                process.kill()
    assert (process.returncode, said, complaint) == (0, b"", b"")


async def test_pending_responses_are_sent_after_the_input_ends(tmp_path):
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    ask = {"name": "ha_agent_ask", "arguments": {"message": "What time is it?"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask},
        {"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": "sash://sessions"}},
    ]
    said = "\n".join(map(json.dumps, lines)).encode()  # The last line has no line break.
    async with running(tmp_path, SASH_HOME="none") as sash:
        out, told = await asyncio.wait_for(sash.process.communicate(said), WAIT_S)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert answers[2]["result"]["structuredContent"]["status"] == "completed", told.decode()
    assert answers[3]["result"]["contents"]
    assert b"Traceback" not in told and sash.process.returncode == 0
