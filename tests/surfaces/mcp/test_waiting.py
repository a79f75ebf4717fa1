"""MCP: waiting for a turn, progress, and clients that disconnect."""

import asyncio

import pytest

from sash.server.mcp.turn_progress import WRITING
from sash.testing import calling
from tests.surfaces.serving import WAIT_S, WaitingModel, serving, until
from tests.surfaces.speaking import call, eras, rpc, talking, use
from tests.tools import tool


class Heard:
    """The progress messages that a client received, in the order of their numbers."""

    def __init__(self):
        self._heard = []

    async def __call__(self, number, total, message):
        self._heard.append((number, message))

    @property
    def numbers(self):
        return [number for number, _ in sorted(self._heard)]

    @property
    def messages(self):
        return [message for _, message in sorted(self._heard)]


@eras
async def test_a_wait_that_times_out_names_the_next_call(waiting, era):
    served, model = waiting
    async with talking(served.url, era) as mcp:
        answer = await call(mcp, "ha_agent_ask", message="How warm is it?", timeout_ms=20)
        assert answer["response"] is None and answer["status"] in ("running", "streaming")
        assert "ha_agent_await_continuation" in answer["to_do"]
        model.go.set()
        named = {"continuation_id": answer["continuation_id"]}
        answer = await call(mcp, "ha_agent_await_continuation", **named)
        assert answer["response"]["final_message"] == "Let me see what there is."
        session = (await call(mcp, "ha_agent_get_session", session_id=answer["session_id"]))["session"]
        assert session["status"] == "ended"


@eras
async def test_progress_is_reported_during_a_wait(tmp_path, era):
    def look(arguments, context):
        context.progress("Looking into the hall")
        return "fine"

    lines = (calling("look", room="hall"), "All is well.")
    async with (
        serving(tmp_path, *lines, tools=[tool("look", look)]) as served,
        talking(served.url, era) as mcp,
    ):
        # The client starts a task for each message, so a message may be noted after the answer.
        first, second = Heard(), Heard()
        asked = await mcp.call_tool("ha_agent_ask", {"message": "How is the hall?"}, progress_callback=first)
        named = {"continuation_id": asked.structured_content["continuation_id"]}
        await mcp.call_tool("ha_agent_await_continuation", named, progress_callback=second)
        await until(lambda: "look has answered" in first.messages and len(second.messages) == 2)
        await until(lambda: first.numbers == [*range(1, len(first.numbers) + 1)])
        assert second.messages == ["Calling look", "look has answered"]
    steps = [each for each in first.messages if each not in ("Looking into the hall", WRITING)]
    assert steps == ["Calling look", "look has answered"]


@eras
@pytest.mark.parametrize("by", ["ask", "await"])
async def test_a_client_that_wants_a_stream_gets_the_text(tmp_path, era, by):
    model, heard = WaitingModel(), Heard()
    async with serving(tmp_path, model=model) as served, talking(served.url, era) as mcp:
        if by == "ask":
            name, arguments = "ha_agent_ask", {"message": "How is the hall?"}
        else:
            sent = await served.send(await served.start(), "How is the hall?")
            name, arguments = "ha_agent_await_continuation", {"continuation_id": sent}
        calls = mcp.call_tool(name, arguments | {"stream": True}, progress_callback=heard)
        calling = asyncio.create_task(calls)
        await until(lambda: heard.messages == ["Let me see "], calling)
        model.go.set()
        await calling
    assert heard.messages[0] == "Let me see " and WRITING not in heard.messages


@eras
async def test_progress_in_a_long_session_covers_only_the_new_turn(tmp_path, era):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served, talking(served.url, era) as mcp:
        model.go.set()
        session_id = await served.start()
        for n in range(3):
            await served.wait(await served.send(session_id, str(n)))
        model.go.clear()
        model.asked.clear()
        sent = await served.send(session_id, "and now?")
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        read = []
        open_events = served.runtime.open_turn_events

        async def listen(continuation_id, **options):
            start, events = await open_events(continuation_id, **options)
            read.append(start)
            return start, events

        served.runtime.open_turn_events = listen

        async def progress(number, total, message):
            read.append(message)

        waits = asyncio.create_task(
            mcp.call_tool(
                "ha_agent_await_continuation", {"continuation_id": sent}, progress_callback=progress
            )
        )
        async with asyncio.timeout(WAIT_S):
            while len(read) < 2:
                await asyncio.sleep(0.01)
        model.go.set()
        await waits
        assert read == [3, WRITING]


@pytest.mark.parametrize("modern", [True, False])
async def test_a_question_is_answered_after_the_client_disconnects(waiting, modern):
    served, model = waiting
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    params = {"name": "ha_agent_ask", "arguments": {"message": "How warm is it?"}}
    if modern:
        asking = rpc(served, "tools/call", params, tasks=False)
    else:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        asking = served.client.post("/mcp", json=body, headers=headers)
    asking = asyncio.create_task(asking)
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    [session] = (await served.client.get("/v1/sessions")).json()["sessions"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    model.go.set()
    at = f"/v1/sessions/{session['id']}"
    async with asyncio.timeout(WAIT_S):
        while (await served.client.get(at)).json()["session"]["status"] != "ended":
            await asyncio.sleep(0.01)
    messages = (await served.client.get(f"{at}/messages")).json()["messages"]
    assert [message["content"] for message in messages] == ["How warm is it?", "Let me see what there is."]


async def test_a_message_is_stored_although_its_sender_disconnects(served):
    session_id = await served.start()
    send, begun, go = served.runtime.reply, asyncio.Event(), asyncio.Event()

    async def slowly(*args, **options):
        begun.set()
        await go.wait()
        return await send(*args, **options)

    served.runtime.reply = slowly
    sending = asyncio.create_task(
        use(served, "ha_agent_send_message", {"session_id": session_id, "message": "hi"})
    )
    await asyncio.wait_for(begun.wait(), WAIT_S)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    async with asyncio.timeout(WAIT_S):
        while 'route="/mcp",status="499"' not in (await served.client.get("/metrics")).text:
            await asyncio.sleep(0.01)
    go.set()
    async with asyncio.timeout(WAIT_S):
        while not (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]:
            await asyncio.sleep(0.01)
