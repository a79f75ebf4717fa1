"""`sash serve`: it listens, says where and with what, and drains when it is told to stop."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn
from rich.markup import escape

from sash import __version__
from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE, make_runtime
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.engine.runtime import Runtime
from sash.engine.worker import ContinuationResult
from sash.errors import InvalidConfig
from sash.server.app import make_app
from sash.server.gate import refuse_open_bind
from sash.server.metrics import Metrics
from sash.server.protocol import Protocol
from sash.server.tracing import Tracing

GRACE_S = 3.0
CONNECTIONS_S = 1
BACKLOG = 2048
UNREAD_MS = 30_000
MAX_HEADER_BYTES = 32 * 1024


class Server(uvicorn.Server):
    """Listens for an app. Before it stops, turns that are under way are brought to an end or marked."""

    def __init__(self, config: uvicorn.Config, runtime: Runtime) -> None:
        super().__init__(config)
        self._runtime = runtime
        self.listens = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: who runs this has them."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._runtime.drain(grace_s=GRACE_S)
        await super().shutdown(sockets)


@asynccontextmanager
async def listening(
    runtime: Runtime, settings: Settings, metrics: Metrics, tracing: Tracing | None = None
) -> AsyncIterator[str]:
    """Serve a runtime that is open, for as long as the context lasts; gives the address."""
    tokens = Tokens(settings.folder / TOKENS_FILE)
    refuse_open_bind(settings, tokens.list())
    app = make_app(AgentService(runtime), settings, tokens, metrics, tracing)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=CONNECTIONS_S,
    )
    server = Server(config, runtime)
    with _bound(settings) as bound:
        serving = asyncio.create_task(server.serve([bound]))
        serving.add_done_callback(lambda _: server.listens.set())
        try:
            await server.listens.wait()
            if serving.done():
                raise InvalidConfig("the server could not start: see its log") from serving.exception()
            yield _address(bound)
        finally:
            server.should_exit = True
            await serving


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until somebody says that it is enough; `say` is told what there is to know."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, say))


async def _serve(settings: Settings, say: Callable[[str], None]) -> None:
    metrics = Metrics()
    tracing = Tracing(settings.otel_endpoint) if settings.otel_endpoint else None

    def on_turn(result: ContinuationResult) -> None:
        metrics.count_turn(result)
        if tracing is not None:
            tracing.trace_turn(result)

    enough = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, enough.set)
    try:
        async with (
            make_runtime(settings, on_turn=on_turn) as runtime,
            listening(runtime, settings, metrics, tracing) as address,
        ):
            for line in _banner(settings, address):
                say(line)
            await enough.wait()
            say("Stopping: no new turns; those under way are brought to an end, or marked.")
    finally:
        if tracing is not None:
            await asyncio.to_thread(tracing.close)
    say("Stopped.")


def _banner(settings: Settings, address: str) -> Iterator[str]:
    """Say where it listens, what house and model it has, and how to change that."""
    address = escape(address)
    yield f"[bold]Sash {__version__}[/] listens at [bold cyan]{address}[/]"
    if settings.home_url:
        yield f"  house  {escape(settings.home_url)}"
    else:
        yield f"  house  {'the demo house' if settings.home == 'demo' else 'none'}"
        yield "         [dim]your own: SASH_HOME_URL=http://homeassistant.local:8123 SASH_HOME_TOKEN=…[/]"
    yield f"  model  {escape(settings.model or 'offline: it understands little, and needs no network')}"
    if not settings.model:
        yield "         [dim]a real one: SASH_MODEL=gpt-5-mini SASH_API_KEY=…[/]"
    kept = "in memory only" if settings.store == "memory" else f"{settings.folder} ({settings.store})"
    yield f"  data   {escape(kept)}"
    yield f"  docs   {address}/docs   MCP  {address}/mcp"
    yield "  [dim]sash doctor shows all settings, sash chat talks to the house, Ctrl-C stops.[/]"


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With its protocol named, the loop knows that answers need not wait for each other (TCP_NODELAY).
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(AttributeError, OSError):  # What nobody takes is dropped with its connection, on Linux.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
        try:
            bound.bind((settings.host, settings.port))
        except OSError as error:
            raise InvalidConfig(
                f"cannot listen at {settings.host}:{settings.port} ({error.strerror}): choose another with "
                "--port or SASH_PORT",
                option="port",
            ) from error
        bound.listen(BACKLOG)
        bound.setblocking(False)
        yield bound


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _loop_factory() -> Callable[[], Any]:
    """Return uvloop's loop where there is one."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop
