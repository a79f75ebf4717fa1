"""Whether the store works: asked often, for example by a supervisor, and answered without much work."""

import asyncio
import logging
from datetime import datetime, timedelta

from sash.errors import SashError, StoreUnavailable
from sash.ports.store import Store
from sash.values.clock import Clock

# A store that can be written is not written again for this time.
WRITE_INTERVAL = timedelta(seconds=10)
TIMEOUT_S = 5.0

_logger = logging.getLogger(__name__)


class Readiness:
    """Checks that a store can be read, and at most once in `WRITE_INTERVAL` that it can be written."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._checked_at: datetime | None = None
        self._error: SashError | None = None
        self._write_check: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raise `StoreUnavailable` if the store cannot be read or written, or does not answer in time."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._store.last_id()
                if self._is_due():
                    # Callers share one check. It continues if a caller goes away.
                    self._write_check = self._write_check or asyncio.create_task(self._check_write())
                    await asyncio.shield(self._write_check)
        except TimeoutError as error:
            raise StoreUnavailable(f"the store did not answer within {TIMEOUT_S:g} seconds") from error
        if self._error is not None:
            raise StoreUnavailable(self._error.message)

    async def close(self) -> None:
        if self._write_check is not None:
            self._write_check.cancel()
            await asyncio.gather(self._write_check, return_exceptions=True)

    def _is_due(self) -> bool:
        if self._checked_at is None:
            return True
        return not timedelta(0) <= self._clock.now() - self._checked_at < WRITE_INTERVAL

    async def _check_write(self) -> None:
        try:
            await self._store.check_write()
            self._error = None
        except SashError as error:
            _logger.error("the store cannot be written: %s", error)
            self._error = error
        finally:
            self._checked_at, self._write_check = self._clock.now(), None
