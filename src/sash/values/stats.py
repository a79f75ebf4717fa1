"""Counts and costs of turns. They add up: to a session, a day, an owner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Le

from sash.values.bounds import Cost, Duration, Natural

# Durations are counted in buckets that grow by a fifth, so that they add up and give percentiles.
_BUCKETS_PER_DOUBLING = 4
Bucket = Annotated[int, Ge(0), Le(200)]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of turns, calls and tokens, money and time.

    A local turn needed no model. `reported_tokens` is the part of `input_tokens` that the provider counted,
    and `counted_tokens` our own count for the same calls. The price of an unpriced call is unknown.
    """

    turns: Natural = 0
    failed_turns: Natural = 0
    cancelled_turns: Natural = 0
    local_turns: Natural = 0
    steps: Natural = 0
    model_calls: Natural = 0
    tool_calls: Natural = 0
    input_tokens: Natural = 0
    cached_tokens: Natural = 0
    output_tokens: Natural = 0
    reasoning_tokens: Natural = 0
    counted_tokens: Natural = 0
    reported_tokens: Natural = 0
    cost_usd: Cost = 0.0
    unpriced_calls: Natural = 0
    duration_ms: Duration = 0
    durations: dict[Bucket, Natural] = field(default_factory=dict)
    errors: dict[str, Natural] = field(default_factory=dict)
    evicted_messages: Natural = 0

    def __add__(self, other: "Stats") -> "Stats":
        return Stats(
            self.turns + other.turns,
            self.failed_turns + other.failed_turns,
            self.cancelled_turns + other.cancelled_turns,
            self.local_turns + other.local_turns,
            self.steps + other.steps,
            self.model_calls + other.model_calls,
            self.tool_calls + other.tool_calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.counted_tokens + other.counted_tokens,
            self.reported_tokens + other.reported_tokens,
            self.cost_usd + other.cost_usd,
            self.unpriced_calls + other.unpriced_calls,
            self.duration_ms + other.duration_ms,
            _merge(self.durations, other.durations),
            _merge(self.errors, other.errors),
            self.evicted_messages + other.evicted_messages,
        )

    def at_least(self, other: "Stats") -> "Stats":
        """Return the larger of both numbers for each field."""
        larger: dict[str, Any] = {}
        for name in self.__slots__:
            one, two = getattr(self, name), getattr(other, name)
            is_dict = isinstance(one, dict)
            larger[name] = (
                two | {k: max(n, two.get(k, 0)) for k, n in one.items()} if is_dict else max(one, two)
            )
        return Stats(**larger)

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


NO_STATS = Stats()


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens and the price of one model call. `cost_usd` is None if the price is unknown.

    `counted_tokens` is our own count of the prompt. With `estimated` the provider reported no usage, so the
    other counts are ours, too.
    """

    model: str
    input_tokens: Natural
    cached_tokens: Natural
    output_tokens: Natural
    reasoning_tokens: Natural
    counted_tokens: Natural
    estimated: bool
    cost_usd: Cost | None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def sum_bills(bills: Sequence[Bill], **outcome: Any) -> Stats:
    """Add up the bills of model calls. `outcome` has the other fields of the result."""
    reported = [bill for bill in bills if not bill.estimated]
    total: dict[str, Any] = {
        "model_calls": len(bills),
        "input_tokens": sum([bill.input_tokens for bill in bills]),
        "cached_tokens": sum([bill.cached_tokens for bill in bills]),
        "output_tokens": sum([bill.output_tokens for bill in bills]),
        "reasoning_tokens": sum([bill.reasoning_tokens for bill in bills]),
        "counted_tokens": sum([bill.counted_tokens for bill in reported]),
        "reported_tokens": sum([bill.input_tokens for bill in reported]),
        "cost_usd": sum([bill.cost_usd or 0.0 for bill in bills]),
        "unpriced_calls": sum([bill.cost_usd is None for bill in bills]),
    }
    return Stats(**total | outcome)


K = TypeVar("K")


def _merge(one: dict[K, int], other: dict[K, int]) -> dict[K, int]:
    if not other:
        return one
    merged = dict(one)
    for key, count in other.items():
        merged[key] = merged.get(key, 0) + count
    return merged


def bucket(milliseconds: float) -> int:
    """Return the number of the histogram bucket in which a duration is counted."""
    return round(_BUCKETS_PER_DOUBLING * math.log2(max(milliseconds, 1)))


def summary(stats: Stats) -> dict[str, Any]:
    """Return the numbers that users see. Shares, means and percentiles are computed here."""
    turns, tokens = stats.turns, stats.input_tokens
    return {
        "total_requests": turns,
        "local_count": stats.local_turns,
        "model_count": turns - stats.local_turns,
        "local_share": _share(stats.local_turns, turns),
        "model_share": _share(turns - stats.local_turns, turns),
        "failed_requests": stats.failed_turns,
        "cancelled_requests": stats.cancelled_turns,
        "errors": dict(stats.errors),
        "mean_ms": round(stats.duration_ms / sum(stats.durations.values())) if stats.durations else 0,
        "p95_ms": _percentile(stats.durations, 0.95),
        "model_calls": stats.model_calls,
        "tool_calls": stats.tool_calls,
        "evicted_messages": stats.evicted_messages,
        "total_tokens": stats.total_tokens,
        "input_tokens": tokens,
        "cached_tokens": stats.cached_tokens,
        "output_tokens": stats.output_tokens,
        "reasoning_tokens": stats.reasoning_tokens,
        "cached_share": _share(stats.cached_tokens, tokens),
        "estimated_cost_usd": round(stats.cost_usd, 6),
        "unpriced_calls": stats.unpriced_calls,
        "token_drift": _share(stats.counted_tokens - stats.reported_tokens, stats.reported_tokens),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _percentile(durations: dict[int, int], share: float) -> int:
    """Return the duration in ms that this share of the turns did not exceed, rounded to its bucket."""
    wanted = math.ceil(share * sum(durations.values()))
    for n in sorted(durations):
        wanted -= durations[n]
        if wanted <= 0:
            return round(2 ** (n / _BUCKETS_PER_DOUBLING))
    return 0
