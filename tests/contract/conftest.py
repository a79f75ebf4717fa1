"""One line a backend: every test of the contract runs against each of them."""

import pytest

from sash.testing import FakeClock
from tests.backends import BACKENDS


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=BACKENDS)
async def backend(request):
    return request.param


@pytest.fixture
async def store(backend, tmp_path, clock):
    store = BACKENDS[backend](tmp_path, clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(backend, store, tmp_path, clock):
    """Return a function that closes the store and opens it anew; what is in memory only has to stay open."""
    opened = []

    async def reopen():
        if backend == "memory":
            return store
        await (opened[-1] if opened else store).close()
        opened.append(BACKENDS[backend](tmp_path, clock))
        await opened[-1].open()
        return opened[-1]

    yield reopen
    for again in opened:
        await again.close()
