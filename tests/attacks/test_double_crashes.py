"""Two crashes in a row lose no turn of the files store that was acknowledged.

A crash is simulated before and after every write to the disk. A write that is not synced may be lost with it, as
in a power cut.
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sash.ports.turns import ClaimRequest
from sash.stores import disk
from sash.stores.files.store import FilesStore
from sash.testing import FakeClock
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from sash.values.sessions import Session
from tests.contract.sample_values import PLAN, completed, said

MAX_WRITES = 60


class Crash(BaseException):
    """The process dies."""


class CrashingDisk:
    """Crashes at the moment number `at`: moments 2n and 2n + 1 are before and after write n.

    If `loses_unsynced`, the crash also undoes the writes that were not synced.
    """

    def __init__(self, monkeypatch, at, loses_unsynced):
        self.at, self.loses_unsynced = at, loses_unsynced
        self.moment, self.unsynced = 0, {}
        self._append, self._replace = disk.append, disk.replace
        monkeypatch.setattr(disk, "append", self.append)
        monkeypatch.setattr(disk, "replace", self.replace)

    def append(self, path, lines, *, new=False):
        self._pass()
        self._append(path, lines, new=new)
        self._pass()

    def replace(self, path, content, *, sync):
        self._pass()
        if sync:
            self.unsynced.pop(path, None)
        else:
            self.unsynced.setdefault(path, path.read_bytes() if path.exists() else None)
        self._replace(path, content, sync=sync)
        self._pass()

    def _pass(self):
        if self.moment == self.at:
            self.moment += 1
            self._lose()
            raise Crash
        self.moment += 1

    def _lose(self):
        for path, content in self.unsynced.items() if self.loses_unsynced else ():
            path.unlink() if content is None else path.write_bytes(content)


class Life:
    """The store between two starts.

    `acknowledged` has the texts of the turns that `finish` confirmed, or that a client has read since.
    """

    def __init__(self, folder, clock, acknowledged):
        self.store = FilesStore(folder, clock=clock)
        self._clock = clock
        self.acknowledged = acknowledged

    async def live(self, session_id, name):
        """Run turns, with a change of the session and a sweep between them."""
        await self.store.interrupt_lost()
        found = await self.read_texts(session_id)
        assert found[: len(self.acknowledged)] == self.acknowledged
        self.acknowledged[:] = found
        await self.turn(session_id, f"{name} 1", [PLAN])
        session = await self.store.get_session("ann", session_id)
        await self.store.save_session(replace(session, area=name))
        await self.turn(session_id, f"{name} 2")
        self._clock.advance(3600)
        await self.store.sweep(
            idle_before=self._clock.now() - timedelta(days=7), ended_before=self._clock.now()
        )

    async def read_texts(self, session_id):
        return [m.message.text for m in await self.store.messages("ann", session_id, limit=100)]

    async def turn(self, session_id, text, steps=()):
        now = self._clock.now()
        new = Continuation(new_id(), session_id, "ann", "pending", now, now, ContinuationRequest(text))
        turn = (await self.store.begin(new, ClaimRequest("worker"))).turn
        if steps:
            await self.store.append(turn.lease, steps)
        await self.store.finish(turn.lease, completed(*said(text)))
        self.acknowledged.append(text)
        self._clock.advance(1)


async def check(folder, clock, session_id, acknowledged):
    """Check that a new process finds every acknowledged turn once, also after a sweep."""
    for _ in range(2):
        store = FilesStore(folder, clock=clock)
        await store.open()
        found = [m.message.text for m in await store.messages("ann", session_id, limit=100)]
        assert found[: len(acknowledged)] == acknowledged
        assert len(set(found)) == len(found)
        turns = await store.list_continuations("ann", session_id)
        finished = {turn.request.message for turn in turns if turn.status == "completed"}
        assert set(acknowledged) <= finished
        clock.advance(3600)
        await store.sweep(idle_before=clock.now() - timedelta(days=7), ended_before=clock.now())
        await store.close()
    assert store.damaged == []


async def crash_twice(folder, monkeypatch, first, second, loses_unsynced):
    """Crash at moment `first`, then at moment `second`; return False if the process ended before it."""
    clock, acknowledged = FakeClock(), []
    session = Session(new_id(), "ann", clock.now(), clock.now())
    store = FilesStore(folder, clock=clock)
    await store.open()
    await store.create_session(session)
    await store.close()
    for name, at in ("first", first), ("second", second):
        life = Life(folder, clock, acknowledged)
        await life.store.open()
        with monkeypatch.context() as patch:
            CrashingDisk(patch, at, loses_unsynced)
            try:
                await life.live(session.id, name)
            except Crash:
                has_crashed = True
            else:
                has_crashed = False
            await life.store.close()
        clock.advance(60)  # leases expire
        if not has_crashed:
            break
    await check(folder, clock, session.id, acknowledged)
    return has_crashed


@pytest.mark.parametrize("loses_unsynced", [False, True], ids=["kill", "power cut"])
async def test_two_crashes_at_any_two_writes_lose_no_acknowledged_turn(tmp_path, monkeypatch, loses_unsynced):
    for first in range(MAX_WRITES):
        for second in range(MAX_WRITES):
            folder = tmp_path / f"{first}-{second}"
            try:
                has_crashed = await crash_twice(folder, monkeypatch, first, second, loses_unsynced)
            except AssertionError as error:
                raise AssertionError(f"crashes at moments {first} and {second}: {error}") from error
            if not has_crashed:
                break
        if not has_crashed and second == 0:
            break
    assert first > 20


async def test_creating_sessions_reads_the_folder_once(tmp_path, monkeypatch):
    clock, reads, iterdir = FakeClock(), [], Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: reads.append(path) or iterdir(path))
    store = FilesStore(tmp_path / "data", clock=clock)
    await store.open()
    for _ in range(20):
        await store.create_session(Session(new_id(), "ann", clock.now(), clock.now()))
        assert await store.find_session("ann", "none") is None
    await store.close()
    assert len(reads) == 1
