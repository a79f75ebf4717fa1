"""A disk is full or read-only. `/ready` says so, without a write for each request."""

import asyncio
import resource
from contextlib import contextmanager

import pytest

from sash import Runtime
from sash.engine import readiness
from sash.errors import StoreUnavailable
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from tests.backends import BACKENDS, DURABLE
from tests.recovery.disk import limit_files
from tests.surfaces.serving import problem, serving

INTERVAL_S = readiness.WRITE_INTERVAL.total_seconds()


class CountingStore(MemoryStore):
    """Counts the checks. A check fails if there is an `error`, and waits if `waits`."""

    def __init__(self):
        super().__init__()
        self.checks, self.error, self.waits = 0, None, False

    async def check_write(self):
        self.checks += 1
        if self.waits:
            await asyncio.Event().wait()
        if self.error:
            raise self.error


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=DURABLE)
async def runtime(request, tmp_path, clock):
    async with Runtime(BACKENDS[request.param](tmp_path, clock), ScriptedModel("ok"), clock=clock) as runtime:
        yield runtime


@contextmanager
def full_disk():
    """Let the kernel refuse every write to a file."""
    limit_files(0)
    try:
        yield
    finally:
        limit_files(resource.RLIM_INFINITY)


async def test_a_store_that_cannot_be_written_is_not_ready(runtime, clock):
    await runtime.check()
    clock.advance(INTERVAL_S)
    with full_disk():
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="disk"):
                await runtime.check()
    clock.advance(INTERVAL_S)
    await runtime.check()


async def test_the_check_leaves_nothing_behind(runtime, tmp_path, clock):
    session = await runtime.start_session()
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for _ in range(3):
        clock.advance(INTERVAL_S)
        await runtime.check()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert (await runtime.get_session(session.id)).version == 1


async def test_many_requests_write_once_and_a_failure_is_remembered(clock):
    store = CountingStore()
    async with Runtime(store, ScriptedModel("ok"), clock=clock) as runtime:
        await asyncio.gather(*(runtime.check() for _ in range(100)))
        assert store.checks == 1
        store.error = StoreUnavailable("full")
        clock.advance(INTERVAL_S)
        for _ in range(10):
            with pytest.raises(StoreUnavailable, match="full"):
                await runtime.check()
        assert store.checks == 2
        store.error = None
        clock.advance(-3600)
        await runtime.check()
        assert store.checks == 3


async def test_a_disk_that_hangs_is_not_ready_and_is_asked_once(clock, monkeypatch):
    monkeypatch.setattr(readiness, "TIMEOUT_S", 0.01)
    store = CountingStore()
    store.waits = True
    async with Runtime(store, ScriptedModel("ok"), clock=clock) as runtime:
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="did not answer"):
                await runtime.check()
        assert store.checks == 1


async def test_the_route_says_that_the_server_is_not_ready(tmp_path):
    async with serving(tmp_path) as served:
        with full_disk():
            problem(await served.client.get("/ready"), 503, "store_unavailable")
