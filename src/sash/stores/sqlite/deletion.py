"""Deletes sessions and artifacts in slices, so that other writes do not wait long."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from sash.stores.run_to_end import run_to_end
from sash.stores.sqlite import hidden_sessions, retention
from sash.stores.sqlite.database import ALL_OWNERS, Database
from sash.stores.sqlite.retention import DeletionTimes
from sash.values.clock import Clock

# One write hides at most this many sessions.
SESSIONS_AT_ONCE = 50


class Deletion:
    """Deletes records of a database. Sessions are hidden first, and then deleted with all their records."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._used_artifacts: set[str] = set()

    async def delete_sessions(self, hide: Callable[[sqlite3.Connection], list[int]]) -> int:
        """Delete the sessions that `hide` hides, and return their number.

        They are deleted even if the caller is cancelled meanwhile. Hidden sessions would stay in the file.
        """

        async def delete() -> int:
            keys = await self._database.write(hide)
            await self.delete_hidden(keys)
            return len(keys)

        return await run_to_end(delete())

    async def delete_inactive(self, owner: str | None, times: DeletionTimes) -> int:
        """Delete inactive sessions, and return their number. `owner` None means all owners.

        All sessions are hidden before any is deleted, because that merges the full-text index only once.
        """
        find = partial(retention.list_inactive, owner=owner, times=times)
        found = await self._database.read(find, owner or ALL_OWNERS)
        keys: list[int] = []
        for start in range(0, len(found), SESSIONS_AT_ONCE):
            some = found[start : start + SESSIONS_AT_ONCE]
            hide = partial(retention.hide_inactive, found=some, times=times, now=self._clock.now())
            keys += await self._database.write(hide)
        if keys:
            await self.delete_hidden(keys)
        return len(keys)

    async def delete_hidden(self, keys: Sequence[int]) -> None:
        """Delete hidden sessions, even if the caller is cancelled meanwhile."""

        async def delete() -> None:
            await self._database.write_in_slices(partial(hidden_sessions.delete_hidden, keys=keys))
            await self._database.empty_log()

        await run_to_end(delete())

    async def delete_unused_artifacts(self, before: datetime) -> int:
        """Delete artifacts from before `before` that nothing names, and return their number.

        A turn is kept as long as its session, so an artifact that a turn names is looked at only once.
        """

        def find(db: sqlite3.Connection) -> tuple[list[str], set[str]]:
            old = set(retention.list_old_artifacts(db, before))
            known = old & self._used_artifacts
            used = known | {each for each in old - known if retention.is_in_a_turn(db, each)}
            return sorted(old - used), used

        unused, self._used_artifacts = await self._database.read(find, ALL_OWNERS)
        if not unused:
            return 0
        delete = partial(retention.delete_unused, artifact_ids=unused)
        return await self._database.write_in_slices(delete) or 0
