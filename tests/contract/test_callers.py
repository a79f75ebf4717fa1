"""The store contract. The caller of a turn can be set later."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import ContinuationNotFound
from sash.stores.backend import StoreSettings
from sash.stores.registry import find_backend
from sash.values.continuations import TurnCaller
from sash.values.ids import new_id
from tests.contract.sample_values import PLAN, completed, said

ANNA = TurnCaller(user_id="u1", user_name="Anna", device_id="puck", certainty="named")
BOB = replace(ANNA, user_id="u2", user_name="Bob")


def name(continuation, caller=ANNA):
    return replace(continuation, request=replace(continuation.request, caller=caller))


async def test_the_caller_of_an_ended_turn_is_set(store, start, record, clock, now_and_later):
    session = await start()
    turns = [(await record(session, f"q{n}", f"a{n}"))[0] for n in range(3)]
    before = await store.export_session("ann", session.id)
    clock.advance(60)
    first, second, third = before.continuations
    assert await store.set_caller("ann", turns[0], BOB) == name(first, BOB)
    assert await store.set_caller("ann", turns[0], ANNA) == name(first)
    await store.set_caller("ann", turns[2], BOB)
    expected = replace(before, continuations=(name(first), second, name(third, BOB)))
    async for again in now_and_later():
        after = await again.export_session("ann", session.id)
        assert after == expected, "nothing else changes"


async def test_the_caller_of_an_open_turn_is_set_and_stays_when_it_ends(store, start, begin, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN])
    await store.set_caller("ann", turn.continuation.id, ANNA)
    async for again in now_and_later():
        assert await again.get_continuation("ann", turn.continuation.id) == name(turn.continuation)
    await again.interrupt_lost()


async def test_a_worker_ends_a_turn_whose_caller_was_set_meanwhile(store, start, begin, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN])
    queued = (await begin(session, "then", enqueue=True)).continuation
    await store.set_caller("ann", turn.continuation.id, ANNA)
    await store.set_caller("ann", queued.id, BOB)
    await store.finish(turn.lease, completed(*said("hello")))
    async for again in now_and_later():
        ended = await again.get_continuation("ann", turn.continuation.id)
        assert (ended.status, ended.request.caller) == ("completed", ANNA)
        assert ended.response.final_message == "done"
        assert (await again.get_continuation("ann", queued.id)).request.caller == BOB
        assert len(await again.messages("ann", session.id)) == 1


async def test_the_caller_of_a_turn_without_steps_is_set(
    backend, store, start, record, reopen, clock, tmp_path
):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    await record(session, "q2", "a2")
    clock.advance(60)
    swept = await store.sweep(idle_before=clock.now() - timedelta(days=1), ended_before=clock.now())
    assert swept.steps == 2
    await store.set_caller("ann", recorded, ANNA)
    store = await reopen()
    assert (await store.get_continuation("ann", recorded)).request.caller == ANNA
    await store.amend("ann", recorded, "b", 1)
    store = await reopen()
    turn = await store.get_continuation("ann", recorded)
    assert (turn.request.caller, turn.response.final_message) == (ANNA, "b")
    assert [m.message.text for m in await store.messages("ann", session.id)] == ["q", "b", "q2", "a2"]
    await store.close()
    folder = tmp_path / "data" if backend == "files" else tmp_path
    assert find_backend(backend).check(StoreSettings(backend, folder, clock)).status != "wrong"
    await store.open()


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_the_row_of_a_turn_has_its_answer_once(store, start, record, tmp_path):
    session = await start()
    recorded, _, _ = await record(session, "q", "a quokka")
    await store.set_caller("ann", recorded, ANNA)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "sash.db")) as db:
        [row] = db.execute("SELECT body, ending FROM continuations").fetchall()
    assert ["quokka" in column for column in row] == [False, True], "an amendment changes the ending only"


async def test_the_caller_of_a_foreign_or_unknown_turn_is_not_set(store, start, record):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    for owner, turn_id in (("bob", recorded), ("ann", new_id())):
        with pytest.raises(ContinuationNotFound):
            await store.set_caller(owner, turn_id, ANNA)
    assert (await store.get_continuation("ann", recorded)).request.caller is None
