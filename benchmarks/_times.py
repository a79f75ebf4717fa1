"""The best, the median and the worst of several times."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Times(NamedTuple):
    """The best, the median and the worst time in ms."""

    best: float
    median: float
    worst: float

    @classmethod
    def from_seconds(cls, seconds: Sequence[float]) -> "Times":
        return cls(min(seconds) * 1e3, statistics.median(seconds) * 1e3, max(seconds) * 1e3)
