"""The listening socket and the HTTP server over an open runtime."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn

from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE
from sash.app.early_answer import find_early_wait_s
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.engine.runtime import Runtime
from sash.errors import InvalidConfig
from sash.server.app import make_app
from sash.server.metrics import Metrics
from sash.server.middleware.authentication import check_bind_address
from sash.server.middleware.stopped_requests import StoppedRequests
from sash.server.request_head_timeout import RequestHeadTimeout, make_protocol
from sash.server.timeouts import Timeouts
from sash.server.tracing import Tracing

BACKLOG = 2048
MAX_HEAD_BYTES = 32 * 1024
# uvicorn logs this as an error.
CANCELLED_REQUESTS = "Cancel %s running task(s), timeout graceful shutdown exceeded"


class HttpServer(uvicorn.Server):
    """Serves an app. Before it stops, it drains the runtime: running turns end or are marked interrupted."""

    def __init__(self, config: uvicorn.Config, runtime: Runtime, drain_s: float) -> None:
        super().__init__(config)
        self._runtime = runtime
        self._drain_s = drain_s
        self.is_listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers, because the caller has its own."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._runtime.drain(grace_s=self._drain_s)
        await super().shutdown(sockets)


@asynccontextmanager
async def listen(
    runtime: Runtime,
    settings: Settings,
    metrics: Metrics,
    tracing: Tracing | None = None,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[str]:
    """Serve an open runtime until the context ends. The context returns the URL of the server.

    Raise `InvalidConfig` if the address is taken, or if other machines can reach it and no token exists.
    """
    timeouts = timeouts or Timeouts()
    tokens = Tokens(settings.folder / TOKENS_FILE)
    check_bind_address(settings, tokens.list())
    service = AgentService(runtime, early_wait_s=find_early_wait_s(settings))
    app = make_app(service, settings, tokens, metrics, tracing, timeouts)
    config = uvicorn.Config(
        StoppedRequests(RequestHeadTimeout(app)),
        http=make_protocol(timeouts.request_head_s),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=timeouts.close_s,
    )
    server = HttpServer(config, runtime, timeouts.drain_s)
    with _hide_cancelled_requests(), _bind_socket(settings, timeouts.unread_ms) as bound:
        serving = asyncio.create_task(server.serve([bound]))
        serving.add_done_callback(lambda _: server.is_listening.set())
        try:
            await server.is_listening.wait()
            if serving.done():
                raise InvalidConfig("the server could not start: see its log") from serving.exception()
            yield _get_url(bound)
        finally:
            server.should_exit = True
            await serving


@contextmanager
def _hide_cancelled_requests() -> Iterator[None]:
    """Log nothing about requests that the server cancels when it stops: a client can always cause that."""

    def is_shown(record: logging.LogRecord) -> bool:
        is_cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        return not is_cancelled and record.msg != CANCELLED_REQUESTS

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(is_shown)
    try:
        yield
    finally:
        logger.removeFilter(is_shown)


@contextmanager
def _bind_socket(settings: Settings, unread_ms: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name their protocol.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(AttributeError, OSError):  # Only Linux has this option.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)
        try:
            bound.bind((settings.host, settings.port))
        except OSError as error:
            raise InvalidConfig(
                f"cannot listen at {settings.host}:{settings.port} ({error.strerror}): choose another port "
                "with --port or SASH_PORT",
                option="port",
            ) from error
        bound.listen(BACKLOG)
        bound.setblocking(False)
        yield bound


def _get_url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
