"""Finds what was said in a period, for questions with a time and without a topic."""

from collections.abc import Collection

from sash.memory.recall_ranking import Period, Place, order_by_stretch
from sash.ports.store import Store

# A long period is sampled: at most 40 parts of 10 messages, spread evenly.
MAX_PARTS, PART = 40, 10
# This number of positions is read to find one message that was said. Calls of tools stand between them.
PROBE = 64


class PeriodSearch:
    """Finds the messages of one session by their time. Without `with_window`, only evicted ones."""

    def __init__(self, store: Store, owner: str, session_id: str, *, with_window: bool = False) -> None:
        self._store = store
        self._owner = owner
        self._session_id = session_id
        self._with_window = with_window

    async def find(self, period: Period) -> list[Place]:
        """Return what was said in a period, the first turn of each stretch of conversation first."""
        first, end = await self._find_first(period.start), await self._find_first(period.end)
        said = await self._read(_spread(range(first, end)))
        return order_by_stretch([place for place in said if period.start <= place.at < period.end])

    async def _find_first(self, at: float) -> int:
        """Return the position of the first message since a time. Later messages have higher positions."""
        low, high = 1, PROBE
        while (probe := await self._find_next(high, high + PROBE)) is not None and probe.at < at:
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            probe = await self._find_next(middle, min(high, middle + PROBE))
            if probe is None or probe.at >= at:
                high = middle
            else:
                low = probe.position + 1
        return low

    async def _find_next(self, start: int, end: int) -> Place | None:
        """Return the first message that was said between two positions."""
        return next(iter(await self._read(range(start, end))), None)

    async def _read(self, positions: Collection[int]) -> list[Place]:
        return await self._store.read_places(
            self._owner, self._session_id, positions, with_window=self._with_window
        )


def _spread(positions: range) -> Collection[int]:
    """Return all positions, or those of parts that are spread over them if there are too many."""
    if len(positions) <= MAX_PARTS * PART:
        return positions
    starts = (positions.start + len(positions) * n // MAX_PARTS for n in range(MAX_PARTS))
    return [at for start in starts for at in range(start, start + PART)]
