"""A store of every backend. Every test of the contract runs against each of them."""

import pytest

from sash.testing import FakeClock
from tests.backends import BACKENDS, DURABLE


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
    """Return a function that closes the store, and opens a new one on the same data if it is durable."""
    opened = [store]

    async def reopen():
        await opened[-1].close()
        if backend in DURABLE:
            opened.append(BACKENDS[backend](tmp_path, clock))
        await opened[-1].open()
        return opened[-1]

    yield reopen
    for again in opened:
        await again.close()
