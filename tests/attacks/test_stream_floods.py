"""One owner cannot take the event streams of all others."""

import asyncio
from contextlib import AsyncExitStack, aclosing

import pytest

from tests.surfaces.serving import WAIT_S, WaitingModel, frames, problem, serving, until


async def test_one_owner_cannot_open_every_stream(tmp_path):
    async with (
        serving(tmp_path, max_subscribers=3, max_subscribers_per_owner=2) as served,
        AsyncExitStack() as open_streams,
        asyncio.timeout(WAIT_S),
    ):
        greedy, victim = served.token("greedy"), served.token("victim")

        async def start(headers):
            started = await served.client.post("/v1/sessions", headers=headers)
            return f"/events/{started.json()['session_id']}"

        async def hold(path, headers):
            stream = await open_streams.enter_async_context(
                served.client.stream("GET", path, headers=headers)
            )
            lines = await open_streams.enter_async_context(aclosing(stream.aiter_lines()))
            await anext(lines)
            return stream.status_code

        path = await start(greedy)
        assert [await hold(path, greedy), await hold(path, greedy)] == [200, 200]
        refused = await served.client.get(path, headers=greedy)
        assert problem(refused, 429, "too_many_subscribers")["limit"] == 2
        assert refused.headers["retry-after"] == "2"
        assert await hold(await start(victim), victim) == 200
        refused = await served.client.get(await start(victim), headers=victim)
        assert problem(refused, 429, "too_many_subscribers")["limit"] == 3


@pytest.mark.parametrize("path", ["/v1/ask", "/conversation", "/v1/sessions/{}/messages"])
async def test_a_refused_stream_has_started_no_turn(tmp_path, path):
    """Requests that arrive together all pass a check that comes before the turns start."""
    model = WaitingModel()
    async with (
        asyncio.timeout(WAIT_S),
        serving(tmp_path, model=model, max_subscribers_per_owner=2) as served,
    ):
        statuses, session_ids = [], [await served.start() for _ in range(10)]

        async def send(session_id):
            body = {"text": "hello"} if path == "/conversation" else {"message": "hello"}
            headers = {"Accept": "text/event-stream"}
            request = served.client.stream("POST", path.format(session_id), json=body, headers=headers)
            async with request as stream:
                statuses.append(stream.status_code)
                if stream.status_code == 200:
                    return [frame async for frame in frames(stream)][-1]["event"]
                return problem(await _read(stream), 429, "too_many_subscribers")["code"]

        sending = [asyncio.create_task(send(session_id)) for session_id in session_ids]
        await until(lambda: len(statuses) == len(session_ids))
        assert sorted(statuses) == [200] * 2 + [429] * 8
        assert served.runtime.running_turns == 2
        model.go.set()
        assert sorted(await asyncio.gather(*sending)) == ["final"] * 2 + ["too_many_subscribers"] * 8
        # A stream that failed to start has left its place.
        missing = await served.client.post(
            "/v1/sessions/01KA3V8Q6Z4T6P8C1YB8J7W0AE/messages",
            json={"message": "hello"},
            headers={"Accept": "text/event-stream"},
        )
        problem(missing, 404, "session_not_found")
        statuses.clear()
        assert await send(await served.start()) == "final"


async def _read(stream):
    await stream.aread()
    return stream
