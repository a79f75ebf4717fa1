"""The store contract. Leases: fencing, renewal, interruption, release, resumption and expiry."""

from datetime import timedelta

import pytest

from sash.errors import (
    LeaseLost,
    SessionBusy,
)
from sash.ports.turns import ClaimRequest
from sash.values.steps import (
    ApprovalGiven,
    HomeChanged,
)
from tests.contract.sample_values import PLAN, completed, said


async def test_a_worker_that_lost_its_lease_cannot_write(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    clock.advance(31)
    assert [c.id for c in await store.interrupt_lost()] == [turn.continuation.id]
    again = await store.claim("ann", turn.continuation.id, ClaimRequest("w2"))
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    assert await store.messages("ann", session.id) == []
    assert [s.type for s in (await store.journal("ann", turn.continuation.id))[1]] == ["observed_event"]
    assert again.lease.epoch > turn.lease.epoch
    await store.finish(again.lease, completed())


async def test_a_renewed_lease_is_not_lost(store, start, begin, clock):
    turn = (await begin(await start())).turn
    for _ in range(5):
        clock.advance(20)
        assert await store.renew("w1", [turn.continuation.id, "other"]) == {turn.continuation.id}
        assert await store.interrupt_lost() == []
    assert await store.renew("w2", [turn.continuation.id]) == frozenset()
    assert await store.renew("w1", []) == frozenset()
    await store.append(turn.lease, [PLAN])


async def test_a_resumed_turn_has_its_steps(store, start, begin, clock):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [PLAN])
    clock.advance(31)
    await store.interrupt_lost()
    again = await store.claim(
        "ann", turn.continuation.id, ClaimRequest("w2"), steps=[HomeChanged("the light is on")]
    )
    assert [s.type for s in again.steps] == ["plan", "observed_event", "observed_event"]
    assert [s.n for s in again.steps] == [1, 2, 3]
    with pytest.raises(SessionBusy):
        await store.claim("ann", turn.continuation.id, ClaimRequest("w3"))


async def test_an_interrupted_turn_does_not_block_but_cannot_run_beside_another(store, start, begin, clock):
    session = await start()
    old = (await begin(session)).turn
    clock.advance(31)
    await store.interrupt_lost()
    new = (await begin(session)).turn
    with pytest.raises(SessionBusy):
        await store.claim("ann", old.continuation.id, ClaimRequest("w1"))
    await store.finish(new.lease, completed())
    assert (
        await store.claim("ann", old.continuation.id, ClaimRequest("w1"))
    ).continuation.status == "running"


async def test_awaiting_approval_holds_the_session_and_no_lease(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN], release_as="awaiting_approval")
    clock.advance(1000)
    assert await store.interrupt_lost() == []
    with pytest.raises(SessionBusy):
        await begin(session)
    with pytest.raises(LeaseLost):
        await store.append(turn.lease, [PLAN])
    approval = ApprovalGiven("1", True)
    again = await store.claim("ann", turn.continuation.id, ClaimRequest("w2"), steps=[approval])
    assert [s.type for s in again.steps] == ["plan", "observed_event"]
    await store.finish(again.lease, completed())


async def test_a_turn_that_is_released_without_a_step_waits_after_a_restart(store, start, begin, reopen):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [], release_as="awaiting_approval")
    store = await reopen()
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "awaiting_approval"
    assert await store.interrupt_lost() == []


async def test_a_released_continuation_can_be_resumed(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    clock.advance(3)
    await store.append(turn.lease, [PLAN], release_as="interrupted")
    waiting = await store.get_continuation("ann", turn.continuation.id)
    assert (waiting.status, waiting.updated_at) == ("interrupted", clock.now())
    with pytest.raises(LeaseLost):
        await store.append(turn.lease, [PLAN])
    assert [c.id for c in await store.waiting()] == [waiting.id]
    assert (await begin(session)).turn is not None, "what is interrupted holds nothing"


async def test_a_turn_of_a_dead_process_is_interrupted_when_the_store_is_opened_again(
    store, start, begin, reopen, clock
):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [PLAN])
    store = await reopen()
    clock.advance(31)
    assert [c.id for c in await store.interrupt_lost()] == [turn.continuation.id]
    store = await reopen()
    assert await store.interrupt_lost() == []
    assert [s.type for s in (await store.journal("ann", turn.continuation.id))[1]] == [
        "plan",
        "observed_event",
    ]


async def test_a_clock_that_is_set_back_does_not_extend_a_lease(store, start, begin, clock):
    dead, alive = [(await begin(await start())).turn for _ in range(2)]
    clock.advance(-86_400)
    await store.renew(alive.lease.worker, [alive.continuation.id])
    assert [c.id for c in await store.interrupt_lost()] == [dead.continuation.id]
    clock.advance(29)
    assert await store.interrupt_lost() == []


async def test_a_sweep_expires_idle_sessions_and_waiting_continuations(store, start, begin, clock):
    idle, waiting, done, held = [await start() for _ in range(4)]
    turn = (await begin(waiting)).turn
    await store.append(turn.lease, [PLAN], release_as="awaiting_approval")
    finished = (await begin(done)).turn
    await store.finish(finished.lease, completed(*said("kept")))
    clock.advance(timedelta(days=8).total_seconds())
    running = (await begin(held)).turn
    now = clock.now()
    swept = await store.sweep(idle_before=now - timedelta(days=7), ended_before=now - timedelta(hours=24))
    assert (swept.continuations, swept.steps) == (1, 1)
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "expired"
    assert (await store.journal("ann", finished.continuation.id))[1] == ()
    assert [m.message.text for m in await store.messages("ann", done.id)] == ["kept"]
    assert (await store.get_session("ann", idle.id)).status == "expired"
    assert (await store.get_session("ann", held.id)).status == "active"
    await store.append(running.lease, [PLAN])


async def test_an_expired_continuation_is_expired_after_a_restart(store, start, begin, clock, reopen):
    idle, used = await start(), await start()
    turn = (await begin(used)).turn
    await store.finish(turn.lease, completed(*said("kept")))
    clock.advance(timedelta(days=8).total_seconds())
    await store.sweep(idle_before=clock.now() - timedelta(days=7), ended_before=clock.now())
    store = await reopen()
    assert (await store.get_session("ann", idle.id)).status == "expired"
    assert [m.message.text for m in await store.messages("ann", used.id)] == ["kept"]
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "completed"
