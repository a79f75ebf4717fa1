"""One damaged column of a SQLite file sets its record aside: the store opens, and everything else runs."""

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from sash.memory.recall_question import read_question
from sash.stores.sqlite.database import migrate
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock
from tests.attacks.damaged_columns import NUMBERS, TEXTS, connect, damage, find_rows, list_columns
from tests.attacks.damaged_world import START, check, make_world, open_runtime, use_others

# These values could be the stored ones: free texts, and columns that are often empty.
PLAUSIBLE = {
    *(
        ("continuations", column, "null")
        for column in ("worker", "lease_until", "answer_at", "idempotency_key")
    ),
    ("continuations", "ending", "null"),
    ("continuations", "worker", "brace"),
    ("cuts", "digest", "brace"),
    ("cuts", "cut_at", "null"),
    ("messages", "continuation_id", "null"),
    ("sessions", "name", "null"),
    ("spent", "owner", "brace"),
    ("vectors", "model", "brace"),
    ("artifacts", "data", "blob"),
    ("vectors", "data", "blob"),
    *(("messages", "index_text", kind) for kind in TEXTS),
}
# Sash does not read these values, or they only help a search. They can be made again.
UNUSED = ("write_checks", "said_idx", "said_docsize", "word_parts")


def list_schema():
    """Return the columns of a new store as `table.column`, with their types."""
    with closing(sqlite3.connect(":memory:")) as db:
        migrate(db)
        return {f"{table}.{column}": kind for table, column, kind in list_columns(db)}


COLUMNS = list_schema()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return asyncio.run(make_world("sqlite", folder)), folder


def copy(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target / "sash.db"


@pytest.mark.parametrize("name", COLUMNS)
async def test_the_others_go_on(made, tmp_path, name):
    world, folder = made
    table, column = name.split(".")
    rows = find_rows(folder / "sash.db", table, world)
    values = NUMBERS if COLUMNS[name] in ("INTEGER", "REAL") else TEXTS
    for n, (kind, value) in enumerate(values.items()):
        session, where = rows[n % len(rows)]
        path = copy(folder, tmp_path / "case")
        if not damage(path, table, column, where, value):
            continue
        found = check("sqlite", path.parent)
        is_reported = table not in UNUSED and (table, column, kind) not in PLAUSIBLE
        assert not is_reported or found.status == "wrong", (kind, found)
        if is_reported:
            await follow(found.advice, path)
            assert check("sqlite", path.parent).status == "ok", (kind, found)
            path = copy(folder, path.parent)
            damage(path, table, column, where, value)
        assert await use_others(world, "sqlite", path.parent, session) == [], kind


async def follow(advice, path):
    """Do what `sash doctor` advises: delete sessions, run SQL, or search."""
    async with open_runtime("sqlite", path.parent, FakeClock(START)) as runtime:
        for session in re.findall(r"delete the session (\w+)", advice):
            await runtime.delete_session(session, owner="ann")
        if "search" in advice:
            await runtime.search("hello")
    for sql in re.findall(r'sqlite3 \S+ "(.*?)"', advice):
        with connect(path) as db:
            db.executescript(sql)


async def test_a_damaged_owner_is_no_deletion(made, tmp_path):
    world, folder = made
    path = copy(folder, tmp_path / "case")
    damage(path, "sessions", "owner", f"id = '{world.talk}'", "")
    store = SqliteStore(path)
    for _ in range(2):
        await store.open()
        await store.close()
    damage(path, "sessions", "owner", f"id = '{world.talk}'", "ann")
    await store.open()
    assert len((await store.export_session("ann", world.talk)).messages) == 8
    await store.close()


async def test_a_damaged_key_of_exports_is_replaced_and_kept(made, tmp_path):
    world, folder = made
    path = copy(folder, tmp_path / "case")
    damage(path, "export_key", "value", "true", b"short")
    async with open_runtime("sqlite", path.parent, FakeClock(START)) as runtime:
        export = await runtime.export_session(world.named, owner="ann")
        await runtime.delete_session(world.named, owner="ann")
        assert (await runtime.import_session(export, owner="ann")).id == world.named
    with connect(path) as db:
        assert (b"short",) in db.execute("SELECT value FROM export_key").fetchall()


async def test_an_index_without_its_words_is_noticed_when_the_store_opens(made, tmp_path):
    world, folder = made
    path = copy(folder, tmp_path / "case")
    with connect(path) as db:
        db.execute("INSERT INTO said (said) VALUES ('delete-all')")
    store = SqliteStore(path)
    await store.open()
    found = await store.find_words("ann", world.talk, read_question("door").words)
    assert found.found
    await store.close()
