"""The store in memory: nothing outlives the process, everything else is as in the others."""

from collections.abc import Callable
from typing import TypeVar

from sash.stores.ledger.ledgers import Ledgers
from sash.stores.ledger.store import LedgerStore
from sash.values.clock import Clock, SystemClock

T = TypeVar("T")


class MemoryStore(LedgerStore):
    """Sessions in a dict."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._ledgers = Ledgers(clock or SystemClock())

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _run(self, job: Callable[[Ledgers], T]) -> T:
        return job(self._ledgers)
