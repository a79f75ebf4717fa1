"""The store on SQLite: the default, with nothing to set up. `database` has its threads, `sql/` its SQL."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from sash.errors import (
    ArtifactNotFound,
)
from sash.ports.store import (
    LEASE_S,
    LONGEST_LEASE,
    Artifact,
    BegunTurn,
    Bundle,
    ClaimRequest,
    EndWritten,
    Evicted,
    Lease,
    Page,
    StoredMessage,
    StoredStep,
    SweepCounts,
    Turn,
    TurnEnd,
    Vector,
    WaitingStatus,
    already_final,
    busy,
    check_begin,
    check_version,
    ended,
    lease_end,
    number_steps,
)
from sash.stores.sqlite import rows, word_search
from sash.stores.sqlite.database import Database, Synchronous
from sash.values.clock import Clock, SystemClock
from sash.values.codec import decode, encode
from sash.values.continuations import Continuation, Status
from sash.values.messages import ConversationWindow
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Cancelled, Expired, Interrupted, Step, StepBody


class SqliteStore:
    """Sessions in one SQLite file. `synchronous="NORMAL"` may lose the last moments before a power cut."""

    def __init__(
        self, path: str | Path, *, synchronous: Synchronous = "FULL", clock: Clock | None = None
    ) -> None:
        self._database = Database(Path(path), synchronous, self._find_dead)
        self._read, self._write = self._database.read, self._database.write
        self._clock = clock or SystemClock()
        self._dead: list[str] = []

    async def open(self) -> None:
        self._dead = []
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def create_session(self, session: Session) -> None:
        await self._write(partial(rows.insert_session, session=session))

    async def get_session(self, owner: str, session_id: str) -> Session:
        return await self._read(partial(rows.get_session, owner=owner, session_id=session_id))

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        def job(db: sqlite3.Connection) -> Page:
            where = {"owner": owner, "status": status, "name": name, "cursor": cursor, "limit": limit + 1}
            found = db.execute(rows.SQL["sessions"], where).fetchall()
            sessions = tuple(map(rows.read_session, found[:limit]))
            return Page(sessions, sessions[-1].id if len(found) > limit else None)

        return await self._read(job)

    async def find_session(self, owner: str, name: str) -> Session | None:
        return await self._read(partial(rows.find_session, owner=owner, name=name))

    async def count_active(self, owner: str) -> int:
        def job(db: sqlite3.Connection) -> int:
            [count] = db.execute(rows.SQL["count_active"], {"owner": owner}).fetchone()
            return int(count)

        return await self._read(job)

    async def save_session(self, session: Session) -> Session:
        def job(db: sqlite3.Connection) -> Session:
            check_version(rows.get_session(db, session.owner, session.id), session)
            rows.check_name(db, session)
            saved = replace(session, version=session.version + 1, updated_at=self._clock.now())
            [key] = db.execute(rows.SQL["update_session"], rows.session_row(saved)).fetchone()
            memory, cut_at = saved.memory, saved.memory.cut_at
            cut = {"session": key, "digest": memory.digest, "cut_at": cut_at and cut_at.timestamp()}
            db.execute(rows.SQL["update_digest"], cut)
            return saved

        return await self._write(job)

    async def delete_session(self, owner: str, session_id: str) -> None:
        def job(db: sqlite3.Connection) -> None:
            where = {"session_id": session_id, "owner": owner}
            if not db.execute(rows.SQL["delete_session"], where).rowcount:
                raise rows.no_session(session_id)
            rows.forget_words(db)

        await self._write(job)
        await self._database.empty_log()

    async def erase(self, owner: str) -> int:
        def job(db: sqlite3.Connection) -> int:
            erased = db.execute(rows.SQL["erase"], {"owner": owner}).rowcount
            rows.forget_words(db)
            return erased

        erased = await self._write(job)
        await self._database.empty_log()
        return erased

    async def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        def job(db: sqlite3.Connection) -> BegunTurn:
            where = {"session_id": new.session_id, "owner": new.owner}
            place = db.execute(rows.SQL["place_of_turn"], where).fetchone()
            if place is None:
                raise rows.no_session(new.session_id)
            key, version, _, cursor, holder, pending = place
            same = rows.find_same(db, key, new.request.idempotency_key)
            if same is not None:
                return BegunTurn(same, None, created=False)
            known = claim.known if claim.knows(version) else None
            session = known or rows.get_session(db, new.owner, new.session_id)
            check_begin(session)
            if holder is not None and not enqueue:
                raise busy(new.session_id, holder)
            if holder is not None or pending:
                waiting = replace(new, status="pending")
                rows.insert_continuation(db, key, waiting, cursor)
                return BegunTurn(waiting, None, created=True)
            running = new if new.status == "running" else replace(new, status="running")
            until = lease_end(self._clock.now(), claim.lease_s)
            rows.insert_continuation(db, key, running, cursor, claim.worker, until)
            window = None if known else rows.get_window(db, session)
            turn = Turn(Lease(new.id, session.id, claim.worker, 1), running, session, window)
            return BegunTurn(running, turn, created=True)

        return await self._write(job)

    async def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        def job(db: sqlite3.Connection) -> Turn:
            continuation = rows.get_continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            holder = rows.find_holder(db, continuation)
            waits_for_approval = continuation.status == "awaiting_approval"
            if holder is not None and not (holder == continuation_id and waits_for_approval):
                raise busy(continuation.session_id, holder)
            rows.add_steps(db, continuation, steps, self._clock.now())
            return self._hand_over(db, continuation, claim)

        return await self._write(job)

    async def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        def job(db: sqlite3.Connection) -> Turn | None:
            row = db.execute(rows.SQL["next_pending"], {"session_id": session_id}).fetchone()
            pending = None if row is None else rows.read_continuation(row)
            if pending is None or rows.find_holder(db, pending) is not None:
                return None
            return self._hand_over(db, pending, claim)

        return await self._write(job)

    async def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        give_back: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
    ) -> tuple[Step, ...]:
        def job(db: sqlite3.Connection) -> tuple[Step, ...]:
            now, held = self._clock.now(), rows.check_lease(db, lease)
            written = number_steps(steps, held.steps, held.cursor, now)
            rows.insert_steps(db, held.session, lease.continuation_id, written)
            if give_back is not None:
                rows.let_go(db, lease.continuation_id, give_back, now, rows.Ending(stats=stats))
            return written

        return await self._write(job)

    async def finish(self, lease: Lease, end: TurnEnd) -> EndWritten:
        def job(db: sqlite3.Connection) -> EndWritten:
            now, held = self._clock.now(), rows.check_lease(db, lease)
            written = number_steps(end.steps, held.steps, held.cursor, now)
            ending = rows.Ending(end.response, end.error, end.artifacts, end.stats)
            answer_at = held.positions + len(end.messages) if end.messages else None
            rows.let_go(db, lease.continuation_id, end.status, now, ending, answer_at)
            place = rows.Place(held.session, held.cursor, held.positions)
            rows.take_in(db, place, lease.continuation_id, end, written, decode(Stats, held.stats), now)
            return EndWritten(written, bool(held.next_waits))

        return await self._write(job)

    async def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        def job(db: sqlite3.Connection) -> tuple[Continuation, tuple[Step, ...]]:
            where = {"session_id": new.session_id, "owner": new.owner}
            found = db.execute(rows.SQL["place_of_turn"], where).fetchone()
            if found is None:
                raise rows.no_session(new.session_id)
            key, version, positions, cursor, holder, _ = found
            same = rows.find_same(db, key, new.request.idempotency_key)
            if same is not None:
                return same, ()
            check_version(replace(session, version=version), session)
            check_begin(session)
            if holder is not None:
                raise busy(new.session_id, holder)
            now = self._clock.now()
            written = number_steps(end.steps, 0, cursor, now)
            ending = rows.Ending(end.response, end.error, end.artifacts, end.stats)
            answer_at = positions + len(end.messages) if end.messages else None
            over = replace(new, status=end.status, updated_at=now)
            rows.insert_continuation(db, key, over, cursor, ending=ending, answer_at=answer_at)
            place = rows.Place(key, cursor, positions)
            rows.take_in(db, place, new.id, end, written, session.stats, now)
            return ended(new, end, now), written

        return await self._write(job)

    async def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        def job(db: sqlite3.Connection) -> Continuation:
            continuation = rows.get_continuation(db, owner, continuation_id)
            return rows.amend(db, continuation, text, token_count, self._clock.now())

        return await self._write(job)

    async def cancel(
        self, owner: str, continuation_id: str, reason: str, *, stats: Stats = NO_STATS
    ) -> Continuation:
        def job(db: sqlite3.Connection) -> Continuation:
            continuation = rows.get_continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            closed = self._close(db, continuation, "cancelled", (Cancelled(reason),), stats)
            session = rows.get_session(db, owner, continuation.session_id)
            total = encode(session.stats + stats)
            changes = {"session_id": session.id, "stats": total, "now": closed.updated_at.timestamp()}
            db.execute(rows.SQL["add_stats"], changes)
            return closed

        return await self._write(job)

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        def job(db: sqlite3.Connection) -> frozenset[str]:
            until = lease_end(self._clock.now(), lease_s).timestamp()
            ids = json.dumps(list(continuation_ids))
            renewed = db.execute(rows.SQL["renew"], {"until": until, "worker": worker, "ids": ids})
            return frozenset(row[0] for row in renewed.fetchall())

        return await self._write(job)

    async def interrupt_lost(self) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            now = self._clock.now()
            times = {"now": now.timestamp(), "latest": (now + LONGEST_LEASE).timestamp()}
            where = {**times, "dead": json.dumps(self._dead)}
            lost = map(rows.read_continuation, db.execute(rows.SQL["lost"], where).fetchall())
            return [self._close(db, continuation, "interrupted", (Interrupted(),)) for continuation in lost]

        return await self._write(job)

    async def waiting(self) -> list[Continuation]:
        return await self._read(lambda db: list(map(rows.read_continuation, db.execute(rows.SQL["waiting"]))))

    async def last_id(self) -> str | None:
        def job(db: sqlite3.Connection) -> str | None:
            [last] = db.execute(rows.SQL["last_id"]).fetchone()
            return last  # type: ignore[no-any-return]

        return await self._read(job)

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return await self._read(partial(rows.get_continuation, owner=owner, continuation_id=continuation_id))

    async def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            key = rows.find_key(db, owner, session_id)
            return rows.list_continuations(db, key, "open_continuations" if open_only else "continuations")

        return await self._read(job)

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        def job(db: sqlite3.Connection) -> tuple[Continuation, tuple[Step, ...]]:
            return rows.get_continuation(db, owner, continuation_id), rows.list_steps(db, continuation_id)

        return await self._read(job)

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        def job(db: sqlite3.Connection) -> list[StoredStep]:
            return rows.list_events(db, rows.find_key(db, owner, session_id), after, limit)

        return await self._read(job)

    async def last_cursor(self, owner: str, session_id: str) -> int:
        def job(db: sqlite3.Connection) -> int:
            row = db.execute(rows.SQL["last_cursor"], {"session_id": session_id, "owner": owner}).fetchone()
            if row is None:
                raise rows.no_session(session_id)
            return int(row[0])

        return await self._read(job)

    async def window(self, owner: str, session_id: str) -> ConversationWindow:
        def job(db: sqlite3.Connection) -> ConversationWindow:
            return rows.get_window(db, rows.get_session(db, owner, session_id))

        return await self._read(job)

    async def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            return rows.list_continuations(db, rows.find_key(db, owner, session_id), "window_turns")

        return await self._read(job)

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        def job(db: sqlite3.Connection) -> tuple[Evicted, ...]:
            return rows.get_cut(db, rows.find_key(db, owner, session_id)).evicted

        return await self._read(job)

    async def messages(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            return rows.list_messages(db, rows.find_key(db, owner, session_id), session_id, after, limit)

        return await self._read(job)

    async def search(
        self, owner: str, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        quoted = query.replace("\0", " ").replace('"', '""')
        words = " ".join(f'"{word}"' for word in quoted.split())
        words = words and f"text : ({words})"

        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            where = {"words": words, "owner": owner, "session_id": session_id, "limit": limit}
            return [rows.read_message(*row) for row in db.execute(rows.SQL["search"], where)]

        if not words:
            return []
        await self._write(rows.index_messages)
        return await self._read(job)

    async def recall(
        self, owner: str, session_id: str, beginnings: Sequence[str], *, limit: int = 50, said: bool = False
    ) -> list[StoredMessage]:
        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            key = rows.find_key(db, owner, session_id)
            return word_search.recall_messages(db, key, session_id, beginnings, limit, said)

        return await self._read(job)

    async def add_vectors(self, owner: str, session_id: str, vectors: Sequence[Vector], *, keep: int) -> None:
        def job(db: sqlite3.Connection) -> None:
            key = rows.find_key(db, owner, session_id)
            values = [(key, v.position, v.model, v.data) for v in vectors]
            db.executemany(rows.SQL["insert_vector"], values)
            db.execute(rows.SQL["drop_vectors"], {"session": key, "keep": keep})

        await self._write(job)

    async def vectors(self, owner: str, session_id: str) -> list[Vector]:
        def job(db: sqlite3.Connection) -> list[Vector]:
            key = rows.find_key(db, owner, session_id)
            return [Vector(*row) for row in db.execute(rows.SQL["vectors"], {"session": key})]

        return await self._read(job)

    async def turn_stats(self, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
        return await self._read(partial(rows.list_turn_stats, owner=owner, since=since))

    async def put_artifact(self, artifact: Artifact) -> None:
        def job(db: sqlite3.Connection) -> None:
            rows.insert_artifact(db, rows.find_key(db, artifact.owner, artifact.session_id), artifact)

        await self._write(job)

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        def job(db: sqlite3.Connection) -> Artifact:
            row = db.execute(rows.SQL["artifact"], {"id": artifact_id, "owner": owner}).fetchone()
            if row is None:
                raise ArtifactNotFound(f"no artifact {artifact_id}")
            return rows.read_artifact(row)

        return await self._read(job)

    async def export_session(self, owner: str, session_id: str) -> Bundle:
        def job(db: sqlite3.Connection) -> Bundle:
            return rows.get_bundle(db, rows.get_session(db, owner, session_id))

        return await self._read(job)

    async def import_session(self, bundle: Bundle) -> Session:
        return await self._write(partial(rows.insert_bundle, bundle=bundle))

    async def sweep(self, *, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        def job(db: sqlite3.Connection) -> SweepCounts:
            before = {"before": ended_before.timestamp()}
            found = db.execute(rows.SQL["forgotten"], before).fetchall()
            forgotten = list(map(rows.read_continuation, found))
            for continuation in forgotten:
                self._close(db, continuation, "expired", (Expired(),))
            steps = rows.sweep_steps(db, ended_before)
            rows.index_messages(db)
            db.execute(rows.SQL["merge_index"])
            idle = db.execute(rows.SQL["idle_sessions"], {"before": idle_before.timestamp()}).fetchall()
            db.executemany(rows.SQL["expire_session"], idle)
            return SweepCounts(len(idle), len(forgotten), steps)

        return await self._write(job)

    def _find_dead(self, db: sqlite3.Connection) -> None:
        """Note whose turns are under way although no other process has the file open."""
        self._dead = [row[0] for row in db.execute(rows.SQL["workers"])]

    def _hand_over(self, db: sqlite3.Connection, continuation: Continuation, claim: ClaimRequest) -> Turn:
        now = self._clock.now()
        until = lease_end(now, claim.lease_s).timestamp()
        [epoch] = db.execute(
            rows.SQL["hand_over"],
            {"id": continuation.id, "now": now.timestamp(), "worker": claim.worker, "until": until},
        ).fetchone()
        running = replace(continuation, status="running", updated_at=now)
        session = rows.get_session(db, continuation.owner, continuation.session_id)
        window = None if claim.knows(session.version) else rows.get_window(db, session)
        lease = Lease(continuation.id, session.id, claim.worker, epoch)
        return Turn(lease, running, session, window, rows.list_steps(db, continuation.id))

    def _close(
        self,
        db: sqlite3.Connection,
        continuation: Continuation,
        status: Status,
        steps: Sequence[StepBody],
        stats: Stats | None = None,
    ) -> Continuation:
        """Take a continuation from whoever holds it."""
        now = self._clock.now()
        rows.add_steps(db, continuation, steps, now)
        rows.let_go(db, continuation.id, status, now, rows.Ending(stats=stats) if stats else None)
        return replace(continuation, status=status, updated_at=now, stats=stats)
