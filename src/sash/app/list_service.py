"""The methods of the service that list records in pages. A page of large records has fewer of them."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from sash.app.access import Caller
from sash.app.owner_shares import OwnerShares
from sash.app.schemas import (
    MAX_PAGE_CHARS,
    ContinuationList,
    ContinuationShown,
    WaitingList,
    WaitingShown,
    count_chars,
)
from sash.engine.runtime import Runtime
from sash.ports.store import Page, StoredMessage
from sash.values.codec import encode
from sash.values.continuations import FINAL, UNFINISHED, Status
from sash.values.requests import ALL_TAGS, TagFilter
from sash.values.sessions import Session, SessionStatus

RECORDS_AT_ONCE = 32


class ListService:
    """Lists of sessions, turns and messages for callers with the scope `read`."""

    runtime: Runtime
    shares: OwnerShares

    async def list_sessions(
        self,
        caller: Caller,
        *,
        status: SessionStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
        with_questions: bool = False,
    ) -> Page:
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.list_sessions(
                owner=caller.owner, status=status, limit=limit, cursor=cursor, with_questions=with_questions
            )

    async def find_titles(self, caller: Caller, sessions: Iterable[Session]) -> dict[str, str | None]:
        """Return the titles of sessions of the caller's owner, by session id."""
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.find_titles(sessions, owner=caller.owner)

    async def list_messages(
        self,
        caller: Caller,
        session_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        tag_filter: TagFilter = ALL_TAGS,
    ) -> list[StoredMessage]:
        """Return messages of a session, in order. There may be fewer than `limit` if they are large.

        With `before`, they are the last ones before that position, else the first ones after `after`.
        """
        caller.need("read")
        found: list[StoredMessage] = []
        async with self.shares.use(caller.owner, "report"):
            while (count := min(limit - len(found), RECORDS_AT_ONCE)) > 0:
                page = await self.runtime.list_messages(
                    session_id,
                    owner=caller.owner,
                    after=after,
                    before=before,
                    limit=count,
                    tags=tag_filter.tags,
                )
                found = found + page if before is None else page + found
                if len(page) < count or sum(map(count_chars, found)) > MAX_PAGE_CHARS:
                    break
                if before is None:
                    after = page[-1].position
                else:
                    before = page[0].position
        return found

    async def list_continuations(
        self,
        caller: Caller,
        *,
        session_id: str | None = None,
        is_open: bool = False,
        status: Status | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ContinuationList:
        """Return turns of the caller's owner or of one session, newest first.

        `is_open` leaves out the turns that have ended. `cursor` is the `next_cursor` of the page before.
        """
        caller.need("read")
        if is_open and status in FINAL:
            return ContinuationList(())
        statuses: Collection[Status] = UNFINISHED if is_open else ()
        if status is not None:
            statuses = (status,)
        page: list[ContinuationShown] = []
        total_chars, has_more = 0, True
        async with self.shares.use(caller.owner, "report"):
            while has_more:
                # One turn more than the page shows whether another page follows.
                count = min(limit + 1 - len(page), RECORDS_AT_ONCE)
                turns = await self.runtime.list_continuations(
                    owner=caller.owner, session_id=session_id, before=cursor, statuses=statuses, limit=count
                )
                for turn in turns:
                    shown = replace(ContinuationShown.of(turn), steps=())
                    total_chars += len(encode(shown))
                    if len(page) == limit or (page and total_chars > MAX_PAGE_CHARS):
                        return ContinuationList(tuple(page), page[-1].continuation_id)
                    page.append(shown)
                has_more = len(turns) == count
                cursor = page[-1].continuation_id if page else None
        return ContinuationList(tuple(page))

    async def list_waiting(self, caller: Caller, session_id: str | None = None) -> WaitingList:
        """Return what one session, or all sessions of the caller's owner, do later."""
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            turns = await self.runtime.list_waiting(session_id, owner=caller.owner)
        describe = self.runtime.describe_waiting
        return WaitingList(tuple(WaitingShown.of(turn, describe(turn)) for turn in turns))

    async def search(
        self,
        caller: Caller,
        query: str,
        *,
        session_id: str | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
    ) -> list[StoredMessage]:
        """Find messages for words or a question, in one session or in all sessions of the caller's owner."""
        caller.need("read")
        async with self.shares.use(caller.owner, "search"):
            return await self.runtime.search(
                query, owner=caller.owner, session_id=session_id, limit=limit, max_tokens=max_tokens
            )
