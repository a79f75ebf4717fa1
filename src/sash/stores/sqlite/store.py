"""The store on SQLite: the default. It needs no setup, and several processes may open the same file."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from sash.memory.asked_words import AskedWord
from sash.memory.recall_ranking import Place, Spot, WordHits
from sash.ports.store import Artifact, Bundle, Page, StoredMessage, StoredStep, SweepCounts, Vector
from sash.ports.turns import (
    CANCELLED,
    LEASE_S,
    BegunTurn,
    ClaimRequest,
    Cut,
    EndWritten,
    Evicted,
    Lease,
    Turn,
    TurnEnd,
    WaitingStatus,
)
from sash.stores.backend import StoreCheck, StoreSettings
from sash.stores.rules import lease_rules, turn_rules
from sash.stores.sqlite import (
    bundles,
    full_text_index,
    hidden_sessions,
    owner_rows,
    prompt_rows,
    retention,
    spent_rows,
    turns,
    waiting_rows,
    word_search,
)
from sash.stores.sqlite import continuation_rows as continuations
from sash.stores.sqlite import message_rows as messages
from sash.stores.sqlite import session_rows as sessions
from sash.stores.sqlite.check import check_file
from sash.stores.sqlite.continuation_rows import ContinuationQuery
from sash.stores.sqlite.database import ALL_OWNERS, Database, Synchronous
from sash.stores.sqlite.deletion import Deletion
from sash.stores.sqlite.full_text_index import DamagedIndex
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.retention import DeletionTimes
from sash.values.clock import Clock, SystemClock
from sash.values.continuations import Continuation, Status, TurnCaller
from sash.values.messages import ConversationWindow
from sash.values.owner_notes import OwnerNotes
from sash.values.prompts import NO_PROMPTS, SentPrompts
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Step, StepBody
from sash.values.waiting_turns import WaitingTurn
from sash.values.window_stats import WindowTotals

T = TypeVar("T")
# If the index lacks more messages, they are indexed before a search. Fewer are read.
MAX_UNINDEXED = 256

FILE_NAME = "sash.db"


class SqliteStore:
    """Sessions in one SQLite file. With `synchronous="NORMAL"`, a power cut may lose the last commits.

    `database` runs the jobs in its threads. Diagnostics and tests may run jobs of their own.
    """

    is_durable: ClassVar[bool] = True
    is_shared: ClassVar[bool] = True

    def __init__(
        self, path: str | Path, *, synchronous: Synchronous = "FULL", clock: Clock | None = None
    ) -> None:
        self.database = Database(Path(path), synchronous, self._clean_up)
        self._read, self._write = self.database.read, self.database.write
        self._clock = clock or SystemClock()
        self._dead_workers: list[str] = []
        self._deletion = Deletion(self.database, self._clock)

    @classmethod
    def from_settings(cls, settings: StoreSettings) -> "SqliteStore":
        return cls(settings.make_folder() / FILE_NAME, clock=settings.clock)

    @classmethod
    def exists(cls, settings: StoreSettings) -> bool:
        return (settings.folder / FILE_NAME).is_file()

    @classmethod
    def check(cls, settings: StoreSettings) -> StoreCheck:
        return check_file(settings.folder / FILE_NAME)

    async def open(self) -> None:
        self._dead_workers = []
        await self.database.open()

    async def close(self) -> None:
        await self.database.close()

    async def export_key(self) -> bytes:
        key = await self._read(sessions.find_export_key, ALL_OWNERS)
        return await self._write(sessions.replace_export_key) if key is None else key

    async def check_write(self) -> None:
        await self._write(lambda db: db.execute(SQL["check_write"]))

    async def create_session(self, session: Session) -> None:
        await self._write(partial(sessions.create_session, session=session))

    async def open_session(self, session: Session, *, reopen: bool = False) -> Session:
        job = partial(sessions.open_session, session=session, reopen=reopen, now=self._clock.now())
        return await self._write(job)

    async def get_session(self, owner: str, session_id: str) -> Session:
        return await self._read(partial(sessions.get_session, owner=owner, session_id=session_id), owner)

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        with_questions: bool = False,
    ) -> Page:
        return await self._read(
            lambda db: sessions.list_sessions(db, owner, status, name, limit, cursor, with_questions), owner
        )

    async def find_session(self, owner: str, name: str) -> Session | None:
        return await self._read(partial(sessions.find_session, owner=owner, name=name), owner)

    async def count_active(self, owner: str) -> int:
        return await self._read(partial(sessions.count_active, owner=owner), owner)

    async def save_session(self, session: Session, *, cut: Cut | None = None) -> Session:
        def job(db: sqlite3.Connection) -> Session:
            now = self._clock.now()
            if cut is not None:
                turns.cut_window(db, session, cut, now)
            return sessions.save_session(db, session, now)

        return await self._write(job)

    async def delete_session(self, owner: str, session_id: str) -> None:
        def job(db: sqlite3.Connection) -> list[int]:
            retention.keep_costs(db, owner, session_id, self._clock.now())
            return hidden_sessions.hide_session(db, owner, session_id)

        await self._deletion.delete_sessions(job)

    async def list_inactive(self, owner: str, before: datetime) -> list[str]:
        times = DeletionTimes(before, before)
        found = await self._read(lambda db: retention.list_inactive(db, owner, times), owner)
        return [session_id for _, session_id in found]

    async def delete_inactive(self, owner: str, before: datetime) -> int:
        return await self._deletion.delete_inactive(owner, DeletionTimes(before, before))

    async def erase(self, owner: str) -> int:
        def job(db: sqlite3.Connection) -> list[int]:
            retention.keep_costs(db, owner, None, self._clock.now())
            owner_rows.erase_notes(db, owner)
            return hidden_sessions.hide_sessions(db, owner)

        return await self._deletion.delete_sessions(job)

    async def owner_notes(self, owner: str) -> OwnerNotes:
        return await self._read(partial(owner_rows.get_notes, owner=owner), owner)

    async def save_owner_notes(self, notes: OwnerNotes, *, asked_in: str | None = None) -> OwnerNotes:
        def job(db: sqlite3.Connection) -> OwnerNotes:
            if asked_in is not None:
                sessions.find_key(db, notes.owner, asked_in)
            return owner_rows.save_notes(db, notes)

        return await self._write(job)

    async def add_waiting_turn(self, turn: WaitingTurn) -> WaitingTurn:
        return await self._write(partial(waiting_rows.add_waiting_turn, turn=turn))

    async def change_waiting_turn(self, turn: WaitingTurn) -> None:
        await self._write(partial(waiting_rows.change_waiting_turn, turn=turn))

    async def cancel_waiting_turn(self, owner: str, turn_id: str) -> WaitingTurn:
        return await self._write(partial(waiting_rows.cancel_waiting_turn, owner=owner, turn_id=turn_id))

    async def waiting_turns(
        self, owner: str | None = None, *, session_id: str | None = None
    ) -> list[WaitingTurn]:
        def job(db: sqlite3.Connection) -> list[WaitingTurn]:
            if session_id is not None:
                sessions.find_key(db, owner or "", session_id)
            return waiting_rows.list_waiting_turns(db, owner, session_id)

        return await self._read(job, ALL_OWNERS if owner is None else owner)

    async def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        return await self._write(lambda db: turns.begin(db, new, claim, enqueue, self._clock.now()))

    async def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        return await self._write(
            lambda db: turns.claim(db, owner, continuation_id, claim, steps, self._clock.now())
        )

    async def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        return await self._write(lambda db: turns.claim_next(db, session_id, claim, self._clock.now()))

    async def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        release_as: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
        prompts: SentPrompts = NO_PROMPTS,
    ) -> tuple[Step, ...]:
        release = turn_rules.plan_release(release_as, stats)
        return await self._write(
            lambda db: turns.append(db, lease, steps, release, prompts, self._clock.now())
        )

    async def prompts(self, owner: str, continuation_id: str) -> SentPrompts:
        def job(db: sqlite3.Connection) -> SentPrompts:
            turn = continuations.get_continuation(db, owner, continuation_id)
            return prompt_rows.list_prompts(db, sessions.find_key(db, owner, turn.session_id), turn.id)

        return await self._read(job, owner)

    async def find_messages(
        self, owner: str, session_id: str, message_ids: Collection[str]
    ) -> list[StoredMessage]:
        return await self._read_session(
            owner, session_id, lambda db, key: messages.find_messages(db, key, session_id, message_ids)
        )

    async def finish(
        self,
        lease: Lease,
        end: TurnEnd,
        *,
        known: Session | None = None,
        based_on: Session | None = None,
    ) -> EndWritten:
        return await self._write(lambda db: turns.finish(db, lease, end, known, based_on, self._clock.now()))

    async def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        return await self._write(lambda db: turns.record(db, new, end, session, self._clock.now()))

    async def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        return await self._write(
            lambda db: turns.amend(db, owner, continuation_id, text, token_count, self._clock.now())
        )

    async def set_caller(self, owner: str, continuation_id: str, caller: TurnCaller) -> Continuation:
        return await self._write(lambda db: turns.set_caller(db, owner, continuation_id, caller))

    async def cancel(
        self,
        owner: str,
        continuation_id: str,
        reason: str,
        *,
        end: TurnEnd = CANCELLED,
        step_count: int | None = None,
    ) -> Continuation:
        return await self._write(
            lambda db: turns.cancel(db, owner, continuation_id, reason, end, step_count, self._clock.now())
        )

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        def job(db: sqlite3.Connection) -> frozenset[str]:
            until = lease_rules.lease_end(self._clock.now(), lease_s)
            return continuations.renew_leases(db, worker, continuation_ids, until)

        return await self._write(job)

    async def interrupt_lost(self) -> list[Continuation]:
        return await self._write(lambda db: turns.interrupt_lost(db, self._clock.now(), self._dead_workers))

    async def waiting(self, max_open: int = 1) -> list[Continuation]:
        return await self._read(partial(continuations.list_waiting, max_open=max_open), ALL_OWNERS)

    async def last_id(self) -> str | None:
        return await self._read(continuations.last_id, ALL_OWNERS)

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        job = partial(continuations.get_continuation, owner=owner, continuation_id=continuation_id)
        return await self._read(job, owner)

    async def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        query: ContinuationQuery = "open_continuations" if open_only else "continuations"
        return await self._read_session(
            owner, session_id, lambda db, key: continuations.list_continuations(db, key, query)
        )

    async def recent_continuations(
        self,
        owner: str,
        *,
        session_id: str | None = None,
        before: str | None = None,
        statuses: Collection[Status] = (),
        limit: int = 50,
    ) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            key = None if session_id is None else sessions.find_key(db, owner, session_id)
            return continuations.list_recent(db, owner, key, before, statuses, limit)

        return await self._read(job, owner)

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        def job(db: sqlite3.Connection) -> tuple[Continuation, tuple[Step, ...]]:
            continuation = continuations.get_continuation(db, owner, continuation_id)
            return continuation, continuations.list_steps(db, continuation_id)

        return await self._read(job, owner)

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        return await self._read_session(
            owner, session_id, lambda db, key: continuations.list_events(db, key, after, limit)
        )

    async def last_cursor(self, owner: str, session_id: str) -> int:
        return await self._read(partial(sessions.last_cursor, owner=owner, session_id=session_id), owner)

    async def window(self, owner: str, session_id: str) -> ConversationWindow:
        def job(db: sqlite3.Connection) -> ConversationWindow:
            return messages.get_window(db, sessions.get_session(db, owner, session_id))

        return await self._read(job, owner)

    async def window_totals(self, owner: str) -> WindowTotals:
        return await self._read(partial(messages.sum_windows, owner=owner), owner)

    async def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        return await self._read_session(
            owner, session_id, lambda db, key: continuations.list_continuations(db, key, "window_turns")
        )

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        return await self._read_session(owner, session_id, lambda db, key: messages.get_cut(db, key).evicted)

    async def messages(
        self,
        owner: str,
        session_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        tags: Collection[str] = (),
    ) -> list[StoredMessage]:
        def job(db: sqlite3.Connection, key: int) -> list[StoredMessage]:
            if before is None:
                return messages.list_messages(db, key, session_id, after, limit, tags)
            return messages.list_messages_before(db, key, session_id, after, before, limit, tags)

        return await self._read_session(owner, session_id, job)

    async def first_texts(
        self, owner: str, session_ids: Collection[str], *, max_chars: int
    ) -> dict[str, str]:
        return await self._read(
            lambda db: messages.list_first_texts(db, owner, session_ids, max_chars), owner
        )

    async def tag_message(
        self, owner: str, session_id: str, message_id: str, tags: frozenset[str]
    ) -> tuple[Session, StoredMessage]:
        def find(db: sqlite3.Connection) -> int:
            key = sessions.find_key(db, owner, session_id)
            return messages.find_position(db, key, session_id, message_id)

        def tag(db: sqlite3.Connection) -> tuple[Session, StoredMessage]:
            session = sessions.get_session(db, owner, session_id)
            return messages.tag_message(db, session, position, tags, self._clock.now())

        position = await self._read(find, owner)
        return await self._write(tag)

    async def search_words(
        self, owner: str, words: Sequence[AskedWord], *, session_id: str | None = None, count: int
    ) -> WordHits[Spot]:
        async def search() -> WordHits[Spot]:
            await self.database.write_in_slices(full_text_index.index_messages)
            return await self._read(
                lambda db: word_search.search_words(db, owner, session_id, words, count), owner
            )

        return await self._search(search)

    async def find_words(self, owner: str, session_id: str, words: Sequence[AskedWord]) -> WordHits[int]:
        def find(db: sqlite3.Connection, key: int) -> WordHits[int] | None:
            lacks_many = full_text_index.count_unindexed(db) > MAX_UNINDEXED
            return None if lacks_many else word_search.find_words(db, owner, key, words)

        async def search() -> WordHits[int]:
            while (found := await self._read_session(owner, session_id, find)) is None:
                await self.database.write_in_slices(full_text_index.index_messages)
            return found

        try:
            async with asyncio.timeout(word_search.MAX_RECALL_S):
                return await self._search(search)
        except TimeoutError as error:
            word_search.raise_too_long(word_search.MAX_RECALL_S, error)

    async def read_places(
        self, owner: str, session_id: str, positions: Collection[int], *, with_window: bool = False
    ) -> list[Place]:
        def read(db: sqlite3.Connection, key: int) -> list[Place]:
            return word_search.read_places(db, key, positions, with_window=with_window)

        return await self._read_session(owner, session_id, read)

    async def messages_at(
        self, owner: str, session_id: str, positions: Collection[int]
    ) -> list[StoredMessage]:
        def read(db: sqlite3.Connection, key: int) -> list[StoredMessage]:
            return messages.list_messages_at(db, key, session_id, positions)

        return await self._read_session(owner, session_id, read)

    async def add_vectors(
        self,
        owner: str,
        session_id: str,
        vectors: Sequence[Vector],
        *,
        keep: int,
        replace_all: bool = False,
    ) -> None:
        def job(db: sqlite3.Connection) -> None:
            key = sessions.find_key(db, owner, session_id)
            messages.add_vectors(db, key, vectors, keep, replace_all)

        await self._write(job)

    async def vectors(
        self, owner: str, session_id: str, *, model: str | None = None, limit: int | None = None
    ) -> list[Vector]:
        return await self._read_session(
            owner, session_id, lambda db, key: messages.list_vectors(db, key, model, limit)
        )

    async def turn_stats(self, owner: str | None, since: datetime) -> list[tuple[datetime, Stats]]:
        def job(db: sqlite3.Connection) -> list[tuple[datetime, Stats]]:
            turns = continuations.list_turn_stats(db, owner, since)
            return turns + spent_rows.list_spent(db, owner, since)

        return await self._read(job, ALL_OWNERS if owner is None else owner)

    async def spend(self, owner: str, usd: float) -> None:
        await self._write(lambda db: spent_rows.spend(db, owner, usd, self._clock.now()))

    async def put_artifact(self, artifact: Artifact) -> None:
        def job(db: sqlite3.Connection) -> None:
            key = sessions.find_key(db, artifact.owner, artifact.session_id)
            messages.insert_artifact(db, key, artifact)

        await self._write(job)

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        return await self._read(partial(messages.get_artifact, owner=owner, artifact_id=artifact_id), owner)

    async def export_session(self, owner: str, session_id: str) -> Bundle:
        return await self._read(partial(bundles.read_bundle, owner=owner, session_id=session_id), owner)

    async def import_session(self, bundle: Bundle) -> Session:
        keys: list[int] = []
        insert = partial(bundles.insert_bundle, bundle=bundle, keys=keys)
        try:
            imported = await self.database.write_in_slices(insert)
        except BaseException:
            if keys:
                await self._deletion.delete_hidden(keys)
            raise
        assert imported is not None
        return imported

    async def sweep(
        self, *, idle_before: datetime, ended_before: datetime, delete_before: datetime | None = None
    ) -> SweepCounts:
        def job(db: sqlite3.Connection) -> SweepCounts:
            expired = turns.expire_forgotten(db, ended_before, self._clock.now())
            steps = continuations.drop_old_steps(db, ended_before)
            spent_rows.drop_before(db, idle_before)
            return SweepCounts(sessions.expire_idle_sessions(db, idle_before), expired, steps)

        counts = await self._write(job)
        deleted = await self._deletion.delete_inactive(None, DeletionTimes(ended_before, delete_before))
        artifacts = await self._deletion.delete_unused_artifacts(ended_before)
        await self.database.write_in_slices(full_text_index.index_messages)
        await self._write(full_text_index.merge_index)
        return replace(counts, deleted_sessions=deleted, artifacts=artifacts)

    async def _read_session(
        self, owner: str, session_id: str, job: Callable[[sqlite3.Connection, int], T]
    ) -> T:
        """Run a job that reads one session, whose key it gets. Raise `SessionNotFound` if it is missing."""
        return await self._read(lambda db: job(db, sessions.find_key(db, owner, session_id)), owner)

    async def _search(self, search: Callable[[], Awaitable[T]]) -> T:
        """Run a search. If the full-text index is damaged, empty the index and search again."""
        try:
            return await search()
        except DamagedIndex:
            await self.database.repair_index()
            return await search()

    def _clean_up(self, db: sqlite3.Connection) -> None:
        """Note the dead workers: they hold a lease, but no other process has the file open.

        Delete the sessions that a dead process has imported or deleted in part. Check the full-text index:
        recall does not do that each time.
        """
        self._dead_workers = continuations.list_workers(db)
        hidden = hidden_sessions.list_hidden(db)
        if hidden:
            db.execute("BEGIN IMMEDIATE")
            for _ in hidden_sessions.delete_hidden(db, hidden, is_indexed=True):
                pass
            db.execute("COMMIT")
        with suppress(sqlite3.Error):  # a search reports and repairs what cannot be read
            full_text_index.check_index(db)
