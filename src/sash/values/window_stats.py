"""Counts of the messages and tokens in windows, for one window and for all windows of an owner."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

# A window that is fuller than this many percent is nearly full.
MAX_HEALTHY_UTILIZATION = 95.0
# An owner may use any number of tags, so a sum shows only the most frequent ones.
MAX_SUMMED_TAGS = 50

Health = Literal["ok", "nearly_full", "over_budget"]


@dataclass(frozen=True, slots=True)
class WindowStats:
    """The counts of one window. `utilization` is the used share of `max_tokens` in percent.

    `over_budget` is True if the remaining messages may not be evicted, although they exceed `max_tokens`.
    """

    message_count: int
    current_tokens: int
    max_tokens: int | None
    turn_count: int | None = None
    max_turns: int | None = None
    evicted_count: int = 0
    tag_distribution: Mapping[str, int] = field(default_factory=dict)
    utilization: float = 0.0
    over_budget: bool = False
    health: Health = "ok"

    def __post_init__(self) -> None:
        limit = self.max_tokens
        object.__setattr__(self, "utilization", 100 * self.current_tokens / limit if limit else 0.0)
        object.__setattr__(self, "over_budget", limit is not None and self.current_tokens > limit)
        nearly_full: Health = "nearly_full" if self.utilization > MAX_HEALTHY_UTILIZATION else "ok"
        object.__setattr__(self, "health", "over_budget" if self.over_budget else nearly_full)


@dataclass(frozen=True, slots=True)
class WindowTotals:
    """The sums of several windows. `health` counts the windows in each state."""

    windows: int = 0
    message_count: int = 0
    current_tokens: int = 0
    evicted_count: int = 0
    health: Mapping[Health, int] = field(default_factory=dict)
    tag_distribution: Mapping[str, int] = field(default_factory=dict)


def sum_windows(windows: Iterable[WindowStats], tags: Mapping[str, int] | None = None) -> WindowTotals:
    """Add up windows. `tags` are the sums of their tags, if the windows have none themselves."""
    found = list(windows)
    counts = Counter(tags or {})
    for window in found:
        counts.update(window.tag_distribution)
    health: dict[Health, int] = {"ok": 0, "nearly_full": 0, "over_budget": 0}
    for window in found:
        health[window.health] += 1
    return WindowTotals(
        len(found),
        sum(window.message_count for window in found),
        sum(window.current_tokens for window in found),
        sum(window.evicted_count for window in found),
        health,
        dict(counts.most_common(MAX_SUMMED_TAGS)),
    )
