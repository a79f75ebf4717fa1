"""`delete_damaged` deletes what `sash doctor` finds in a SQLite file, and nothing else."""

import sqlite3
from contextlib import closing

import pytest

from sash import Runtime
from sash.errors import SessionNotFound
from sash.stores.sqlite.check import check_file
from sash.stores.sqlite.damage_repair import delete_damaged
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from tests.runtime.talk import turn


async def talk(path):
    """Write two sessions with a turn each, and return their ids."""
    ids = []
    async with Runtime(SqliteStore(path), ScriptedModel("ok")) as runtime:
        for word in ("apple", "pear"):
            session = await runtime.start_session()
            await turn(runtime, session, word)
            ids.append(session.id)
        await runtime.search("apple")
    return ids


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        assert db.execute(sql, values).rowcount > 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET body = '{}' WHERE id = ?",
        "UPDATE messages SET body = 'x' WHERE session = (SELECT key FROM sessions WHERE id = ?)",
        "UPDATE continuations SET ending = '[' WHERE session = (SELECT key FROM sessions WHERE id = ?)",
        "UPDATE sessions SET id = 'x' WHERE id = ?",
    ],
)
async def test_a_damaged_session_is_deleted_and_the_others_stay(tmp_path, damage):
    path = tmp_path / "sash.db"
    damaged, sound = await talk(path)
    change(path, damage, damaged)
    assert check_file(path).status == "wrong"
    async with Runtime(SqliteStore(path), ScriptedModel("ok")) as runtime:
        assert await delete_damaged(runtime.store) >= 1
        with pytest.raises(SessionNotFound):
            await runtime.get_session(damaged)
        assert [m.message.text for m in await runtime.list_messages(sound)] == ["pear", "ok"]
        assert len(await runtime.search("pear")) == 1
    assert check_file(path).status == "ok"


async def test_damaged_rows_of_no_session_are_deleted(tmp_path):
    path = tmp_path / "sash.db"
    await talk(path)
    change(path, "INSERT INTO spent VALUES ('local', 1, 'much')")
    assert check_file(path).status == "wrong"
    async with Runtime(SqliteStore(path), ScriptedModel("ok")) as runtime:
        assert await delete_damaged(runtime.store) == 1
    assert check_file(path).status == "ok"


async def test_a_damaged_index_is_made_anew(tmp_path):
    path = tmp_path / "sash.db"
    await talk(path)
    change(path, "DELETE FROM said_data WHERE id > 1")
    assert check_file(path).status == "wrong"
    async with Runtime(SqliteStore(path), ScriptedModel("ok")) as runtime:
        assert await delete_damaged(runtime.store) == 0
        assert len(await runtime.search("pear")) == 1
    assert check_file(path).status == "ok"


async def test_a_sound_store_stays_as_it_is(tmp_path):
    path = tmp_path / "sash.db"
    ids = await talk(path)
    async with Runtime(SqliteStore(path), ScriptedModel("ok")) as runtime:
        assert await delete_damaged(runtime.store) == 0
        assert {session.id for session in (await runtime.list_sessions()).items} == set(ids)
