"""The fixtures of the golden tests."""

import pytest

from sash.testing import FakeClock
from tests.backends import BACKENDS
from tests.golden.world import World


@pytest.fixture(params=BACKENDS)
async def world(request, tmp_path):
    """A runtime on a store of each backend."""
    clock = FakeClock()
    world = World(BACKENDS[request.param](tmp_path, clock), clock)
    yield world
    await world.close()
