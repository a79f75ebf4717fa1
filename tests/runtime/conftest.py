"""Runtimes with a scripted model: on each embedded store, and with a home."""

import asyncio
from datetime import UTC

import pytest

from sash import Runtime
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from tests.backends import BACKENDS
from tests.home.small_home import house
from tests.runtime.talk import WAIT_S


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


@pytest.fixture
async def live(monkeypatch):
    """Return a function that opens a runtime with a home: `live("a line", "another")`."""
    monkeypatch.setattr("sash.home.actions.READ_BACK_S", 0.01)
    made = []

    async def make(*lines, home=None, store=None, **options):
        home = home or house()
        model = ScriptedModel(*(lines or ("The model was asked.",)))
        clock = FakeClock()
        runtime = Runtime(store or MemoryStore(), model, home=home, **{"clock": clock, **options})
        runtime.house, runtime.clock = home, clock
        await runtime.open()
        made.append(runtime)
        async with asyncio.timeout(WAIT_S):
            await runtime.home.wait_until_ready()
        return runtime

    yield make
    for runtime in made:
        await runtime.close()
