"""Server-sent events over a real socket: every event exactly once, also after reconnects."""

import asyncio
import socket
from contextlib import aclosing
from pathlib import Path

import pytest

from sash.testing import calling
from tests.surfaces.serving import WAIT_S, WaitingModel, is_final, listen, problem, serving, until
from tests.tools import tool


@pytest.fixture
async def served(tmp_path):
    look = tool("look", lambda a, c: "fine")
    async with serving(tmp_path, calling("look", room="hall"), "All is well.", tools=[look]) as served:
        yield served


async def test_a_turn_is_streamed_as_it_happens(served):
    session_id = await served.start()
    sent = await served.send(session_id, "how is the hall?", stream=True)
    events = await listen(served.client, session_id, is_final)
    assert events[0] == {"id": "0"}
    durable = [e for e in events[1:] if "id" in e]
    assert [e["event"] for e in durable] == ["step", "step", "step", "final"]
    assert [e["id"] for e in durable] == ["1", "2", "3", "4"]
    for event in events[1:]:
        assert event["data"].keys() == {"type", "session_id", "continuation_id", "payload"}
        assert event["data"]["type"] == event["event"]
        assert (event["data"]["session_id"], event["data"]["continuation_id"]) == (session_id, sent)
    assert durable[1]["data"]["payload"]["step"]["type"] == "tool_call"
    assert durable[-1]["data"]["payload"]["final_response"]["final_message"] == "All is well."


async def test_partial_text_is_streamed(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        session_id = await served.start()
        await served.send(session_id)
        events = await listen(served.client, session_id, lambda e: e.get("event") == "partial")
        assert events[-1]["data"]["payload"] == {"partial_response": "Let me see "}
        assert "id" not in events[-1]
        model.go.set()


async def test_a_client_that_reconnects_receives_every_later_event_once(served):
    session_id = await served.start()
    for n in range(3):
        await served.wait(await served.send(session_id, str(n)))
    everything = [
        e for e in await listen(served.client, session_id, lambda e: e.get("id") == "6") if "data" in e
    ]
    assert [e["id"] for e in everything] == ["1", "2", "3", "4", "5", "6"]
    for n, last in enumerate(everything[:-1], 1):
        for how in ({"headers": {"Last-Event-ID": last["id"]}}, {"params": {"after": last["id"]}}):
            rest = await listen(served.client, session_id, lambda e: e.get("id") == "6", **how)
            assert rest == [{"id": last["id"]}, *everything[n:]]


async def test_the_header_wins_over_the_parameter(served):
    """A reconnecting browser sends the header, and keeps the `after` of its first URL."""
    session_id = await served.start()
    for n in range(3):
        await served.wait(await served.send(session_id, str(n)))
    events = await listen(
        served.client,
        session_id,
        lambda e: e.get("id") == "6",
        params={"after": 1},
        headers={"Last-Event-ID": "5"},
    )
    assert [e["id"] for e in events] == ["5", "6"]


async def test_the_headers_disable_buffering_and_caching(served):
    session_id = await served.start()
    async with served.client.stream("GET", f"/events/{session_id}") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.headers["cache-control"] == "no-store"


async def test_a_stream_ends_with_its_session(served):
    session_id = await served.start()
    listening = asyncio.create_task(listen(served.client, session_id, lambda e: False))
    await until(served.runtime.count_subscribers, listening)
    await served.client.post(f"/v1/sessions/{session_id}/end")
    assert await asyncio.wait_for(listening, WAIT_S) == [{"id": "0"}]


async def test_a_heartbeat_keeps_an_idle_stream_alive(tmp_path):
    async with serving(tmp_path, timeouts={"heartbeat_s": 0.05}) as served:
        session_id = await served.start()
        async with (
            asyncio.timeout(WAIT_S),
            served.client.stream("GET", f"/events/{session_id}") as stream,
            aclosing(stream.aiter_lines()) as lines,
        ):
            async for line in lines:
                if line.startswith(":"):
                    return
        pytest.fail("no heartbeat")


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "99999999999999999999", "٣"])
async def test_an_invalid_cursor_is_refused(served, cursor):
    session_id = await served.start()
    asked = await served.client.get(f"/events/{session_id}", params={"after": cursor})
    problem(asked, 422, "invalid_input")
    asked = await served.client.get(f"/events/{session_id}", headers={"Last-Event-ID": cursor.encode()})
    problem(asked, 422, "invalid_input")


async def test_a_cursor_beyond_the_last_event_is_refused(served):
    """A client has such a cursor if the server was restored from a backup."""
    session_id = await served.start()
    told = problem(await served.client.get(f"/events/{session_id}?after=5"), 409, "cursor_unknown")
    assert told["last_cursor"] == 0
    await served.wait(await served.send(session_id))
    [*_, last] = await listen(served.client, session_id, is_final)
    beyond = str(int(last["id"]) + 1)
    for how in ({"headers": {"Last-Event-ID": beyond}}, {"params": {"after": beyond}}):
        told = problem(await served.client.get(f"/events/{session_id}", **how), 409, "cursor_unknown")
        assert told["last_cursor"] == int(last["id"])


async def test_events_of_a_missing_session_are_not_found(served):
    problem(await served.client.get("/events/none"), 404, "session_not_found")


async def test_the_number_of_subscribers_is_limited(tmp_path):
    async with serving(tmp_path, max_subscribers=1) as served:
        session_id = await served.start()
        async with (
            served.client.stream("GET", f"/events/{session_id}") as first,
            aclosing(first.aiter_lines()) as lines,
        ):
            await anext(lines)
            refused = await served.client.get(f"/events/{session_id}")
            problem(refused, 429, "too_many_subscribers")
        async with asyncio.timeout(WAIT_S):
            while (await _status(served, session_id)) != 200:
                await asyncio.sleep(0.01)


async def test_concurrent_subscribers_do_not_exceed_the_limit(tmp_path):
    async with serving(tmp_path, max_subscribers=3) as served:
        session_id = await served.start()
        held = asyncio.Event()

        async def subscribe():
            async with served.client.stream("GET", f"/events/{session_id}") as stream:
                statuses.append(stream.status_code)
                if stream.status_code == 200:
                    await held.wait()

        statuses: list[int] = []
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(subscribe())
            while len(statuses) < 20:
                await asyncio.sleep(0.01)
            held.set()
        assert sorted(statuses) == [200] * 3 + [429] * 17


async def _status(served, session_id):
    async with served.client.stream("GET", f"/events/{session_id}") as stream:
        return stream.status_code


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has TCP_USER_TIMEOUT")
async def test_a_client_that_reads_nothing_is_disconnected(tmp_path):
    timeouts = {"unread_ms": 500, "event_send_s": 0.2}
    async with serving(tmp_path, lambda request: "word " * 40_000, timeouts=timeouts) as served:
        session_id = await served.start()
        host, port = served.url.removeprefix("http://").split(":")
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            reader.connect((host, int(port)))
            reader.sendall(f"GET /events/{session_id} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            theirs = f":{int(port):04X} 0100007F:{reader.getsockname()[1]:04X} "
            assert theirs in Path("/proc/net/tcp").read_text()
            await served.wait(await served.send(session_id))
            async with asyncio.timeout(WAIT_S):
                while theirs in Path("/proc/net/tcp").read_text():
                    await asyncio.sleep(0.05)


async def test_a_client_that_reads_nothing_does_not_slow_turns(tmp_path):
    long = "word " * 20_000
    async with serving(tmp_path, lambda request: long) as served:
        session_id = await served.start()
        host, port = served.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1)
        writer.write(f"GET /events/{session_id} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await writer.drain()
        for n in range(20):
            assert (await served.wait(await served.send(session_id, str(n))))["status"] == "completed"
        events = await listen(served.client, session_id, lambda e: e.get("id") == "20")
        assert len([e for e in events if "data" in e and "id" in e]) == 20
        writer.close()
