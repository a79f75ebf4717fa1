"""Prometheus metrics. Each app has its own registry, so that two apps can live in one process."""

from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from sash.engine.turn.continuation_result import ContinuationResult
from sash.ports.store import SweepCounts
from sash.values.stats import NO_STATS
from sash.values.window_stats import WindowTotals

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The counters, gauges and histograms of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "sash_http_requests", "Requests by route", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "sash_http_request_seconds",
            "Duration of requests, without event streams",
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._turns = Counter("sash_turns", "Turns by final status", ("status",), registry=self.registry)
        self._turn_seconds = Histogram(
            "sash_turn_seconds", "Duration of turns", buckets=_BUCKETS_S, registry=self.registry
        )
        self._tokens = Counter("sash_tokens", "Tokens by kind", ("kind",), registry=self.registry)
        self._calls = Counter("sash_calls", "Calls of models and tools", ("kind",), registry=self.registry)
        self._dollars = Counter("sash_cost_usd", "Cost of models and tools in USD", registry=self.registry)
        self._swept = Counter(
            "sash_swept",
            "Records that retention expired or deleted, by kind",
            ("kind",),
            registry=self.registry,
        )
        self._last_swept = SweepCounts()
        self._evicted = Counter(
            "sash_evicted_messages", "Messages that left a window", registry=self.registry
        )
        self._windows = Gauge(
            "sash_windows", "Windows in memory, by state", ("health",), registry=self.registry
        )
        self._window_messages = Gauge(
            "sash_window_messages", "Messages in these windows", registry=self.registry
        )
        self._window_tokens = Gauge("sash_window_tokens", "Tokens in these windows", registry=self.registry)
        self.subscribers = Gauge("sash_subscribers", "Open event streams", registry=self.registry)

    def render(self, windows: WindowTotals) -> bytes:
        """Return all metrics in the Prometheus text format. `windows` are those in memory now."""
        for health, count in windows.health.items():
            self._windows.labels(health).set(count)
        self._window_messages.set(windows.message_count)
        self._window_tokens.set(windows.current_tokens)
        return generate_latest(self.registry)

    def count_swept(self, total: SweepCounts) -> None:
        """Count what the sweeps of a runtime have expired and deleted, given the sums so far."""
        for kind, count in asdict(total).items():
            self._swept.labels(kind).inc(count - getattr(self._last_swept, kind))
        self._last_swept = total

    def count_turn(self, result: ContinuationResult) -> None:
        """Count a finished turn, with its tokens, calls and cost."""
        stats = result.continuation.stats or NO_STATS
        self._turns.labels(result.status).inc()
        self._turn_seconds.observe(stats.duration_ms / 1000)
        for kind in ("input", "cached", "output"):
            self._tokens.labels(kind).inc(getattr(stats, f"{kind}_tokens"))
        self._calls.labels("model").inc(stats.model_calls)
        self._calls.labels("tool").inc(stats.tool_calls)
        self._dollars.inc(stats.cost_usd)
        self._evicted.inc(stats.evicted_messages)

    def count_request(self, method: str, route: str, status: int, duration_s: float | None) -> None:
        """Count a request; `duration_s` is None for event streams, which stay open."""
        self._requests.labels(method, route, str(status)).inc()
        if duration_s is not None:
            self._seconds.observe(duration_s)
