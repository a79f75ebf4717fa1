"""A record that cannot be read does not stop the work on the other records of a durable store."""

import sqlite3
from contextlib import closing

import pytest

from sash.errors import SashError
from tests.backends import DURABLE
from tests.finding import word

pytestmark = pytest.mark.parametrize("backend", DURABLE)

HOUR_S = 3600


def damage_row(folder, table, id):
    with closing(sqlite3.connect(folder / "sash.db")) as db, db:
        assert db.execute(f"UPDATE {table} SET body = '{{}}' WHERE id = ?", (id,)).rowcount == 1


@pytest.fixture
def damage_session(backend, tmp_path):
    def damage_session(session):
        if backend == "sqlite":
            damage_row(tmp_path, "sessions", session.id)
        else:
            (tmp_path / "data" / "sessions" / session.id / "session.json").write_text("{}")

    return damage_session


@pytest.fixture
def damage_turn(backend, tmp_path):
    def damage_turn(session, continuation):
        if backend == "sqlite":
            damage_row(tmp_path, "continuations", continuation.id)
        else:
            folder = tmp_path / "data" / "sessions" / session.id / "turns"
            (folder / f"{continuation.id}.json").write_text("{}")

    return damage_turn


async def test_a_sweep_expires_the_other_sessions(start, reopen, clock, damage_session):
    damaged, idle = await start(), await start()
    damage_session(damaged)
    store = await reopen()
    with pytest.raises(SashError):
        await store.get_session("ann", damaged.id)
    clock.advance(HOUR_S)
    swept = await store.sweep(idle_before=clock.now(), ended_before=clock.now())
    assert swept.sessions >= 1
    assert (await store.get_session("ann", idle.id)).status == "expired"


async def test_a_sweep_passes_a_running_turn_that_cannot_be_read(start, begin, reopen, clock, damage_turn):
    busy, idle = await start(), await start()
    damage_turn(busy, (await begin(busy)).continuation)
    store = await reopen()
    clock.advance(HOUR_S)
    await store.sweep(idle_before=clock.now(), ended_before=clock.now())
    assert (await store.get_session("ann", idle.id)).status == "expired"


async def test_the_sessions_of_other_owners_are_listed(start, reopen, damage_session):
    damage_session(await start())
    other = await start("bob")
    store = await reopen()
    assert (await store.list_sessions("bob")).items == (other,)


@pytest.mark.parametrize(
    "change",
    [
        "body = 'x'",
        "body = '[]'",
        "body = json_set(body, '$.timestamp', 5)",
        "body = json_set(body, '$.timestamp', 'soon')",
        "body = json_remove(body, '$.role', '$.timestamp')",
        "body = json_set(body, '$.content', json('{\"text\": 1}'))",
    ],
)
async def test_a_message_that_cannot_be_read_does_not_stop_recall(
    backend, tmp_path, start, say, reopen, change
):
    if backend != "sqlite":
        pytest.skip("the files of a session are read as a whole")
    session = await start()
    messages = await say(session, "the boiler leaks", "boiler two", "boiler three")
    await say(session, "later", evicted=messages)
    with closing(sqlite3.connect(tmp_path / "sash.db")) as db, db:
        assert db.execute(f"UPDATE messages SET {change} WHERE position = 2").rowcount == 1
    store = await reopen()
    hits = await store.find_words("ann", session.id, [word("boil*")])
    assert {1, 3} <= hits.found.keys()
    places = await store.read_places("ann", session.id, [1, 2, 3])
    assert {1, 3} <= {place.position for place in places}
    read = await store.messages_at("ann", session.id, [1, 3])
    assert [stored.message.text for stored in read] == ["the boiler leaks", "boiler three"]
