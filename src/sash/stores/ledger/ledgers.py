"""The ledgers of all sessions, with the methods of the store contract. They are not thread-safe."""

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from itertools import islice

from sash.memory.asked_words import AskedWord
from sash.memory.recall_ranking import Place, Spot, WordHits, choose_candidates
from sash.memory.similar_words import add_similar, choose_similar
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
from sash.stores.ledger.artifacts import Artifacts, MemoryArtifacts
from sash.stores.ledger.bundles import make_bundle, make_ledger
from sash.stores.ledger.entry import Entry, get_prompts, keep_parts
from sash.stores.ledger.name_index import NameIndex
from sash.stores.ledger.session_ledger import Ledger
from sash.stores.ledger.spent_money import SpentMoney
from sash.stores.rules import (
    lease_rules,
    record_errors,
    retention_rules,
    session_names,
    session_versions,
    turn_rules,
)
from sash.stores.rules.note_rules import save_owner_notes
from sash.stores.rules.spent_rules import drop_bundle_prices
from sash.stores.states import Release
from sash.values.clock import Clock
from sash.values.continuations import Continuation, Status, TurnCaller
from sash.values.ids import LATEST_ID
from sash.values.messages import ConversationWindow
from sash.values.owner_notes import OwnerNotes
from sash.values.prompts import NO_PROMPTS, SentPrompts
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Step, StepBody
from sash.values.waiting_turns import WaitingTurn
from sash.values.window_stats import WindowTotals, sum_windows


class Ledgers:
    """The ledgers of all sessions, by session id. Only one thread may use them."""

    def __init__(self, clock: Clock, artifacts: Artifacts | None = None) -> None:
        self._clock = clock
        self._ledgers: dict[str, Ledger] = {}
        self._session_of: dict[str, str] = {}
        self._names = NameIndex()
        self._artifacts = artifacts or MemoryArtifacts()
        self._spent = SpentMoney()
        self._owner_notes: dict[str, OwnerNotes] = {}
        self._export_key = secrets.token_bytes(32)

    def export_key(self) -> bytes:
        return self._export_key

    def check_write(self) -> None:
        """Raise nothing: memory can always be written."""

    def create_session(self, session: Session) -> None:
        session_names.check_name(session, self._find_named(session))
        self.import_session(Bundle(session))

    def open_session(self, session: Session, *, reopen: bool = False) -> Session:
        opened, write = session_names.open_session(session, self._find_named(session), reopen)
        if write == "insert":
            return self.import_session(Bundle(opened))
        return self.save_session(opened) if write == "update" else opened

    def get_session(self, owner: str, session_id: str) -> Session:
        return self._ledger(owner, session_id).session

    def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        with_questions: bool = False,
    ) -> Page:
        matching = (
            session
            for session in self._sessions_of(owner)
            if name in (None, session.name)
            and status in (None, session.status)
            and (with_questions or retention_rules.is_listed(session))
            and (cursor is None or session.id < cursor)
        )
        newest_first = sorted(matching, key=lambda session: session.id, reverse=True)
        page = tuple(newest_first[:limit])
        return Page(page, page[-1].id if len(newest_first) > limit else None)

    def find_session(self, owner: str, name: str) -> Session | None:
        ids = self._names.find(owner, name)
        return session_names.choose_named(self._ledgers[session_id].session for session_id in ids)

    def count_active(self, owner: str) -> int:
        sessions = (ledger.session for ledger in self._ledgers.values())
        return sum(session.owner == owner and session.status == "active" for session in sessions)

    def save_session(self, session: Session, *, cut: Cut | None = None) -> Session:
        ledger = self._ledger(session.owner, session.id)
        named, now = self._find_named(session), self._clock.now()
        if cut is not None:
            turn_rules.check_free(session.id, ledger.holders())
        saved = session_versions.save_session(ledger.session, session, named, now)
        self._names.remove(ledger.session)
        self._names.add(saved)
        ledger.session = saved
        if saved.status == "ended":
            ledger.waiting_turns.clear()
        if cut is not None:
            ledger.cut_window(cut)
        return saved

    def delete_session(self, owner: str, session_id: str) -> None:
        ledger = self._ledger(owner, session_id)
        self._spent.add_turns(ledger, self._clock.now())
        for continuation_id in ledger.entries:
            del self._session_of[continuation_id]
        self._names.remove(ledger.session)
        del self._ledgers[session_id]
        self._remove_artifacts(
            artifact_id for artifact_id, of in self._artifacts.list_ids() if of == session_id
        )

    def list_inactive(self, owner: str, before: datetime) -> list[str]:
        sessions = self._sessions_of(owner)
        return [session.id for session in sessions if retention_rules.may_delete(session, before, before)]

    def delete_inactive(self, owner: str, before: datetime) -> int:
        return self._delete_all((owner, session_id) for session_id in self.list_inactive(owner, before))

    def _delete_all(self, places: Iterable[tuple[str, str]]) -> int:
        """Delete sessions by owner and id, and return their number."""
        found = list(places)
        for owner, session_id in found:
            self.delete_session(owner, session_id)
        return len(found)

    def erase(self, owner: str) -> int:
        self._owner_notes.pop(owner, None)
        return self._delete_all((owner, session.id) for session in self._sessions_of(owner))

    def owner_notes(self, owner: str) -> OwnerNotes:
        return self._owner_notes.get(owner) or OwnerNotes(owner)

    def save_owner_notes(self, notes: OwnerNotes, *, asked_in: str | None = None) -> OwnerNotes:
        if asked_in is not None:
            self._ledger(notes.owner, asked_in)
        saved = save_owner_notes(self.owner_notes(notes.owner), notes)
        self._write_owner_notes(saved)
        return saved

    def _write_owner_notes(self, notes: OwnerNotes) -> None:
        self._owner_notes[notes.owner] = notes

    def add_waiting_turn(self, turn: WaitingTurn) -> WaitingTurn:
        return self._ledger(turn.owner, turn.session_id).add_waiting_turn(turn)

    def change_waiting_turn(self, turn: WaitingTurn) -> None:
        self._find_waiting_turn(turn.owner, turn.id).waiting_turns[turn.id] = turn

    def cancel_waiting_turn(self, owner: str, turn_id: str) -> WaitingTurn:
        return self._find_waiting_turn(owner, turn_id).waiting_turns.pop(turn_id)

    def waiting_turns(self, owner: str | None = None, *, session_id: str | None = None) -> list[WaitingTurn]:
        if session_id is not None:
            ledgers: Iterable[Ledger] = (self._ledger(owner or "", session_id),)
        else:
            ledgers = self._all_ledgers()
        found = (
            turn
            for ledger in ledgers
            if owner in (None, ledger.session.owner)
            for turn in ledger.waiting_turns.values()
        )
        return sorted(found, key=lambda turn: turn.id)

    def _find_waiting_turn(self, owner: str, turn_id: str) -> Ledger:
        """Return the ledger that has a waiting turn. Raise `WaitingTurnNotFound` if none of the owner has."""
        mine = (ledger for ledger in self._all_ledgers() if ledger.session.owner == owner)
        found = next((ledger for ledger in mine if turn_id in ledger.waiting_turns), None)
        if found is None:
            record_errors.raise_waiting_turn_not_found(turn_id)
        return found

    def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        # A session that is not loaded has no queued turns: `waiting` loads all sessions at the start.
        mine = (ledger for ledger in self._ledgers.values() if ledger.session.owner == new.owner)
        waiting = sum(ledger.count_pending() for ledger in mine) if enqueue else 0
        ledger = self._ledger(new.owner, new.session_id)
        begun = ledger.begin(new, claim, enqueue, waiting, self._clock.now())
        if begun.created:
            self._session_of[new.id] = new.session_id
        return begun

    def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        ledger, entry = self._entry(owner, continuation_id)
        return ledger.claim(entry, claim, steps, self._clock.now())

    def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        ledger = self._ledgers.get(session_id)
        return None if ledger is None else ledger.claim_next(claim, self._clock.now())

    def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        release_as: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
        prompts: SentPrompts = NO_PROMPTS,
    ) -> tuple[Step, ...]:
        return self._append(lease, steps, turn_rules.plan_release(release_as, stats), prompts)

    def prompts(self, owner: str, continuation_id: str) -> SentPrompts:
        ledger, entry = self._entry(owner, continuation_id)
        return get_prompts(entry, ledger.entries.values())

    def find_messages(self, owner: str, session_id: str, message_ids: Collection[str]) -> list[StoredMessage]:
        ledger, wanted = self._ledger(owner, session_id), set(message_ids)
        positions = (n for n, message in enumerate(ledger.transcript, 1) if message.id in wanted)
        return [ledger.stored_message(position) for position in positions]

    def finish(
        self,
        lease: Lease,
        end: TurnEnd,
        *,
        known: Session | None = None,
        based_on: Session | None = None,
    ) -> EndWritten:
        return self._finish(lease, end, based_on)

    def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        recorded = self._ledger(new.owner, new.session_id).record(new, end, session, self._clock.now())
        self._session_of[recorded[0].id] = new.session_id
        return recorded

    def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        ledger, entry = self._entry(owner, continuation_id)
        return ledger.amend(entry, text, token_count, self._clock.now())

    def set_caller(self, owner: str, continuation_id: str, caller: TurnCaller) -> Continuation:
        _, entry = self._entry(owner, continuation_id)
        entry.continuation = turn_rules.set_caller(entry.continuation, caller)
        return entry.continuation

    def cancel(
        self,
        owner: str,
        continuation_id: str,
        reason: str,
        *,
        end: TurnEnd = CANCELLED,
        step_count: int | None = None,
    ) -> Continuation:
        ledger, entry = self._entry(owner, continuation_id)
        ledger.cancel(entry, reason, end, step_count, self._clock.now())
        return entry.continuation

    def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        renewed, until = set(), lease_rules.lease_end(self._clock.now(), lease_s)
        for continuation_id in continuation_ids:
            ledger = self._ledgers.get(self._session_of.get(continuation_id, ""))
            if ledger is not None and ledger.renew(continuation_id, worker, until):
                renewed.add(continuation_id)
        return frozenset(renewed)

    def interrupt_lost(self) -> list[Continuation]:
        now = self._clock.now()
        return [ledger.interrupt(entry, now) for ledger, entry in self._find_lost(now)]

    def waiting(self, max_open: int = 1) -> list[Continuation]:
        return [c for ledger in self._all_ledgers() for c in ledger.list_waiting(max_open)]

    def last_id(self) -> str | None:
        sessions = [ledger.session.id for ledger in self._all_ledgers()]
        return max((key for key in (*sessions, *self._session_of) if key < LATEST_ID), default=None)

    def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return self._entry(owner, continuation_id)[1].continuation

    def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        return self._ledger(owner, session_id).continuations(open_only)

    def recent_continuations(
        self,
        owner: str,
        *,
        session_id: str | None = None,
        before: str | None = None,
        statuses: Collection[Status] = (),
        limit: int = 50,
    ) -> list[Continuation]:
        if session_id is not None:
            found: Iterable[Continuation] = self._ledger(owner, session_id).continuations(open_only=False)
        else:
            mine = (ledger for ledger in self._all_ledgers() if ledger.session.owner == owner)
            found = (entry.continuation for ledger in mine for entry in ledger.entries.values())
        wanted = (
            turn
            for turn in found
            if (before is None or turn.id < before) and (not statuses or turn.status in statuses)
        )
        return nlargest(limit, wanted, key=lambda continuation: continuation.id)

    def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        entry = self._entry(owner, continuation_id)[1]
        return entry.continuation, tuple(entry.steps)

    def events(self, owner: str, session_id: str, *, after: int = 0, limit: int = 100) -> list[StoredStep]:
        return self._ledger(owner, session_id).events(after, limit)

    def last_cursor(self, owner: str, session_id: str) -> int:
        return self._ledger(owner, session_id).cursor

    def window(self, owner: str, session_id: str) -> ConversationWindow:
        return self._ledger(owner, session_id).window()

    def window_totals(self, owner: str) -> WindowTotals:
        sessions = [ledger for ledger in self._all_ledgers() if ledger.session.owner == owner]
        return sum_windows(ledger.count_window() for ledger in sessions if ledger.session.status == "active")

    def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        return list(self._ledger(owner, session_id).window_turns())

    def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        return self._ledger(owner, session_id).evicted

    def messages(
        self,
        owner: str,
        session_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        tags: Collection[str] = (),
    ) -> list[StoredMessage]:
        return self._ledger(owner, session_id).messages(after, limit, tags, before)

    def first_texts(self, owner: str, session_ids: Collection[str], *, max_chars: int) -> dict[str, str]:
        wanted = {*session_ids}
        mine = (ledger for ledger in self._all_ledgers() if ledger.session.owner == owner)
        texts = {
            ledger.session.id: ledger.first_text()[:max_chars]
            for ledger in mine
            if ledger.session.id in wanted
        }
        return {session_id: text for session_id, text in texts.items() if text}

    def tag_message(
        self, owner: str, session_id: str, message_id: str, tags: frozenset[str]
    ) -> tuple[Session, StoredMessage]:
        return self._ledger(owner, session_id).tag_message(message_id, tags, self._clock.now())

    def find_words(self, owner: str, session_id: str, words: Sequence[AskedWord]) -> WordHits[int]:
        return self._ledger(owner, session_id).find_words(words)

    def search_words(
        self, owner: str, words: Sequence[AskedWord], *, session_id: str | None = None, count: int
    ) -> WordHits[Spot]:
        searched = {
            ledger.session.id: ledger
            for ledger in self._all_ledgers()
            if ledger.session.owner == owner and session_id in (None, ledger.session.id)
        }

        def find(forms: Iterable[str]) -> set[Spot]:
            return {Spot(id_, at) for id_, ledger in searched.items() for at in ledger.list_with_forms(forms)}

        def find_similar(word: str) -> set[Spot]:
            known = {other for ledger in searched.values() for other in ledger.find_candidates(word)}
            return find(choose_similar(word, known))

        lists = [find(word.forms) for word in words]
        guessed = add_similar(lists, words, find_similar)
        total = sum(len(ledger.transcript) for ledger in searched.values())
        hits = choose_candidates(lists, total, guessed, count)
        found = ((spot, searched[spot.session_id].find_place(spot.position)) for spot in hits.found)
        return hits.at_places({spot: place for spot, place in found if place is not None})

    def read_places(
        self, owner: str, session_id: str, positions: Collection[int], *, with_window: bool = False
    ) -> list[Place]:
        return self._ledger(owner, session_id).read_places(positions, with_window=with_window)

    def messages_at(self, owner: str, session_id: str, positions: Collection[int]) -> list[StoredMessage]:
        ledger = self._ledger(owner, session_id)
        return [ledger.stored_message(n) for n in sorted(positions) if 0 < n <= len(ledger.transcript)]

    def add_vectors(
        self,
        owner: str,
        session_id: str,
        vectors: Sequence[Vector],
        *,
        keep: int,
        replace_all: bool = False,
    ) -> None:
        self._ledger(owner, session_id).add_vectors(vectors, keep, replace_all)

    def vectors(
        self, owner: str, session_id: str, *, model: str | None = None, limit: int | None = None
    ) -> list[Vector]:
        newest_first = reversed(self._ledger(owner, session_id).vectors.values())
        return list(islice((v for v in newest_first if model in (None, v.model)), limit))[::-1]

    def turn_stats(self, owner: str | None, since: datetime) -> list[tuple[datetime, Stats]]:
        turns = (
            entry.continuation
            for ledger in self._all_ledgers()
            if owner in (None, ledger.session.owner)
            for entry in ledger.entries.values()
        )
        found = [(turn.updated_at, turn.stats) for turn in turns if turn.stats and turn.updated_at >= since]
        return sorted(found, key=lambda item: item[0]) + self._spent.list_since(owner, since)

    def spend(self, owner: str, usd: float) -> None:
        self._spent.add(owner, self._clock.now(), usd)

    def put_artifact(self, artifact: Artifact) -> None:
        self._ledger(artifact.owner, artifact.session_id)
        self._artifacts.write(artifact)

    def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        return self._artifacts.read(owner, artifact_id)

    def export_session(self, owner: str, session_id: str) -> Bundle:
        ledger = self._ledger(owner, session_id)
        return replace(make_bundle(ledger), artifacts=tuple(self._artifacts.list_session(session_id)))

    def import_session(self, bundle: Bundle) -> Session:
        session = session_names.prepare_import(bundle.session, self._find_named(bundle.session))
        if session.id in self._ledgers:
            record_errors.raise_session_exists(session.id)
        waiting_ids = {turn.id for ledger in self._all_ledgers() for turn in ledger.waiting_turns.values()}
        if (
            any(c.id in self._session_of for c in bundle.continuations)
            or any(self._artifacts.has(a.ref.id) for a in bundle.artifacts)
            or any(turn.id in waiting_ids for turn in bundle.waiting_turns)
        ):
            record_errors.raise_parts_exist(session.id)
        self._add(make_ledger(drop_bundle_prices(replace(bundle, session=session))))
        for artifact in bundle.artifacts:
            self._artifacts.write(artifact)
        return session

    def sweep(
        self, *, idle_before: datetime, ended_before: datetime, delete_before: datetime | None = None
    ) -> SweepCounts:
        self._spent.drop_before(idle_before)
        ledgers = tuple(self._all_ledgers())
        swept = [self._sweep_session(ledger, idle_before, ended_before) for ledger in ledgers]
        old = (
            ledger.session
            for ledger in self._all_ledgers()
            if retention_rules.may_delete(ledger.session, ended_before, delete_before)
        )
        return SweepCounts(
            sum(counts.sessions for counts in swept),
            sum(counts.continuations for counts in swept),
            sum(counts.steps for counts in swept),
            self._delete_all((session.owner, session.id) for session in old),
            self._delete_unused_artifacts(ended_before),
        )

    def _delete_unused_artifacts(self, before: datetime) -> int:
        """Delete artifacts from before `before` that nothing refers to, and return their number."""
        unused = [
            artifact_id
            for artifact_id, session_id in self._artifacts.list_ids()
            if retention_rules.is_old_artifact(artifact_id, before)
            and (ledger := self._ledgers.get(session_id)) is not None
            and not ledger.refers_to(artifact_id)
        ]
        return self._remove_artifacts(unused)

    def _remove_artifacts(self, artifact_ids: Iterable[str]) -> int:
        """Remove artifacts, and return their number."""
        found = list(artifact_ids)
        for artifact_id in found:
            self._artifacts.remove(artifact_id)
        return len(found)

    def _sweep_session(self, ledger: Ledger, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        expired = ledger.expire_forgotten(ended_before, self._clock.now())
        keep_parts(ledger.entries.values(), ended_before)
        steps = ledger.drop_old_steps(ended_before)
        return SweepCounts(int(ledger.expire_if_idle(idle_before)), expired, steps)

    def _append(
        self, lease: Lease, steps: Sequence[StepBody], release: Release | None, prompts: SentPrompts
    ) -> tuple[Step, ...]:
        return self._leased(lease).append(lease, steps, release, prompts, self._clock.now())

    def _finish(self, lease: Lease, end: TurnEnd, based_on: Session | None) -> EndWritten:
        return self._leased(lease).finish(lease, end, self._clock.now(), based_on)

    def _all_ledgers(self) -> Collection[Ledger]:
        return self._ledgers.values()

    def _sessions_of(self, owner: str) -> Iterator[Session]:
        return (ledger.session for ledger in self._all_ledgers() if ledger.session.owner == owner)

    def _add(self, ledger: Ledger) -> None:
        """Add the ledger of a session to the dicts by id, by continuation and by name."""
        self._ledgers[ledger.session.id] = ledger
        self._session_of |= dict.fromkeys(ledger.entries, ledger.session.id)
        self._names.add(ledger.session)

    def _find_named(self, session: Session) -> Session | None:
        """Return the session that has the name of `session` now. Return None if `session` is not active."""
        name = session_names.get_reserved_name(session)
        return None if name is None else self.find_session(session.owner, name)

    def _find_lost(self, now: datetime) -> Iterable[tuple[Ledger, Entry]]:
        """Return the running continuations without a valid lease, each with the ledger of its session."""
        return [
            (ledger, entry)
            for ledger in self._all_ledgers()
            for entry in ledger.entries.values()
            if lease_rules.is_lost(entry.continuation.status, entry.lease, now)
        ]

    def _ledger(self, owner: str, session_id: str) -> Ledger:
        ledger = self._ledgers.get(session_id)
        if ledger is None or ledger.session.owner != owner:
            record_errors.raise_session_not_found(session_id)
        return ledger

    def _entry(self, owner: str, continuation_id: str) -> tuple[Ledger, Entry]:
        ledger = self._ledgers.get(self._session_of.get(continuation_id, ""))
        if ledger is None or ledger.session.owner != owner:
            record_errors.raise_continuation_not_found(continuation_id)
        return ledger, ledger.entry(continuation_id)

    def _leased(self, lease: Lease) -> Ledger:
        ledger = self._ledgers.get(lease.session_id)
        if ledger is None:
            lease_rules.raise_lease_lost(lease)
        return ledger
