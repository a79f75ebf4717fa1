"""One line a backend: every test of the contract runs against each of them."""

import pytest

from sash.stores.files import FilesStore
from sash.stores.memory import MemoryStore
from sash.stores.sqlite import SqliteStore
from sash.testing import FakeClock

BACKENDS = {
    "memory": lambda folder, clock: MemoryStore(clock=clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "sash.db", clock=clock),
    "files": lambda folder, clock: FilesStore(folder / "data", clock=clock),
}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=BACKENDS)
async def store(request, tmp_path, clock):
    store = BACKENDS[request.param](tmp_path, clock)
    await store.open()
    yield store
    await store.close()
