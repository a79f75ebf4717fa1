"""Reads that wait for their turn while the store is closed."""

import asyncio
import threading

import pytest

from sash.errors import StoreUnavailable
from sash.stores.sqlite.store import SqliteStore
from tests.runtime.talk import WAIT_S


async def test_a_read_that_waits_while_the_store_closes_is_refused(tmp_path):
    """It must not run on connections that are being closed: that can stop the whole process."""
    store = SqliteStore(tmp_path / "sash.db")
    await store.open()
    started, go_on, late = threading.Semaphore(0), threading.Event(), []

    def block(db):
        started.release()
        go_on.wait(WAIT_S)

    database = store.database
    running = [asyncio.create_task(database.read(block, "ann")) for _ in range(2)]
    for _ in running:
        assert await asyncio.to_thread(started.acquire, True, WAIT_S)
    waiting = asyncio.create_task(database.read(late.append, "ann"))
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(StoreUnavailable, match="not open"):
        await asyncio.wait_for(waiting, WAIT_S)
    await asyncio.wait_for(asyncio.gather(closing, *running), WAIT_S)
    assert late == []
