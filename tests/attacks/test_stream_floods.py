"""One owner cannot take the event streams of all others."""

import asyncio
from contextlib import AsyncExitStack, aclosing

from tests.surfaces.serving import WAIT_S, problem, serving


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
