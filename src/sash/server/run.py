"""Runs the server until SIGTERM or SIGINT (`sash serve`)."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from rich.markup import escape

from sash import __version__
from sash.app.assembly import make_runtime
from sash.app.settings import Settings
from sash.app.settings_loader import show_value
from sash.engine.turn.continuation_result import ContinuationResult
from sash.server.listener import listen
from sash.server.metrics import Metrics
from sash.server.tracing import Tracing
from sash.stores.registry import find_backend

# A busy thread gives way to a waiting one after this time. Python's default is 5 ms. The event loop waits for
# threads that compute, and the threads of the store wait for a busy event loop at each SQL statement.
SWITCH_INTERVAL_S = 0.0002
GENERATIONS_PER_FULL_COLLECTION = 1000


def run_server(settings: Settings, show: Callable[[str], None]) -> None:
    """Serve until the process is told to stop. `show` prints a line of rich markup for the operator."""
    _prepare_interpreter()
    _allow_many_connections()
    with asyncio.Runner(loop_factory=_find_loop_factory()) as runner:
        runner.run(_serve(settings, show))


async def _serve(settings: Settings, show: Callable[[str], None]) -> None:
    metrics = Metrics()
    tracing = Tracing(settings.otel_endpoint) if settings.otel_endpoint else None

    def on_turn(result: ContinuationResult) -> None:
        metrics.count_turn(result)
        if tracing is not None:
            tracing.trace_turn(result)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with (
            make_runtime(settings, on_turn=on_turn) as runtime,
            listen(runtime, settings, metrics, tracing) as url,
        ):
            for line in _write_banner(settings, url):
                show(line)
            await stop.wait()
            show("Stopping: running turns finish now, or are marked as interrupted.")
    finally:
        if tracing is not None:
            await asyncio.to_thread(tracing.close)
    show("Stopped.")


def _prepare_interpreter() -> None:
    """Shorten the times in which the event loop waits for other threads and for the garbage collector.

    Full collections stop all requests. They skip the objects that exist now, and become rare: an import or
    an export makes millions of objects, and by default each of them would cause several full collections.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], GENERATIONS_PER_FULL_COLLECTION)


def _allow_many_connections() -> None:
    """Raise the number of files that the process may open to the maximum that the system allows.

    Each connection is one. With the usual limit of 1,024, one client could take them all, and the store
    could open no files.
    """
    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit.
        import resource

        _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))


def _write_banner(settings: Settings, url: str) -> Iterator[str]:
    """Yield the lines that tell the operator the address, the home, the model and the data folder."""
    url = escape(url)
    yield f"[bold]Sash {__version__}[/] listens at [bold cyan]{url}[/]"
    if settings.home_url:
        yield f"  house  {escape(settings.home_url)}"
    else:
        yield f"  house  {'the demo house' if settings.home == 'demo' else 'none'}"
        yield "         [dim]your own: SASH_HOME_URL=http://homeassistant.local:8123 SASH_HOME_TOKEN=…[/]"
    offline = "offline: it answers everyday sentences and needs no network"
    yield f"  model  {escape(settings.model or offline)}"
    if not settings.model:
        yield "         [dim]a real one: SASH_MODEL=gpt-5-mini SASH_API_KEY=…[/]"
    is_durable = find_backend(settings.store).is_durable
    data = f"{settings.folder} ({show_value('store', settings.store)})" if is_durable else "in memory only"
    yield f"  data   {escape(data)}"
    yield f"  docs   {url}/docs   MCP  {url}/mcp"
    yield "  [dim]sash doctor shows all settings, sash chat talks to the house, Ctrl-C stops.[/]"


def _find_loop_factory() -> Callable[[], Any]:
    """Return uvloop's factory if uvloop is installed, else asyncio's."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop
