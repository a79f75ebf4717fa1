"""Many small requests and turns of one owner do not delay those of another owner.

The tests count rounds of the event loop: in a round, everything that is ready runs once. A victim's turn
needs a number of rounds, so an owner must not make each round longer by sending more.
"""

import asyncio
from contextlib import suppress

import httpx
import pytest

from sash import MemoryStore, Runtime
from sash.app.owner_shares import SHARES, OwnerShares
from sash.engine.owner_pacing import SHARED_S, SHORT_ROUND_S, OwnerPacing
from sash.errors import TooManyRequests
from sash.testing import ScriptedModel
from tests.surfaces.serving import WAIT_S, problem, serving


class RoundCounter:
    """Counts the rounds of the event loop while it runs."""

    def __init__(self) -> None:
        self.rounds = 0
        self._task = asyncio.create_task(self._count())

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.rounds += 1

    def stop(self) -> None:
        self._task.cancel()


async def share(pacing):
    """Let two owners work, so that the pacing is on."""
    for owner in ("one", "two"):
        await pacing.wait(owner)
        await asyncio.sleep(0)
    return pacing


async def test_the_only_owner_is_not_paced():
    now = 0.0
    pacing, counter = OwnerPacing(now=lambda: now), RoundCounter()
    await share(pacing)
    now = 2 * SHARED_S
    await asyncio.gather(*(pacing.wait("two") for _ in range(50)))
    assert counter.rounds <= 5
    counter.stop()


async def test_one_piece_of_work_of_an_owner_starts_in_a_round():
    pacing, counter, started = await share(OwnerPacing(now=lambda: 0.0)), RoundCounter(), []

    async def work(owner):
        await pacing.wait(owner)
        started.append((owner, counter.rounds))

    await asyncio.gather(*(work("greedy") for _ in range(50)), work("victim"))
    counter.stop()
    rounds = [n for owner, n in started if owner == "greedy"]
    assert len(set(rounds)) == len(rounds) == 50
    assert ("victim", 0) in started


async def test_after_a_long_round_the_next_work_waits_as_long():
    now = 0.0
    pacing, started = await share(OwnerPacing(now=lambda: now)), []
    delays = []
    loop = asyncio.get_running_loop()

    async def work(n):
        nonlocal now
        await pacing.wait("greedy")
        started.append(n)
        now += 10 * SHORT_ROUND_S if n == 0 else 0.0

    original = loop.call_later

    def call_later(delay, *arguments):
        delays.append(delay)
        return original(0, *arguments)

    loop.call_later = call_later
    try:
        await asyncio.gather(*(work(n) for n in range(3)))
    finally:
        del loop.call_later
    assert started == [0, 1, 2]
    assert delays == [10 * SHORT_ROUND_S]


async def test_a_cancelled_request_does_not_hold_back_the_next():
    pacing = await share(OwnerPacing(now=lambda: 0.0))
    await pacing.wait("ann")
    cancelled, next_one = (asyncio.create_task(pacing.wait("ann")) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(WAIT_S):
        await next_one


async def test_closed_pacing_lets_all_work_go_on_and_leaves_no_timer():
    now, timers = 0.0, []
    pacing, loop = await share(OwnerPacing(now=lambda: now)), asyncio.get_running_loop()
    await pacing.wait("busy")
    waiting = asyncio.create_task(pacing.wait("busy"))
    now = 3600.0
    call_later = loop.call_later
    loop.call_later = lambda *args: timers.append(call_later(*args)) or timers[-1]
    try:
        for _ in range(3):
            await asyncio.sleep(0)
        pacing.close()
        await asyncio.wait_for(waiting, WAIT_S)
    finally:
        del loop.call_later
    [timer, *_] = timers
    assert timer.cancelled()
    await pacing.wait("busy")


def test_pacing_works_in_another_event_loop():
    pacing = OwnerPacing()
    for _ in range(2):
        asyncio.run(asyncio.wait_for(pacing.wait("ann"), WAIT_S))


async def test_many_turns_of_an_owner_do_not_go_on_in_the_same_round():
    counter, asked = RoundCounter(), []

    def answer(request):
        asked.append(counter.rounds)
        return "ok"

    async with Runtime(MemoryStore(), ScriptedModel(answer)) as runtime:
        other = await runtime.start_session(owner="other")
        turn = await runtime.send_message(other.id, "hi", owner="other")
        await runtime.await_continuation(turn.id, owner="other", timeout_s=WAIT_S)
        asked.clear()
        sessions = [await runtime.start_session(owner="greedy") for _ in range(30)]
        sent = await asyncio.gather(*(runtime.send_message(s.id, "hi", owner="greedy") for s in sessions))
        for turn in sent:
            await runtime.await_continuation(turn.id, owner="greedy", timeout_s=WAIT_S)
    counter.stop()
    assert len(asked) == len(set(asked)) == 30


async def test_requests_past_the_share_wait_and_long_waits_take_no_place():
    shares, running, gate = OwnerShares(), 0, asyncio.Event()

    async def request():
        nonlocal running
        with await shares.take_place("ann"):
            running += 1
            await gate.wait()
            running -= 1

    async def long_poll(is_over):
        with await shares.take_place("bob"):
            await shares.run_aside("bob", is_over.wait)

    async with asyncio.timeout(WAIT_S):
        requests = [asyncio.create_task(request()) for _ in range(100)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert running == SHARES["request"].running
        gate.set()
        await asyncio.gather(*requests)
        is_over = asyncio.Event()
        polls = [asyncio.create_task(long_poll(is_over)) for _ in range(100)]
        for _ in range(5):
            await asyncio.sleep(0)
        with await shares.take_place("bob"):  # The waiting ones leave places free.
            is_over.set()
        await asyncio.gather(*polls)


async def test_a_wait_that_outlives_its_request_takes_no_place():
    shares, is_over = OwnerShares(), asyncio.Event()
    with await shares.take_place("ann"):
        orphan = asyncio.create_task(shares.run_aside("ann", is_over.wait))
        await asyncio.sleep(0)
    is_over.set()
    await orphan
    places = [await shares.take_place("ann") for _ in range(SHARES["request"].running)]
    assert len(places) == SHARES["request"].running


async def test_long_waits_of_an_owner_are_bounded():
    shares, is_over = OwnerShares(), asyncio.Event()
    waits = [
        asyncio.create_task(shares.run_aside("ann", is_over.wait)) for _ in range(SHARES["wait"].running)
    ]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await shares.run_aside("ann", is_over.wait)
    is_over.set()
    await asyncio.gather(*waits)


async def test_bodies_of_medium_size_use_the_share_of_uploads(tmp_path):
    """Hundreds of half-sent bodies would otherwise fill the memory, and all be parsed in the same moment."""
    async with serving(tmp_path) as served, asyncio.timeout(WAIT_S):
        headers = served.token("greedy")
        host, port = served.url.removeprefix("http://").split(":")
        head = f"POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: {headers['Authorization']}\r\nContent-Length: 100000\r\n\r\n"
        share, writers = SHARES["upload"], []
        for _ in range(share.running + share.waiting):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(head.encode() + b'{"name":')
            writers.append(writer)
        body = {"preferences": {"text": "x" * 50_000}}
        refused = None
        while refused is None or refused.status_code != 429:  # The server may not have read all heads yet.
            with suppress(httpx.TimeoutException):
                refused = await served.client.post("/v1/sessions", json=body, headers=headers, timeout=1)
        problem(refused, 429, "too_many_requests")
        started = await served.client.post("/v1/sessions", json={}, headers=headers)
        assert started.status_code == 201
        for writer in writers:
            writer.close()
