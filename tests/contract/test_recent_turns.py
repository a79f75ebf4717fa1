"""The store contract. The newest turns of an owner, or of one session."""

import sqlite3
from contextlib import closing

import pytest

from sash.errors import SessionNotFound
from tests.contract.sample_values import completed


async def test_the_newest_turns_of_an_owner_come_first(store, start, begin, record, now_and_later):
    first, second, other = await start(), await start(), await start("bob")
    ids = [
        (await record(session, "q", "a"))[0]
        for session in (first, second, other, first, second, other, first)
    ]
    running = (await begin(second)).continuation.id
    mine = [running, *(ids[n] for n in (6, 4, 3, 1, 0))]
    async for again in now_and_later():
        found = await again.recent_continuations("ann")
        assert [turn.id for turn in found] == mine
        assert found[1] == await again.get_continuation("ann", ids[6])
        assert [turn.id for turn in await again.recent_continuations("ann", limit=2)] == mine[:2]
        in_first = await again.recent_continuations("ann", session_id=first.id, limit=2)
        assert [turn.id for turn in in_first] == [ids[6], ids[3]]
        assert await again.recent_continuations("carl") == []
        with pytest.raises(SessionNotFound):
            await again.recent_continuations("bob", session_id=first.id)


async def test_a_deleted_session_has_no_turns(store, start, record, now_and_later):
    kept, gone = await start(), await start()
    [(kept_id, _, _), _] = [await record(session, "q", "a") for session in (kept, gone)]
    await store.delete_session("ann", gone.id)
    async for again in now_and_later():
        assert [turn.id for turn in await again.recent_continuations("ann")] == [kept_id]


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_damaged_turn_does_not_hide_the_others(store, start, begin, tmp_path):
    session = await start()
    turns = []
    for _ in range(3):
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed())
        turns.append(turn.continuation.id)
    with closing(sqlite3.connect(tmp_path / "sash.db")) as db, db:
        db.execute("UPDATE continuations SET ending = '{' WHERE id = ?", (turns[1],))
    for place in ({}, {"session_id": session.id}):
        found = await store.recent_continuations("ann", **place)
        assert [turn.id for turn in found] == [turns[2], turns[0]]
