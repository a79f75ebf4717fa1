"""Sessions of the older form, whose `context` held the area and two other fields, and contexts with such keys."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from sash.ports.turns import ClaimRequest
from tests.backends import DURABLE
from tests.contract.sample_values import completed

NEW_FIELDS = ("area", "is_one_question", "turns_before")
OLDER_KEYS = {"area": "kitchen", "one_question": True, "turns_before": 3}


def make_older(session, context):
    """Turn the JSON of a session into the older form."""
    for name in NEW_FIELDS:
        del session[name]
    session["context"] = context


@pytest.fixture
def store_older(backend, tmp_path, reopen):
    async def store_older(session, context):
        """Rewrite a stored session into the older form, and return the store, opened again."""
        if backend == "sqlite":
            with closing(sqlite3.connect(tmp_path / "sash.db")) as db, db:
                [text] = db.execute("SELECT body FROM sessions WHERE id = ?", (session.id,)).fetchone()
                body = json.loads(text)
                make_older(body, context)
                db.execute("UPDATE sessions SET body = ? WHERE id = ?", (json.dumps(body), session.id))
        else:
            path = tmp_path / "data" / "sessions" / session.id / "session.json"
            record = json.loads(path.read_text())
            make_older(record["session"], context)
            path.write_text(json.dumps(record))
        return await reopen()

    return store_older


async def test_a_context_may_have_the_older_keys(start, now_and_later):
    session = await start(context=OLDER_KEYS | {"mine": 1})
    async for store in now_and_later():
        assert await store.get_session("ann", session.id) == session


async def test_the_context_of_an_exported_session_may_have_the_older_keys(store, start):
    session = await start(context=OLDER_KEYS)
    assert (await store.export_session("ann", session.id)).session == session


@pytest.mark.parametrize("backend", DURABLE)
async def test_the_older_form_is_read(start, store_older):
    session = await start()
    store = await store_older(session, OLDER_KEYS | {"mine": 1})
    expected = replace(session, area="kitchen", is_one_question=True, turns_before=3, context={"mine": 1})
    assert await store.get_session("ann", session.id) == expected


@pytest.mark.parametrize("backend", DURABLE)
@pytest.mark.parametrize(
    "context",
    [
        {"area": 5},
        {"area": None},
        {"area": ["kitchen"]},
        {"one_question": "yes"},
        {"one_question": 1},
        {"turns_before": "3"},
        {"turns_before": True},
        {"turns_before": 1.5},
    ],
    ids=str,
)
async def test_an_older_context_with_other_values_stays_as_it_is(start, store_older, clock, context):
    session = await start()
    store = await store_older(session, context)
    expected = replace(session, context=context)
    assert await store.get_session("ann", session.id) == expected
    assert (await store.list_sessions("ann")).items == (expected,)
    clock.advance(1)
    assert (await store.sweep(idle_before=clock.now(), ended_before=clock.now())).sessions == 1


@pytest.mark.parametrize("backend", DURABLE)
@pytest.mark.parametrize("ends", ["finish", "cancel"])
@pytest.mark.parametrize(("one_question", "status"), [(True, "ended"), (False, "active"), ("yes", "active")])
async def test_an_older_session_for_one_question_ends_with_its_turn(
    start, begin, store, store_older, ends, one_question, status
):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, (), release_as="interrupted")
    store = await store_older(session, {"one_question": one_question})
    if ends == "cancel":
        await store.cancel("ann", turn.continuation.id, "enough")
    else:
        turn = await store.claim("ann", turn.continuation.id, ClaimRequest("w2"))
        await store.finish(turn.lease, completed())
    assert (await store.get_session("ann", session.id)).status == status
