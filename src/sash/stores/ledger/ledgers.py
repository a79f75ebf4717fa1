"""The ledgers of all sessions, with the methods of the store contract. They are not thread-safe."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sash.errors import LeaseLost
from sash.memory.words import split_words
from sash.ports.store import (
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
)
from sash.stores import rules
from sash.stores.ledger.session_ledger import Entry, Ledger
from sash.values.clock import Clock
from sash.values.continuations import Continuation
from sash.values.messages import ConversationWindow
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import Stats
from sash.values.steps import Step, StepBody


class Ledgers:
    """The ledgers of all sessions, by session id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ledgers: dict[str, Ledger] = {}
        self._session_of: dict[str, str] = {}
        self._named: dict[tuple[str, str], set[str]] = {}
        self._artifacts: dict[str, Artifact] = {}

    def create_session(self, session: Session) -> None:
        rules.check_name(session, self._find_named(session))
        self.import_session(Bundle(session))

    def open_session(self, session: Session, reopen: bool) -> Session:
        named = self._find_named(session)
        chosen = rules.choose_session(session, named, reopen)
        if chosen.id == session.id:
            return self.import_session(Bundle(chosen))
        return chosen if chosen is named else self.save_session(chosen)

    def get_session(self, owner: str, session_id: str) -> Session:
        return self._ledger(owner, session_id).session

    def list_sessions(
        self, owner: str, status: SessionStatus | None, name: str | None, limit: int, cursor: str | None
    ) -> Page:
        sessions = (ledger.session for ledger in self._ledgers.values() if ledger.session.owner == owner)
        named = sessions if name is None else (s for s in sessions if s.name == name)
        return _cut_page(named, status, limit, cursor)

    def find_session(self, owner: str, name: str) -> Session | None:
        ledgers = map(self._ledgers.get, self._named.get((owner, name), ()))
        named = (ledger.session for ledger in ledgers if ledger and ledger.session.name == name)
        return max(named, key=lambda session: (session.status == "active", session.id), default=None)

    def count_active(self, owner: str) -> int:
        sessions = (ledger.session for ledger in self._ledgers.values())
        return sum(session.owner == owner and session.status == "active" for session in sessions)

    def save_session(self, session: Session) -> Session:
        ledger = self._ledger(session.owner, session.id)
        named, now = self._find_named(session), self._clock.now()
        ledger.session = rules.save_session(ledger.session, session, named, now)
        self._note_name(ledger.session)
        return ledger.session

    def delete_session(self, owner: str, session_id: str) -> None:
        ledger = self._ledger(owner, session_id)
        for continuation_id in ledger.entries:
            del self._session_of[continuation_id]
        self._forget_name(ledger.session)
        del self._ledgers[session_id]
        kept = {key: a for key, a in self._artifacts.items() if a.session_id != session_id}
        self._artifacts = kept

    def erase(self, owner: str) -> int:
        mine = [key for key, ledger in self._ledgers.items() if ledger.session.owner == owner]
        for session_id in mine:
            self.delete_session(owner, session_id)
        return len(mine)

    def begin(self, new: Continuation, claim: ClaimRequest, enqueue: bool) -> BegunTurn:
        begun = self._ledger(new.owner, new.session_id).begin(new, claim, enqueue, self._clock.now())
        if begun.created:
            self._session_of[new.id] = new.session_id
        return begun

    def claim(self, owner: str, continuation_id: str, claim: ClaimRequest, steps: Sequence[StepBody]) -> Turn:
        ledger, entry = self._entry(owner, continuation_id)
        return ledger.claim(entry, claim, steps, self._clock.now())

    def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        ledger = self._ledgers.get(session_id)
        return None if ledger is None else ledger.claim_next(claim, self._clock.now())

    def append(
        self, lease: Lease, steps: Sequence[StepBody], release_as: WaitingStatus | None, stats: Stats
    ) -> tuple[Step, ...]:
        return self._leased(lease).append(lease, steps, release_as, stats, self._clock.now())

    def finish(self, lease: Lease, end: TurnEnd) -> EndWritten:
        return self._leased(lease).finish(lease, end, self._clock.now())

    def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        recorded = self._ledger(new.owner, new.session_id).record(new, end, session, self._clock.now())
        self._session_of[recorded[0].id] = new.session_id
        return recorded

    def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        ledger, entry = self._entry(owner, continuation_id)
        return ledger.amend(entry, text, token_count, self._clock.now())

    def cancel(self, owner: str, continuation_id: str, reason: str, stats: Stats) -> TurnEnd:
        ledger, entry = self._entry(owner, continuation_id)
        return ledger.cancel(entry, reason, stats, self._clock.now())

    def renew(self, worker: str, continuation_ids: Collection[str], lease_s: float) -> frozenset[str]:
        renewed, until = set(), rules.lease_end(self._clock.now(), lease_s)
        for continuation_id in continuation_ids:
            ledger = self._ledgers.get(self._session_of.get(continuation_id, ""))
            entry = None if ledger is None else ledger.entry(continuation_id)
            if entry is not None and entry.lease.worker == worker:
                entry.lease = entry.lease._replace(until=until)
                renewed.add(continuation_id)
        return frozenset(renewed)

    def interrupt_lost(self) -> list[Continuation]:
        now = self._clock.now()
        return [ledger.interrupt(entry, now) for ledger, entry in self._find_lost(now)]

    def waiting(self) -> list[Continuation]:
        return [c for ledger in self._ledgers.values() for c in ledger.list_waiting()]

    def last_id(self) -> str | None:
        return max((*self._ledgers, *self._session_of), default=None)

    def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return self._entry(owner, continuation_id)[1].continuation

    def list_continuations(self, owner: str, session_id: str, open_only: bool) -> list[Continuation]:
        return self._ledger(owner, session_id).continuations(open_only)

    def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        entry = self._entry(owner, continuation_id)[1]
        return entry.continuation, tuple(entry.steps)

    def events(self, owner: str, session_id: str, after: int, limit: int) -> list[StoredStep]:
        return self._ledger(owner, session_id).events(after, limit)

    def last_cursor(self, owner: str, session_id: str) -> int:
        return self._ledger(owner, session_id).cursor

    def window(self, owner: str, session_id: str) -> ConversationWindow:
        return self._ledger(owner, session_id).window()

    def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        return list(self._ledger(owner, session_id).window_turns())

    def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        return self._ledger(owner, session_id).evicted

    def messages(self, owner: str, session_id: str, after: int, limit: int) -> list[StoredMessage]:
        return self._ledger(owner, session_id).messages(after, limit)

    def recall(
        self, owner: str, session_id: str, prefixes: Sequence[str], limit: int, skip_tools: bool
    ) -> list[StoredMessage]:
        return self._ledger(owner, session_id).recall(prefixes, limit, skip_tools)

    def add_vectors(self, owner: str, session_id: str, vectors: Sequence[Vector], keep: int) -> None:
        self._ledger(owner, session_id).add_vectors(vectors, keep)

    def vectors(self, owner: str, session_id: str) -> list[Vector]:
        return list(self._ledger(owner, session_id).vectors.values())

    def turn_stats(self, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
        turns = (
            entry.continuation
            for ledger in self._ledgers.values()
            if ledger.session.owner == owner
            for entry in ledger.entries.values()
        )
        found = [(turn.updated_at, turn.stats) for turn in turns if turn.stats and turn.updated_at >= since]
        return sorted(found, key=lambda item: item[0])

    def search(self, owner: str, query: str, session_id: str | None, limit: int) -> list[StoredMessage]:
        wanted = set(split_words(query))
        found = [
            ledger.stored_message(position)
            for ledger in self._ledgers.values()
            if ledger.session.owner == owner and session_id in (None, ledger.session.id)
            for position, message in enumerate(ledger.transcript, 1)
            if wanted and wanted <= set(split_words(message.text))
        ]
        return sorted(found, key=lambda stored: stored.message.timestamp, reverse=True)[:limit]

    def put_artifact(self, artifact: Artifact) -> None:
        self._ledger(artifact.owner, artifact.session_id)
        self._artifacts[artifact.ref.id] = artifact

    def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        artifact = self._artifacts.get(artifact_id)
        if artifact is None or artifact.owner != owner:
            rules.raise_artifact_not_found(artifact_id)
        return artifact

    def export_session(self, owner: str, session_id: str) -> Bundle:
        artifacts = tuple(a for a in self._artifacts.values() if a.session_id == session_id)
        return replace(self._ledger(owner, session_id).to_bundle(), artifacts=artifacts)

    def import_session(self, bundle: Bundle) -> Session:
        session = rules.prepare_import(bundle.session, self._find_named(bundle.session))
        if session.id in self._ledgers:
            rules.raise_session_exists(session.id)
        if any(c.id in self._session_of for c in bundle.continuations) or any(
            a.ref.id in self._artifacts for a in bundle.artifacts
        ):
            rules.raise_parts_exist(session.id)
        self._add(Ledger.from_bundle(replace(bundle, session=session)))
        self._artifacts |= {artifact.ref.id: artifact for artifact in bundle.artifacts}
        return session

    def sweep(self, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        now, swept = self._clock.now(), SweepCounts()
        for ledger in self._ledgers.values():
            swept += ledger.sweep(idle_before, ended_before, now)
        return swept

    def _add(self, ledger: Ledger) -> None:
        """Add the ledger of a session."""
        self._ledgers[ledger.session.id] = ledger
        self._session_of |= dict.fromkeys(ledger.entries, ledger.session.id)
        self._note_name(ledger.session)

    def _note_name(self, session: Session) -> None:
        """Add a session to the index of names. It stays there if the session gets another name later."""
        if session.name is not None:
            self._named.setdefault((session.owner, session.name), set()).add(session.id)

    def _forget_name(self, session: Session) -> None:
        if session.name is not None:
            key = (session.owner, session.name)
            self._named[key].discard(session.id)
            if not self._named[key]:
                del self._named[key]

    def _find_named(self, session: Session) -> Session | None:
        """Return the session that has the name of `session` now; None if `session` does not need it."""
        if session.name is None or not rules.wants_name(session):
            return None
        return self.find_session(session.owner, session.name)

    def _find_lost(self, now: datetime) -> Iterable[tuple[Ledger, Entry]]:
        """Return the running continuations that have no worker any more."""
        return [
            (ledger, entry)
            for ledger in self._ledgers.values()
            for entry in ledger.entries.values()
            if rules.is_lost(entry.continuation.status, entry.lease, now)
        ]

    def _ledger(self, owner: str, session_id: str) -> Ledger:
        ledger = self._ledgers.get(session_id)
        if ledger is None or ledger.session.owner != owner:
            rules.raise_session_not_found(session_id)
        return ledger

    def _entry(self, owner: str, continuation_id: str) -> tuple[Ledger, Entry]:
        ledger = self._ledgers.get(self._session_of.get(continuation_id, ""))
        if ledger is None or ledger.session.owner != owner:
            rules.raise_continuation_not_found(continuation_id)
        return ledger, ledger.entry(continuation_id)

    def _leased(self, lease: Lease) -> Ledger:
        ledger = self._ledgers.get(lease.session_id)
        if ledger is None:
            raise LeaseLost(lease.continuation_id)
        return ledger


def _cut_page(
    sessions: Iterable[Session], status: SessionStatus | None, limit: int, cursor: str | None
) -> Page:
    """Return a page of sessions, newest first, that starts after the session with the id `cursor`."""
    matching = sorted(
        (s for s in sessions if status in (None, s.status) and (cursor is None or s.id < cursor)),
        key=lambda session: session.id,
        reverse=True,
    )
    chosen = tuple(matching[:limit])
    return Page(chosen, chosen[-1].id if len(matching) > limit else None)
