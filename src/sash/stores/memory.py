"""The store in memory: nothing outlives the process, everything else is as in the others."""

from collections.abc import Callable
from typing import TypeVar

from sash.clock import Clock, SystemClock
from sash.stores.ledger_store import LedgerStore
from sash.stores.ledgers import Ledgers

T = TypeVar("T")


class MemoryStore(LedgerStore):
    """Sessions in a dict."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._ledgers = Ledgers(clock or SystemClock())

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _do(self, job: Callable[[Ledgers], T]) -> T:
        return job(self._ledgers)
