"""Counts requests and measures their duration."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.server.metrics import Metrics

# Other methods count as "other": a client must not create metrics by inventing methods.
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# The status to count if the client disconnects before the response (as nginx does).
CLIENT_CLOSED_REQUEST = 499


class RequestMetrics:
    """Counts every request by method, route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start_s, status, is_stream = perf_counter(), CLIENT_CLOSED_REQUEST, False

        async def send_observed(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                is_stream = any(value.startswith(b"text/event-stream") for _, value in message["headers"])
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        except Exception:
            status = 500 if status == CLIENT_CLOSED_REQUEST else status
            raise
        finally:
            route = getattr(scope.get("route"), "path", "none")
            duration_s = None if is_stream else perf_counter() - start_s
            method = scope["method"] if scope["method"] in KNOWN_METHODS else "other"
            self._metrics.count_request(method, route, status, duration_s)
