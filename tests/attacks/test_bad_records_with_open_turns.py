"""A record that cannot be read, of a session with open turns, stops neither the start nor the turns of others."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from sash import Runtime
from sash.errors import SashError
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import SessionPolicy
from tests.backends import BACKENDS
from tests.runtime.talk import WAIT_S
from tests.runtime.waiting_model import WaitingModel

RESUMES = SessionPolicy(resume_interrupted=True)
SECRET = "my password is swordfish"
DAY_S = 24 * 3600
# Each query damages one record of the session with the key `?`.
QUERIES = {
    "session": "UPDATE sessions SET body = '{' WHERE key = ?",
    "stats": "UPDATE sessions SET stats = '{' WHERE key = ?",
    "turns": "UPDATE continuations SET body = '{' WHERE session = ?",
    "ending": "UPDATE continuations SET ending = '{' WHERE session = ?",
    "steps": "UPDATE steps SET body = '{' WHERE session = ?",
    "messages": "UPDATE messages SET body = '{' WHERE session = ?",
}
FILES = {
    "session": "session.json",
    "turns": "turns/*.json",
    "steps": "logs/*.log",
}
CASES = [("sqlite", what) for what in QUERIES] + [("files", what) for what in FILES]


def damage(backend, folder, session, what):
    if backend == "sqlite":
        with closing(sqlite3.connect(folder / "sash.db")) as db, db:
            [key] = db.execute("SELECT key FROM sessions WHERE id = ?", (session.id,)).fetchone()
            assert db.execute(QUERIES[what], (key,)).rowcount
    else:
        for path in (folder / "data" / "sessions" / session.id).glob(FILES[what]):
            path.write_bytes(path.read_bytes()[:40])


async def turn(runtime, session, message):
    """Send a message and wait for its answer."""
    sent = await runtime.send_message(session.id, message, owner=session.owner)
    return await runtime.await_continuation(sent.id, owner=session.owner, timeout_s=WAIT_S)


async def make_session(runtime, owner):
    """Return a session with a turn that has ended."""
    session = await runtime.start_session(policy=RESUMES, owner=owner, preferences={"note": SECRET})
    await turn(runtime, session, SECRET)
    await runtime.search("password", owner=owner)
    return session


async def begin_turns(runtime, session):
    """Leave a running turn and a queued one."""
    for _ in range(2):
        await runtime.send_message(session.id, SECRET, owner=session.owner, busy="enqueue")


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
async def damaged(request, tmp_path):
    """Return a function that opens the store, a damaged session, and a sound one of another owner."""
    backend, what = request.param
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))

    def reopen(model=None):
        return Runtime(BACKENDS[backend](tmp_path, clock), model or ScriptedModel("ok"), clock=clock)

    async with reopen() as runtime:
        bad, sound = await make_session(runtime, "ann"), await make_session(runtime, "bob")
    model = WaitingModel("never")
    async with reopen(model) as runtime:
        await begin_turns(runtime, bad)
        await begin_turns(runtime, sound)
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        await runtime.abandon_turns()
    damage(backend, tmp_path, bad, what)
    return reopen, clock, bad, sound


async def test_the_turns_of_others_go_on(damaged, caplog):
    reopen, _, _, sound = damaged
    for _ in range(2):
        async with reopen() as runtime:
            await runtime.recover()
            for one in await runtime.store.list_continuations("bob", sound.id):
                ended = await runtime.await_continuation(one.id, owner="bob", timeout_s=WAIT_S)
                assert ended.status == "completed"
            assert (await turn(runtime, sound, "more")).status == "completed"
            await runtime.wait_for_turns()
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert not any("swordfish" in line for line in logged)


async def test_sweeps_and_searches_of_others_go_on(damaged):
    reopen, clock, _, sound = damaged
    async with reopen() as runtime:
        await runtime.wait_for_turns()
        clock.advance(2 * DAY_S)
        await runtime.sweep()
        assert await runtime.search("password", owner="bob")
        await runtime.statistics(owner="bob")
        await runtime.statistics(owner="ann")
        clock.advance(8 * DAY_S)
        await runtime.sweep()
        assert (await runtime.get_session(sound.id, owner="bob")).status == "expired"


async def test_the_damaged_session_can_be_deleted(damaged):
    reopen, _, bad, sound = damaged
    async with reopen() as runtime:
        await runtime.delete_session(bad.id, owner="ann")
        new = await runtime.start_session(owner="ann")
        assert (await turn(runtime, new, "hello")).status == "completed"
    async with reopen() as runtime:
        with pytest.raises(SashError):
            await runtime.get_session(bad.id, owner="ann")
        assert (await runtime.get_session(sound.id, owner="bob")).id == sound.id
