"""The store contract. Turns: begin, queue, append, finish, cancel, events and stats."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import (
    ContinuationFinal,
    LeaseLost,
    SessionBusy,
    SessionNotFound,
)
from sash.ports.turns import ClaimRequest, TurnEnd
from sash.values.stats import Stats
from sash.values.steps import (
    Failed,
    ToolCall,
    ToolResult,
)
from tests.contract.sample_values import PLAN, completed, said, without


async def test_a_turn_is_begun_worked_on_and_finished(store, start, begin, clock):
    session = await start()
    begun = await begin(session)
    turn = begun.turn
    assert begun.created
    assert turn.continuation.status == "running"
    assert turn.session == session
    assert turn.window.messages == ()
    clock.advance(1)
    steps = await store.append(turn.lease, [PLAN, ToolCall("1", "look", "{}")])
    assert [(s.n, s.cursor, s.ts) for s in steps] == [(1, 1, clock.now()), (2, 2, clock.now())]
    await store.append(turn.lease, [ToolResult("1", "look", "seen")])
    messages = said("hi", "hello")
    await store.finish(turn.lease, completed(*messages, stats=Stats(turns=1, steps=3)))
    ended = await store.get_continuation("ann", turn.continuation.id)
    assert (ended.status, ended.response.final_message) == ("completed", "done")
    assert (ended.created_at, ended.updated_at) == (session.created_at, clock.now())
    assert [s.type for s in (await store.journal("ann", ended.id))[1]] == [
        "plan",
        "tool_call",
        "tool_result",
        "summary",
    ]
    assert [m.message for m in await store.messages("ann", session.id)] == list(messages)
    assert (await store.window("ann", session.id)).messages == messages
    after = await store.get_session("ann", session.id)
    assert (after.stats.turns, after.stats.steps, after.version) == (1, 3, 2)


async def test_only_one_turn_holds_a_session(store, start, begin):
    session = await start()
    first = await begin(session)
    with pytest.raises(SessionBusy) as error:
        await begin(session)
    assert error.value.continuation_id == first.continuation.id
    assert len(await store.list_continuations("ann", session.id)) == 1
    await store.finish(first.turn.lease, completed())
    assert (await begin(session)).turn is not None


async def test_only_one_of_many_concurrent_turns_is_accepted(store, start, begin):
    session = await start()
    results = await asyncio.gather(*(begin(session) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(r, SessionBusy) for r in results) == 1
    assert len(await store.list_continuations("ann", session.id)) == 1


async def test_the_same_key_is_the_same_continuation(store, start, begin):
    session = await start()
    results = await asyncio.gather(*(begin(session, key="k") for _ in range(50)))
    assert len({r.continuation.id for r in results}) == 1
    assert [r.created for r in results].count(True) == 1
    turn = next(r.turn for r in results if r.turn)
    await store.finish(turn.lease, completed())
    again = await begin(session, "other words", key="k")
    assert (again.created, again.turn, again.continuation.status) == (False, None, "completed")
    other = await start()
    assert (await begin(other, key="k")).created


async def test_cursors_of_swept_steps_are_not_assigned_again(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one")))
    clock.advance(60)
    await store.sweep(idle_before=clock.now() - timedelta(days=1), ended_before=clock.now())
    turn = (await begin(session)).turn
    assert [s.cursor for s in await store.append(turn.lease, [PLAN])] == [2]


async def test_a_queue_is_served_in_order(store, start, begin):
    session = await start()
    first = await begin(session, "1")
    second = await begin(session, "2", enqueue=True)
    third = await begin(session, "3", enqueue=True)
    assert (second.turn, second.continuation.status) == (None, "pending")
    assert await store.claim_next(session.id, ClaimRequest("w1")) is None
    assert (await store.finish(first.turn.lease, completed())).next_waits
    served = []
    while turn := await store.claim_next(session.id, ClaimRequest("w1")):
        served.append(turn.continuation.id)
        await store.finish(turn.lease, completed())
    assert served == [second.continuation.id, third.continuation.id]


async def test_a_cancel_is_final(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    cancelled = await store.cancel("ann", turn.continuation.id, "taking too long")
    assert cancelled.status == "cancelled"
    assert ((await store.journal("ann", cancelled.id))[1])[-1].detail == {
        "status": "cancelled",
        "reason": "taking too long",
    }
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(ContinuationFinal):
        await store.cancel("ann", turn.continuation.id, "again")
    with pytest.raises(ContinuationFinal):
        await store.claim("ann", turn.continuation.id, ClaimRequest("w1"))
    assert await store.messages("ann", session.id) == []
    assert (await begin(session)).turn is not None


async def test_events_have_cursors_without_a_gap(store, start, begin):
    session = await start()
    for _ in range(3):
        turn = (await begin(session)).turn
        await store.append(turn.lease, [PLAN, PLAN])
        await store.finish(turn.lease, completed())
    events = await store.events("ann", session.id)
    assert [e.step.cursor for e in events] == list(range(1, 10))
    assert [e.step.n for e in events] == [1, 2, 3] * 3
    assert await store.events("ann", session.id, after=4, limit=3) == events[4:7]
    assert await store.events("ann", session.id, after=9) == []


async def test_the_last_cursor_is_known_even_when_its_step_is_swept(store, start, begin, clock, reopen):
    session = await start()
    assert await store.last_cursor("ann", session.id) == 0
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN, PLAN])
    assert await store.last_cursor("ann", session.id) == 2
    await store.finish(turn.lease, completed(*said("q")))
    clock.advance(10)
    swept = await store.sweep(idle_before=session.created_at, ended_before=clock.now())
    assert swept.steps == 3
    opened = await reopen()
    assert await opened.last_cursor("ann", session.id) == 3
    with pytest.raises(SessionNotFound):
        await opened.last_cursor("bob", session.id)


async def test_a_failed_turn_leaves_the_window_as_it_was(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one"), cut=without(turn_starts=("x",))))
    before = await store.window("ann", session.id)
    turn = (await begin(session)).turn
    await store.finish(turn.lease, TurnEnd("failed", (Failed("model_error", "no answer"),)))
    assert await store.window("ann", session.id) == before


async def test_continuations_without_a_worker_are_listed_as_waiting(store, start, begin, clock, reopen):
    session, other = await start(), await start()
    first = await begin(session)
    queued = await begin(session, enqueue=True)
    await begin(other)
    assert await store.waiting() == []
    clock.advance(31)
    await store.interrupt_lost()
    store = await reopen()
    waiting = [(c.id, c.status) for c in await store.waiting()]
    assert waiting[:2] == [(first.continuation.id, "interrupted"), (queued.continuation.id, "pending")]
    assert len(waiting) == 3
    await store.claim_next(session.id, ClaimRequest("w2"))
    assert [c.session_id for c in await store.waiting()] == [other.id]


async def test_a_worker_with_the_current_window_does_not_receive_it_again(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one")))
    known = await store.get_session("ann", session.id)
    turn = (await begin(session, known=known)).turn
    assert turn.session == known
    assert turn.window is None
    await store.finish(turn.lease, completed(*said("two")))
    turn = (await begin(session, known=known)).turn
    assert [m.text for m in turn.window.messages] == ["one", "two"]


async def test_the_stats_of_a_turn_are_stored_with_it_and_with_the_session(
    store, start, begin, clock, reopen
):
    session = await start()
    done = Stats(turns=1, cost_usd=0.5, errors={"e": 1}, durations={3: 1})
    gone = Stats(turns=1, cancelled_turns=1, cost_usd=0.25)
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(stats=done))
    clock.advance(60)
    other = (await begin(session)).turn
    cancelled = await store.cancel(
        "ann", other.continuation.id, "why", end=TurnEnd("cancelled", (), stats=gone)
    )
    assert cancelled.stats == gone
    again = await reopen()
    assert (await again.get_session("ann", session.id)).stats == done + gone
    assert (await again.get_continuation("ann", turn.continuation.id)).stats == done
    assert (await again.get_continuation("ann", other.continuation.id)).stats == gone


async def test_a_turn_adds_to_the_stored_session_even_if_the_worker_knows_an_older_one(store, start, begin):
    session = await start()
    first = (await begin(session)).turn
    await store.finish(first.lease, completed(stats=Stats(turns=1)), known=first.session)
    for known in (None, first.session):
        second = (await begin(session)).turn
        saved = await store.save_session(replace(second.session, area="kitchen"))
        await store.finish(second.lease, completed(stats=Stats(turns=1)), known=known and second.session)
        stored = await store.get_session("ann", session.id)
        assert stored.version == saved.version + 1
        assert stored.stats.turns == saved.stats.turns + 1
        assert stored.area == "kitchen"


async def test_the_stats_of_turns_are_found_by_their_end_time(store, start, begin, clock):
    mine, other = await start(), await start("bob")
    ended = []
    for hours, session in ((0, mine), (1, other), (2, mine), (30, mine)):
        clock.advance(hours * 3600)
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed(stats=Stats(turns=1, steps=hours + 1)))
        ended.append(clock.now())
    await begin(mine)
    assert await store.turn_stats("ann", ended[0]) == [
        (ended[0], Stats(turns=1, steps=1)),
        (ended[2], Stats(turns=1, steps=3)),
        (ended[3], Stats(turns=1, steps=31)),
    ]
    assert [stats.steps for _, stats in await store.turn_stats("ann", ended[2])] == [3, 31]
    assert await store.turn_stats("ann", ended[3] + timedelta(seconds=1)) == []


async def test_a_released_turn_keeps_its_stats(store, start, begin, reopen):
    session = await start()
    turn = (await begin(session)).turn
    spent = Stats(turns=1, cost_usd=0.5)
    await store.append(turn.lease, [PLAN], release_as="awaiting_approval", stats=spent)
    again = await reopen()
    assert (await again.get_continuation("ann", turn.continuation.id)).stats == spent
    assert [stats for _, stats in await again.turn_stats("ann", session.created_at)] == [spent]
    claimed = await again.claim("ann", turn.continuation.id, ClaimRequest("w2"))
    await again.finish(claimed.lease, completed(stats=Stats(turns=1, cost_usd=0.75)))
    assert [stats.cost_usd for _, stats in await again.turn_stats("ann", session.created_at)] == [0.75]
    assert (await again.get_session("ann", session.id)).stats.cost_usd == 0.75


async def test_open_continuations_are_listed_without_ended_ones(store, start, begin, clock, now_and_later):
    session, other = await start(), await start()
    for _ in range(3):
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed())
    lost = await begin(session)
    clock.advance(31)
    await store.interrupt_lost()
    running = await begin(session)
    queued = await begin(session, enqueue=True)
    waiting = (await begin(other)).turn
    await store.append(waiting.lease, [PLAN], release_as="awaiting_approval")
    expected = [lost.continuation.id, running.continuation.id, queued.continuation.id]
    async for opened in now_and_later():
        unfinished = await opened.list_continuations("ann", session.id, open_only=True)
        assert [c.id for c in unfinished] == expected
        assert not any(c.is_final for c in unfinished)
        [asked] = await opened.list_continuations("ann", other.id, open_only=True)
        assert (asked.id, asked.status) == (waiting.continuation.id, "awaiting_approval")
    with pytest.raises(SessionNotFound):
        await opened.list_continuations("bob", session.id, open_only=True)
