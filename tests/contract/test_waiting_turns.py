"""The store contract. Waiting turns: they become a continuation exactly once, or are cancelled exactly once."""

import sqlite3
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import SessionEnded, SessionNotFound, TooManyWaitingTurns, WaitingTurnNotFound
from sash.ports.turns import ClaimRequest
from sash.stores.backend import StoreSettings
from sash.stores.registry import find_backend
from sash.values.continuations import Continuation, ContinuationRequest, TurnCaller
from sash.values.ids import new_id
from sash.values.waiting_turns import (
    MAX_WAITING_TURNS,
    DeferredCall,
    FiredTurn,
    StateCondition,
    WaitingTurn,
)
from tests.contract.sample_values import completed


@pytest.fixture
def promise(clock):
    def promise(session, summary="turn off the light", **fields):
        later = clock.now() + timedelta(minutes=10)
        fields = {"at": later, "due_at": later} | fields
        return WaitingTurn(new_id(), session.id, session.owner, summary, clock.now(), **fields)

    return promise


@pytest.fixture
def fire(store, clock):
    async def fire(turn, *, enqueue=True, on=store):
        request = ContinuationRequest(turn.summary, idempotency_key=turn.key, fired=FiredTurn(turn))
        new = Continuation(
            new_id(), turn.session_id, turn.owner, "pending", clock.now(), clock.now(), request
        )
        return await on.begin(new, ClaimRequest("w1"), enqueue=enqueue)

    return fire


async def test_a_waiting_turn_stays_with_all_its_fields(store, reopen, start, promise, clock):
    session = await start()
    turn = promise(
        session,
        at=None,
        due_at=None,
        when=StateCondition("sensor.power", below=5.0, for_s=60.0),
        only_if=(StateCondition("person.ann", not_states=("home",)),),
        calls=(DeferredCall("light.turn_off", ("light.hall",), {"transition": 2}),),
        say="the washing machine is done",
        language="de",
        area="Hall",
        caller=TurnCaller("ann", "Ann", "puck"),
        asked_in="c:1",
        status="already_so",
    )
    assert await store.add_waiting_turn(turn) == turn
    again = await reopen()
    assert await again.waiting_turns("ann") == [turn]
    assert await again.waiting_turns("ann", session_id=session.id) == [turn]
    changed = replace(turn, status="waiting", due_at=clock.now())
    await again.change_waiting_turn(changed)
    last = await reopen()
    assert await last.waiting_turns() == [changed]


async def test_waiting_turns_belong_to_one_owner_and_one_session(store, start, promise):
    first, second, other = await start(), await start(), await start("bob")
    turns = [await store.add_waiting_turn(promise(session)) for session in (first, second, other)]
    assert await store.waiting_turns() == sorted(turns, key=lambda turn: turn.id)
    assert await store.waiting_turns("ann") == sorted(turns[:2], key=lambda turn: turn.id)
    assert await store.waiting_turns("ann", session_id=second.id) == [turns[1]]
    for refused in (
        store.waiting_turns("bob", session_id=first.id),
        store.waiting_turns("ann", session_id="x"),
    ):
        with pytest.raises(SessionNotFound):
            await refused
    with pytest.raises(WaitingTurnNotFound):
        await store.cancel_waiting_turn("bob", turns[0].id)
    with pytest.raises(WaitingTurnNotFound):
        await store.change_waiting_turn(replace(turns[0], owner="bob"))
    assert len(await store.waiting_turns()) == 3


async def test_a_call_that_is_repeated_registers_once(store, start, promise):
    session = await start()
    first = await store.add_waiting_turn(promise(session, asked_in="c:1"))
    assert await store.add_waiting_turn(promise(session, asked_in="c:1")) == first
    await store.add_waiting_turn(promise(session, asked_in="c:2"))
    assert len(await store.waiting_turns("ann")) == 2


async def test_a_session_has_a_maximum_of_waiting_turns(store, start, promise):
    session = await start()
    for _ in range(MAX_WAITING_TURNS):
        await store.add_waiting_turn(promise(session))
    with pytest.raises(TooManyWaitingTurns) as error:
        await store.add_waiting_turn(promise(session))
    assert (error.value.limit, error.value.session_id) == (MAX_WAITING_TURNS, session.id)
    await store.add_waiting_turn(promise(await start()))


async def test_a_cancelled_waiting_turn_is_gone_and_does_not_fire(store, reopen, start, promise, fire):
    turn = await store.add_waiting_turn(promise(await start()))
    assert await store.cancel_waiting_turn("ann", turn.id) == turn
    again = await reopen()
    assert await again.waiting_turns() == []
    for refused in (
        again.cancel_waiting_turn("ann", turn.id),
        again.change_waiting_turn(turn),
        fire(turn, on=again),
    ):
        with pytest.raises(WaitingTurnNotFound):
            await refused
    assert await again.list_continuations("ann", turn.session_id) == []


async def test_a_waiting_turn_becomes_one_continuation_however_often_it_fires(
    store, reopen, start, promise, fire
):
    session = await start()
    turn = await store.add_waiting_turn(promise(session))
    begun = await fire(turn)
    assert begun.created
    assert begun.continuation.request.fired.turn == turn
    assert await store.waiting_turns() == []
    with pytest.raises(WaitingTurnNotFound):
        await store.cancel_waiting_turn("ann", turn.id)
    again = await reopen()
    second = await fire(turn, on=again)
    assert (second.created, second.continuation.id) == (False, begun.continuation.id)
    assert len(await again.list_continuations("ann", session.id)) == 1
    assert await again.waiting_turns() == []


async def test_a_waiting_turn_queues_behind_an_open_turn(store, start, begin, promise, fire):
    session = await start()
    open_turn = (await begin(session)).turn
    turn = await store.add_waiting_turn(promise(session))
    begun = await fire(turn)
    assert (begun.continuation.status, begun.turn) == ("pending", None)
    await store.finish(open_turn.lease, completed())
    claimed = await store.claim_next(session.id, ClaimRequest("w2"))
    assert claimed.continuation.request.fired.turn == turn


async def test_a_waiting_turn_that_cannot_fire_goes_on_waiting(store, start, begin, promise, fire):
    session = await start()
    await begin(session)
    turn = await store.add_waiting_turn(promise(session))
    with pytest.raises(Exception, match="busy"):
        await fire(turn, enqueue=False)
    assert await store.waiting_turns() == [turn]


async def test_the_end_of_a_session_ends_its_waiting_turns(store, reopen, start, promise):
    ended, deleted, erased = await start(), await start(), await start("bob")
    kept = await store.add_waiting_turn(promise(await start()))
    for session in (ended, deleted, erased):
        await store.add_waiting_turn(promise(session))
    saved = await store.save_session(replace(ended, status="ended"))
    await store.delete_session("ann", deleted.id)
    await store.erase("bob")
    again = await reopen()
    assert await again.waiting_turns() == [kept]
    with pytest.raises(SessionEnded):
        await again.add_waiting_turn(promise(saved))


async def test_a_session_with_a_waiting_turn_does_not_expire(store, start, promise, clock):
    waiting, _ = await start(), await start()
    turn = await store.add_waiting_turn(promise(waiting))
    clock.advance(30 * 86400)
    swept = await store.sweep(idle_before=clock.now(), ended_before=clock.now())
    assert swept.sessions == 1
    assert (await store.get_session("ann", waiting.id)).status == "active"
    await store.cancel_waiting_turn("ann", turn.id)
    assert (await store.sweep(idle_before=clock.now(), ended_before=clock.now())).sessions == 1


async def test_an_export_has_the_waiting_turns_and_an_import_brings_them_back(store, reopen, start, promise):
    session = await start()
    turns = [await store.add_waiting_turn(promise(session)) for _ in range(2)]
    bundle = await store.export_session("ann", session.id)
    assert list(bundle.waiting_turns) == turns
    await store.delete_session("ann", session.id)
    await store.import_session(bundle)
    again = await reopen()
    assert await again.waiting_turns("ann") == turns


async def test_a_damaged_waiting_turn_is_named_and_stops_no_other(
    backend, store, start, promise, tmp_path, clock
):
    if backend == "memory":
        return
    damaged, sound = await start(), await start()
    await store.add_waiting_turn(promise(damaged))
    kept = await store.add_waiting_turn(promise(sound))
    await store.close()
    folder = tmp_path / "data" if backend == "files" else tmp_path
    if backend == "sqlite":
        with sqlite3.connect(folder / "sash.db") as db:
            db.execute(
                "UPDATE waiting_turns SET body = '{' WHERE session = (SELECT key FROM sessions WHERE id = ?)",
                (damaged.id,),
            )
        db.close()
    else:
        (folder / "sessions" / damaged.id / "waiting.json").write_text("{")
    check = find_backend(backend).check(StoreSettings(backend, folder, clock))
    assert check.status == "wrong"
    assert "waiting" in check.found
    await store.open()
    assert await store.waiting_turns() == [kept]


async def test_a_crash_between_the_two_writes_of_the_files_store_loses_nothing(
    backend, store, reopen, start, promise, fire, tmp_path
):
    """The log with the continuation comes first. Then the waiting turn has fired, whatever its file says."""
    if backend != "files":
        return
    turn = await store.add_waiting_turn(promise(await start()))
    file = tmp_path / "data" / "sessions" / turn.session_id / "waiting.json"
    before = file.read_bytes()
    begun = await fire(turn)
    file.write_bytes(before)
    again = await reopen()
    assert await again.waiting_turns() == []
    assert (await fire(turn, on=again)).continuation.id == begun.continuation.id
