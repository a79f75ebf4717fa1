"""The store as files that a person can read, for one process at a time.

    sessions/{session}/session.json       the session and its window, as of the last turn
    sessions/{session}/.session.json.synced  the last one that was synced, if the present one was not
    sessions/{session}/owner.json         the owner of the messages that were imported without turns
    sessions/{session}/turns/{turn}.json  a continuation and its messages
    sessions/{session}/turns/imported.ndjson  messages that were imported without turns
    sessions/{session}/logs/{turn}.log    its steps, one JSON object per line: the journal
    sessions/{session}/vectors.ndjson     vectors of evicted messages, if there is an embedder, by write
    artifacts/{artifact}                  large results
    owners/{hash of the owner}.json       the notes of an owner, for all sessions
    index/meta.json                       the versions of this layout and of the indexes for searches
    index/spent.json                      money of deleted turns, and of work outside of turns

The logs are the truth. A write is one append to one log, with one fsync. The last line of a write has a
`commit`. Lines after the last commit are an incomplete write and are removed. A complete line that cannot
be read is damage: the whole log is kept as `.damaged`. So is a log without any commit. The other files
are replaced whole and may lack the latest changes, which are replayed from the logs when a session is
read. A sweep writes the file of a turn before it deletes the turn's log.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar, TypeVar

from sash.errors import StoreUnavailable
from sash.stores.backend import StoreCheck, StoreSettings
from sash.stores.files.check import check_folder
from sash.stores.files.damage import Damage
from sash.stores.files.file_ledgers import FileLedgers
from sash.stores.files.records import LAYOUT_FILE
from sash.stores.ledger.ledgers import Ledgers
from sash.stores.ledger.store import LedgerStore
from sash.stores.run_to_end import run_to_end
from sash.values.clock import Clock, SystemClock

T = TypeVar("T")


class FilesStore(LedgerStore):
    """Sessions as files. `open` raises `StoreUnavailable` if another process has the folder open."""

    is_durable: ClassVar[bool] = True
    is_shared: ClassVar[bool] = False

    def __init__(self, folder: str | Path, *, clock: Clock | None = None) -> None:
        self._ledgers = FileLedgers(Path(folder), clock or SystemClock())
        self._thread: ThreadPoolExecutor | None = None

    @classmethod
    def from_settings(cls, settings: StoreSettings) -> "FilesStore":
        return cls(settings.make_folder(), clock=settings.clock)

    @classmethod
    def exists(cls, settings: StoreSettings) -> bool:
        folder = settings.folder
        return (folder / LAYOUT_FILE).exists() or any(folder.glob("sessions/*"))

    @classmethod
    def check(cls, settings: StoreSettings) -> StoreCheck:
        return check_folder(settings.folder)

    @property
    def damaged(self) -> list[Damage]:
        """The files that could not be read completely so far."""
        return self._ledgers.damage.found

    async def open(self) -> None:
        """Open the folder. If the caller is cancelled, the folder is open anyway and has to be closed."""
        if self._thread is None:
            await run_to_end(self._open())

    async def _open(self) -> None:
        await asyncio.to_thread(self._ledgers.open)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sash-files")

    async def close(self) -> None:
        """Run the jobs that wait, and close the folder, even if the caller is cancelled."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await run_to_end(self._close(thread))

    async def _close(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(thread, self._ledgers.run, lambda _: self._ledgers.close())
        thread.shutdown()

    async def _run(self, job: Callable[[Ledgers], T]) -> T:
        """Run a job in the only thread that uses the ledgers and their files."""
        if self._thread is None:
            raise StoreUnavailable("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ledgers.run, job)
