"""A runtime on each embedded store, with a model that says what the test tells it to."""

from datetime import UTC

import pytest

from sash import Runtime
from sash.testing import FakeClock, ScriptedModel
from tests.backends import BACKENDS


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=BACKENDS)
def make_store(request, tmp_path, clock):
    return lambda: BACKENDS[request.param](tmp_path, clock)


@pytest.fixture
async def run(make_store, clock):
    """Return a function that opens a runtime: `run("a line", "another", tools=[…])`."""
    opened = []

    async def run(*lines, tools=(), store=None, model=None, **options):
        runtime = Runtime(
            store or make_store(),
            model or ScriptedModel(*(lines or ("ok",))),
            tools,
            **{"clock": clock, "partial_interval_s": 0, "time_zone": UTC} | options,
        )
        await runtime.open()
        opened.append(runtime)
        return runtime

    yield run
    for runtime in opened:
        await runtime.close()
