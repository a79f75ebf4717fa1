"""The service in this process, on the same store as a running server.

A command runs only its own turns. Turns of a crashed process are marked as interrupted; a server or
`sash resume` continues them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from sash.app.access import Caller
from sash.app.assembly import make_limits, make_runtime
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.cli.log_setup import log_if_configured
from sash.cli.options import CommonOptions
from sash.errors import SashError, StoreUnavailable
from sash.home.live_home import LiveHome
from sash.stores.registry import find_backend

# Shorter than in a server, so that a terminal shows text while the model writes it.
PARTIAL_INTERVAL_S = 0.1

# The time to wait for the house before a command goes on without it.
HOME_S = 5.0

# The time that a command waits at its end for a sweep. The next command continues an unfinished one.
SWEEP_S = 2.0

# The time to wait for facts, summaries and vectors of the last turn before a command ends without them.
BACKGROUND_S = 15.0

T = TypeVar("T")
Work = Callable[[AgentService, Caller], Awaitable[T]]


@asynccontextmanager
async def open_for_turns(settings: Settings, *, is_operator: bool = False) -> AsyncIterator[AgentService]:
    """Open a service that runs its own turns, and does not resume turns of other processes.

    At the end, wait for the work that follows a turn, such as finding facts, at most for `BACKGROUND_S`.

    If the operator talks to the agent, each session's own allowlist decides. The denylist, the confirmations
    and the budgets of the settings hold as well.
    """
    limits = make_limits(settings)
    if is_operator:
        policy = replace(limits.policy, allow_actuation=True, allowlisted_services=("*",))
        limits = replace(limits, policy=policy)
    runtime = make_runtime(settings, partial_interval_s=PARTIAL_INTERVAL_S, limits=limits)
    await _explain_locked_store(settings, runtime.open(recover=False))
    # Retention must not depend on a server: without one, only commands like `sash ask` open the store.
    sweeping = asyncio.create_task(runtime.sweep())
    try:
        yield AgentService(runtime)
        with suppress(TimeoutError):
            async with asyncio.timeout(BACKGROUND_S):
                await runtime.wait_for_background()
    finally:
        await asyncio.wait([sweeping], timeout=SWEEP_S)
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await runtime.close()


@asynccontextmanager
async def open_for_reading(settings: Settings, *, with_home: bool = False) -> AsyncIterator[AgentService]:
    """Open a service that runs no turns. It has a model and a home only with `with_home`."""
    if not with_home:
        settings = replace(settings, model=None, home="none", home_url=None, home_token=None, vocabulary=None)
    runtime = make_runtime(settings)
    await _explain_locked_store(settings, runtime.store.open())
    try:
        await runtime.drain()
        await runtime.store.interrupt_lost()
        if runtime.home is not None:
            await _connect_home(runtime.home)
        yield AgentService(runtime)
    finally:
        await runtime.close()


def run_with_service(options: CommonOptions, work: Work[T], *, with_home: bool = False) -> T:
    """Run `work` with a service that runs no turns, and return its result."""

    async def run(settings: Settings) -> T:
        async with open_for_reading(settings, with_home=with_home) as service:
            return await work(service, Caller(options.owner))

    return asyncio.run(run(log_if_configured(options.load_settings())))


async def _connect_home(home: LiveHome) -> None:
    """Connect a home, at most for `HOME_S`. Without it, the context lacks the part about the house."""
    await home.open()
    with suppress(TimeoutError, SashError):
        async with asyncio.timeout(HOME_S):
            await home.wait_until_ready()


async def _explain_locked_store(settings: Settings, opening: Awaitable[None]) -> None:
    """Await the opening of a store. If only one process may open it, an error also mentions `sash serve`."""
    try:
        await opening
    except StoreUnavailable as error:
        if find_backend(settings.store).is_shared:
            raise
        raise StoreUnavailable(
            f"{error.message}. If `sash serve` has the store open, send requests to that server over HTTP"
        ) from error
