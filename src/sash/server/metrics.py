"""Numbers for Prometheus. Each app has a registry of its own, so that two live in one process."""

from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.engine.worker import ContinuationResult
from sash.values.stats import NO_STATS

# Whoever makes up a method makes up no series.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# The status of a request whose client did not wait for its answer.
GONE = 499
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "sash_http_requests", "Requests by route", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "sash_http_request_seconds",
            "How long requests took, but event streams",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._turns = Counter("sash_turns", "Turns by how they ended", ("status",), registry=self.registry)
        self._turn_seconds = Histogram(
            "sash_turn_seconds", "How long turns took", buckets=_BUCKETS, registry=self.registry
        )
        self._tokens = Counter("sash_tokens", "Tokens by kind", ("kind",), registry=self.registry)
        self._calls = Counter("sash_calls", "Calls of models and tools", ("kind",), registry=self.registry)
        self._dollars = Counter("sash_cost_usd", "What models and tools have cost", registry=self.registry)
        self.subscribers = Gauge("sash_subscribers", "Who listens to events", registry=self.registry)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        return generate_latest(self.registry)

    def count_turn(self, result: ContinuationResult) -> None:
        """Count a turn that is over."""
        stats = result.continuation.stats or NO_STATS
        self._turns.labels(result.status).inc()
        self._turn_seconds.observe(stats.duration_ms / 1000)
        for kind in ("input", "cached", "output"):
            self._tokens.labels(kind).inc(getattr(stats, f"{kind}_tokens"))
        self._calls.labels("model").inc(stats.model_calls)
        self._calls.labels("tool").inc(stats.tool_calls)
        self._dollars.inc(stats.cost_usd)

    def count_request(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request; one that streams events has no duration to speak of."""
        self._requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self._seconds.observe(seconds)


class Counting:
    """Counts the requests that pass."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, streams = perf_counter(), GONE, False

        async def sending(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                streams = any(value.startswith(b"text/event-stream") for _, value in message["headers"])
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            status = 500 if status == GONE else status
            raise
        finally:
            route = getattr(scope.get("route"), "path", "none")
            seconds = None if streams else perf_counter() - started
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.count_request(method, route, status, seconds)
