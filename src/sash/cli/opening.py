"""A runtime in this process, on the same store as a server that may run, and the desk in front of it.

A command does its own work and no other: what a dead process has left behind is marked, and left to a server
or to who asks for it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from sash.app.access import Caller
from sash.app.assembly import make_runtime
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.cli.logs import quiet
from sash.cli.options import Place
from sash.engine.runtime import Runtime
from sash.errors import StoreUnavailable

# Who sits in front of it sees text as it is written.
PARTIAL_INTERVAL_S = 0.1

T = TypeVar("T")
Work = Callable[[AgentService, Caller], Awaitable[T]]


@asynccontextmanager
async def talking(settings: Settings) -> AsyncIterator[AgentService]:
    """Open a runtime that runs turns, and only those that are asked for here."""
    runtime = make_runtime(settings, partial_interval_s=PARTIAL_INTERVAL_S)
    await _open(runtime, settings, runtime.open(recover=False))
    try:
        yield AgentService(runtime)
    finally:
        await runtime.close()


@asynccontextmanager
async def reading(settings: Settings, *, with_house: bool = False) -> AsyncIterator[AgentService]:
    """Open a runtime that runs no turns, and needs neither model nor house, unless their parts are shown."""
    if not with_house:
        settings = replace(settings, model=None, home="none", home_url=None, home_token=None, vocabulary=None)
    runtime = make_runtime(settings)
    await _open(runtime, settings, runtime.store.open())
    try:
        await runtime.drain()
        await runtime.store.interrupt_lost()
        yield AgentService(runtime)
    finally:
        await runtime.close()


def read(place: Place, work: Work[T], *, with_house: bool = False) -> T:
    """Do something at the desk for which no turn has to run."""

    async def do(settings: Settings) -> T:
        async with reading(settings, with_house=with_house) as desk:
            return await work(desk, Caller(place.owner))

    return asyncio.run(do(quiet(place.load())))


async def _open(runtime: Runtime, settings: Settings, opening: Awaitable[None]) -> None:
    try:
        await opening
    except StoreUnavailable as error:
        if settings.store != "files":
            raise
        raise StoreUnavailable(
            f"{error.message}. If `sash serve` has it open, ask that server over HTTP"
        ) from error
