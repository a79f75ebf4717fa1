"""Events: stored ones by cursor, without gaps or duplicates; partial text whole for late subscribers."""

import asyncio
from contextlib import aclosing

import pytest

from sash.errors import ShuttingDown
from sash.ports.model import Model, TextDelta
from sash.testing import calling
from tests.runtime.talk import WAIT_S, subscribed, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


@pytest.mark.parametrize("end", ["erase", "end", "close"])
async def test_who_listens_is_told_that_it_is_over(run, end):
    runtime = await run("ok")
    session = await runtime.start_session()
    await turn(runtime, session)

    async def listen():
        return [event async for event in runtime.events(session.id)]

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(WAIT_S):
        while not runtime.count_subscribers(session.id):
            await asyncio.sleep(0)
        await {
            "erase": runtime.erase,
            "end": lambda: runtime.end_session(session.id),
            "close": runtime.close,
        }[end]()
        await listening


async def test_who_listens_is_told_of_a_turn_that_is_put_down(run):
    model = WaitingModel("never said")
    runtime = await run(model=model)
    session = await runtime.start_session()
    heard = asyncio.create_task(_all_events(runtime, session))
    await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.drain()
    [event] = await asyncio.wait_for(heard, WAIT_S)
    assert event.payload["step"]["detail"]["event"] == "interrupted"
    with pytest.raises(ShuttingDown):
        await runtime.record_turn(session.id, "late", "too late")


async def _all_events(runtime, session):
    return [event async for event in runtime.events(session.id)]


async def collect(runtime, session, until, after=0, seen=None):
    events = [] if seen is None else seen
    async with asyncio.timeout(WAIT_S), aclosing(runtime.events(session.id, after=after)) as stream:
        async for event in stream:
            events.append(event)
            if until(event):
                return events
    return events


def is_final(event):
    return event.type == "final"


async def test_a_subscriber_sees_the_turn_as_it_happens(run):
    runtime = await run(
        calling("look", room="hall"), "All is well.", tools=[tool("look", lambda a, c: "fine")]
    )
    session = await runtime.start_session()
    listening = asyncio.create_task(collect(runtime, session, is_final))
    await subscribed(runtime, session)
    sent = await runtime.send_message(session.id, "how is the hall?")
    events = await listening
    durable = [e for e in events if e.cursor is not None]
    assert [e.type for e in durable] == ["step", "step", "step", "final"]
    assert [e.cursor for e in durable] == [1, 2, 3, 4]
    assert {e.continuation_id for e in events} == {sent.id}
    assert durable[-1].payload["final_response"]["final_message"] == "All is well."
    assert "Calling look" in [e.payload.get("message") for e in events if e.type == "progress"]


async def test_a_late_subscriber_gets_everything_behind_its_cursor_once(run):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    for n in range(3):
        await turn(runtime, session, str(n))
    everything = await collect(runtime, session, lambda e: e.cursor == 3)
    assert [e.cursor for e in everything] == [1, 2, 3]
    rest = await collect(runtime, session, lambda e: e.cursor == 3, after=1)
    assert [e.cursor for e in rest] == [2, 3]


async def test_events_of_many_turns_reach_many_subscribers_without_gap_or_double(run):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    listeners = [asyncio.create_task(collect(runtime, session, lambda e: e.cursor == 20)) for _ in range(10)]
    for n in range(20):
        await turn(runtime, session, str(n))
    for events in await asyncio.gather(*listeners):
        assert [e.cursor for e in events if e.cursor] == list(range(1, 21))


async def test_partial_text_is_whole_for_who_joins_late(run):
    gate, halfway = asyncio.Event(), asyncio.Event()

    class Slow(Model):
        async def stream(self, request):
            yield TextDelta("Voltage dips ")
            yield TextDelta("were detected ")
            halfway.set()
            await gate.wait()
            yield TextDelta("last night.")

    runtime = await run(model=Slow())
    session = await runtime.start_session()
    early: list = []
    begun = asyncio.Event()

    def until(event):
        if event.type == "partial":
            begun.set()
        return is_final(event)

    listening = asyncio.create_task(collect(runtime, session, until, seen=early))
    await subscribed(runtime, session)
    sent = await runtime.send_message(session.id, "why?")
    await asyncio.wait_for(halfway.wait(), WAIT_S)
    late = await collect(runtime, session, lambda e: e.type == "partial")
    assert late[-1].payload == {"partial_response": "Voltage dips were detected "}
    assert (await runtime.await_continuation(sent.id, timeout_s=0)).status == "streaming"
    await asyncio.wait_for(begun.wait(), WAIT_S)
    gate.set()
    await listening
    assert "".join(e.payload["partial_response"] for e in early if e.type == "partial").startswith(
        "Voltage dips "
    )
    assert early[-1].payload["final_response"]["final_message"] == "Voltage dips were detected last night."


async def test_a_slow_subscriber_slows_nobody_and_misses_nothing(run):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    stream = runtime.events(session.id)
    first = asyncio.create_task(anext(stream))
    await subscribed(runtime, session)
    for n in range(150):
        assert (await turn(runtime, session, str(n))).status == "completed"
    events = [await first]
    while events[-1].cursor != 150:
        events.append(await asyncio.wait_for(anext(stream), WAIT_S))
    await stream.aclose()
    assert [event.cursor for event in events if event.cursor] == list(range(1, 151))


async def test_nothing_stays_behind_when_subscribers_and_turns_are_gone(run):
    runtime = await run(lambda request: "some words here")
    session = await runtime.start_session()
    listening = asyncio.create_task(collect(runtime, session, is_final))
    await subscribed(runtime, session)
    await turn(runtime, session)
    await listening
    assert runtime.count_subscribers() == 0
    assert runtime.running_turns == 0


async def test_events_are_not_doubled_in_a_session_whose_old_steps_were_dropped(run, clock):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    for n in range(5):
        await turn(runtime, session, str(n))
    clock.advance(90_000)
    await runtime.sweep()
    for n in range(3):
        await turn(runtime, session, str(n))
    whole = await collect(runtime, session, lambda e: e.cursor == 8)
    assert [e.cursor for e in whole] == [6, 7, 8]

    async def from_each_end():
        return await asyncio.gather(
            collect(runtime, session, lambda e: e.cursor == 9),
            collect(runtime, session, lambda e: e.cursor == 9, after=2),
            collect(runtime, session, lambda e: e.cursor == 9, after=7),
        )

    reading = asyncio.create_task(from_each_end())
    await subscribed(runtime, session, 3)
    await turn(runtime, session, "last")
    found = [[e.cursor for e in events if e.cursor] for events in await reading]
    assert found == [[6, 7, 8, 9], [6, 7, 8, 9], [8, 9]]
