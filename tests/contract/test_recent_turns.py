"""The store contract. The newest turns of an owner, or of one session."""

import sqlite3
from contextlib import closing

import pytest

from sash.errors import SessionNotFound
from sash.ports.turns import TurnEnd
from sash.values.steps import Failed
from tests.contract.sample_values import PLAN, completed


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


async def test_older_turns_follow_page_by_page_while_new_ones_begin(store, start, record, now_and_later):
    sessions = [await start() for _ in range(3)]
    ids = [(await record(sessions[n % 3], "q", "a"))[0] for n in range(10)]
    await record(await start("bob"), "q", "a")
    async for again in now_and_later():
        for place, mine in (({}, ids), ({"session_id": sessions[1].id}, ids[1::3])):
            seen, before = [], None
            while page := await again.recent_continuations("ann", before=before, limit=3, **place):
                seen += [turn.id for turn in page]
                before = seen[-1]
                if again is store:
                    await record(sessions[1], "new", "a")
            assert [turn_id for turn_id in seen if turn_id in mine] == mine[::-1]
            assert len(seen) == len({*seen})


async def test_turns_are_found_by_their_status(store, start, begin, now_and_later):
    first, second, other = await start(), await start(), await start("bob")
    made = {}
    for session, name in ((first, "done"), (second, "failed"), (other, "other")):
        turn = (await begin(session)).turn
        end = TurnEnd("failed", (Failed("model_error", "x"),)) if name == "failed" else completed()
        await store.finish(turn.lease, end)
        made[name] = turn.continuation.id
    turn = (await begin(first)).turn
    made["asks"] = turn.continuation.id
    await store.append(turn.lease, [PLAN], release_as="awaiting_approval")
    turn = (await begin(second)).turn
    made["stopped"] = turn.continuation.id
    await store.append(turn.lease, [PLAN], release_as="interrupted")
    made["queued"] = (await begin(first, enqueue=True)).continuation.id
    await begin(other)
    names = {turn_id: name for name, turn_id in made.items()}
    unfinished = {"pending", "running", "awaiting_approval", "interrupted"}
    async for again in now_and_later():
        for place, statuses, expected in (
            ({}, unfinished, ["queued", "stopped", "asks"]),
            ({"session_id": first.id}, unfinished, ["queued", "asks"]),
            ({}, {"awaiting_approval"}, ["asks"]),
            ({}, {"interrupted"}, ["stopped"]),
            ({}, {"completed"}, ["done"]),
            ({}, {"completed", "failed"}, ["failed", "done"]),
            ({"session_id": second.id}, {"failed"}, ["failed"]),
            ({"session_id": second.id}, {"completed"}, []),
            ({}, {"pending", "completed"}, ["queued", "done"]),
            ({}, {"expired"}, []),
        ):
            found = await again.recent_continuations("ann", statuses=statuses, **place)
            assert [names[turn.id] for turn in found] == expected, (place, statuses)
        page = await again.recent_continuations("ann", statuses=unfinished, limit=2)
        assert [names[turn.id] for turn in page] == ["queued", "stopped"]
        rest = await again.recent_continuations("ann", statuses=unfinished, before=page[-1].id)
        assert [names[turn.id] for turn in rest] == ["asks"]


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
    for place in ({}, {"session_id": session.id}, {"statuses": {"completed"}}):
        found = await store.recent_continuations("ann", **place)
        assert [turn.id for turn in found] == [turns[2], turns[0]]
        # A damaged turn does not count: fewer turns than the limit mean that no older ones exist.
        assert await store.recent_continuations("ann", limit=2, **place) == found
