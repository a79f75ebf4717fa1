"""The methods of the service that list records in pages. A page of large records has fewer of them."""

from sash.app.access import Caller
from sash.app.owner_shares import OwnerShares
from sash.app.schemas import MAX_PAGE_CHARS, count_chars
from sash.engine.runtime import Runtime
from sash.ports.store import Page, StoredMessage
from sash.values.requests import ALL_TAGS, TagFilter
from sash.values.sessions import SessionStatus

RECORDS_AT_ONCE = 32


class ListService:
    """Lists of sessions and messages for callers with the scope `read`."""

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

    async def search(
        self, caller: Caller, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        """Find messages by their words, in one session or in all sessions of the caller's owner."""
        caller.need("read")
        async with self.shares.use(caller.owner, "search"):
            return await self.runtime.search(query, owner=caller.owner, session_id=session_id, limit=limit)
