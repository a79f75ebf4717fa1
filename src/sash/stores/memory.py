"""The store in memory. It keeps nothing when the process ends."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

from sash.stores.backend import StoreCheck, StoreSettings
from sash.stores.ledger.ledgers import Ledgers
from sash.stores.ledger.store import LedgerStore
from sash.values.clock import Clock, SystemClock

T = TypeVar("T")


class MemoryStore(LedgerStore):
    """Sessions as ledgers in memory. The data survives `close`, for a later `open` of the same object."""

    is_durable: ClassVar[bool] = False
    is_shared: ClassVar[bool] = False

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._ledgers = Ledgers(clock or SystemClock())

    @classmethod
    def from_settings(cls, settings: StoreSettings) -> "MemoryStore":
        return cls(clock=settings.clock)

    @classmethod
    def exists(cls, settings: StoreSettings) -> bool:
        return False

    @classmethod
    def check(cls, settings: StoreSettings) -> StoreCheck:
        advice = "everything is lost when the program ends: choose sqlite to keep it"
        return StoreCheck("note", settings.store, advice)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _run(self, job: Callable[[Ledgers], T]) -> T:
        return job(self._ledgers)
