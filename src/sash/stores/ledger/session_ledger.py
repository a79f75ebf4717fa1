"""The records of one session in memory.

The methods check everything with `rules` before they change anything, so that a call that raises leaves the
ledger as it was.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from sash.memory.asked_words import AskedWord
from sash.memory.recall_ranking import SPOKEN_ROLES, Place, WordHits, choose_candidates, make_place
from sash.memory.similar_words import add_similar, choose_similar
from sash.ports.store import FIRST_MESSAGES, StoredMessage, StoredStep, Vector
from sash.ports.turns import (
    BegunTurn,
    ClaimRequest,
    Cut,
    EndWritten,
    Evicted,
    Lease,
    SessionTotals,
    Turn,
    TurnEnd,
)
from sash.stores.ledger.entry import Entry
from sash.stores.ledger.transcript_index import TranscriptIndex
from sash.stores.rules import (
    lease_rules,
    message_rules,
    record_errors,
    retention_rules,
    session_versions,
    turn_rules,
    waiting_rules,
)
from sash.stores.states import (
    EndChange,
    EndState,
    Holders,
    LeaseState,
    Release,
    SessionState,
    TurnChange,
    TurnState,
)
from sash.values.codec import encode
from sash.values.continuations import HOLDING, Continuation
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.prompts import SentPrompts
from sash.values.sessions import Session
from sash.values.steps import Step, StepBody
from sash.values.waiting_turns import WaitingTurn
from sash.values.window_stats import WindowStats


class Ledger:
    """The records of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.entries: dict[str, Entry] = {}
        self.transcript: list[MessageEntry] = []
        self.turn_of: dict[str, str | None] = {}
        self.in_window: dict[str, MessageEntry] = {}
        self.turn_starts: tuple[str, ...] = ()
        self.evicted: tuple[Evicted, ...] = ()
        self.evicted_count = 0
        self.cursor = 0
        self.vectors: dict[int, Vector] = {}
        self.waiting_turns: dict[str, WaitingTurn] = {}
        self._open: dict[str, Entry] = {}
        self._by_key: dict[str, Entry] = {}
        self._words = TranscriptIndex()

    def begin(
        self,
        new: Continuation,
        claim: ClaimRequest,
        enqueue: bool,
        owner_pending_count: int,
        now: datetime,
    ) -> BegunTurn:
        existing, fires = self._find_by_key(new), new.request.fires or ""
        waiting_rules.check_firing(new, existing, fires in self.waiting_turns)
        begun = turn_rules.begin(
            self.session,
            self._state(),
            existing,
            new,
            claim,
            enqueue=enqueue,
            owner_pending_count=owner_pending_count,
            now=now,
        )
        self.waiting_turns.pop(fires, None)
        if not begun.created:
            return BegunTurn(begun.continuation, None, created=False)
        entry = Entry(begun.continuation, lease=begun.lease)
        self.add(entry)
        turn = None if begun.lease.worker is None else self._turn(entry, claim)
        return BegunTurn(begun.continuation, turn, created=True)

    def claim(self, entry: Entry, claim: ClaimRequest, steps: Sequence[StepBody], now: datetime) -> Turn:
        turn, holders = self._turn_state(entry), self.holders()
        change = turn_rules.claim(self.session, entry.continuation, turn, holders, claim, steps, now)
        self._apply(entry, change)
        return self._turn(entry, claim)

    def claim_next(self, claim: ClaimRequest, now: datetime) -> Turn | None:
        entry = self._find_pending()
        if entry is None:
            return None
        if not turn_rules.is_claimable(entry.continuation.status, self.holders().number, claim.max_open):
            return None
        return self.claim(entry, claim, (), now)

    def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        release: Release | None,
        prompts: SentPrompts,
        now: datetime,
    ) -> tuple[Step, ...]:
        entry = self.entries.get(lease.continuation_id)
        turn = None if entry is None else self._turn_state(entry)
        change = turn_rules.append(lease, turn, steps, release, now)
        assert entry is not None  # the rule raises for an unknown continuation
        continuation = entry.continuation
        if change.released is not None:
            continuation = replace(continuation, **change.released._asdict())
        self._apply(entry, TurnChange(continuation, change.steps, change.lease))
        entry.prompts += [prompts] if prompts else []
        return change.steps

    def finish(
        self, lease: Lease, end: TurnEnd, now: datetime, based_on: Session | None = None
    ) -> EndWritten:
        entry = self.entries.get(lease.continuation_id)
        state = None if entry is None else self._end_state(entry)
        change = turn_rules.finish(lease, state, end, now, based_on)
        assert entry is not None  # the rule raises for an unknown continuation
        self._end(entry, end, change, now)
        return EndWritten(change.steps, change.next_waits)

    def record(
        self, new: Continuation, end: TurnEnd, session: Session, now: datetime
    ) -> tuple[Continuation, tuple[Step, ...]]:
        existing = self._find_by_key(new)
        recorded, change = turn_rules.record(session, self._state(), existing, new, end, now)
        if change is None:
            return recorded, ()
        entry = Entry(recorded)
        self.add(entry)
        self._end(entry, end, change, now)
        return recorded, change.steps

    def amend(self, entry: Entry, text: str, token_count: int, now: datetime) -> Continuation:
        answer = entry.messages[-1] if entry.messages else None
        turn = self._turn_state(entry)
        change = turn_rules.amend(self.session, entry.continuation, turn, answer, text, token_count, now)
        self._apply(entry, TurnChange(change.continuation, change.steps, entry.lease))
        self.replace_answer(entry, change.answer)
        self.session = change.session
        return change.continuation

    def cancel(
        self, entry: Entry, reason: str, work: TurnEnd, step_count: int | None, now: datetime
    ) -> TurnEnd:
        end = turn_rules.cancel(entry.continuation, self._turn_state(entry), reason, work, step_count)
        self._end(entry, end, turn_rules.end_turn(self._end_state(entry), end, now), now)
        return end

    def renew(self, continuation_id: str, worker: str, until: datetime) -> bool:
        """Renew the worker's lease on a continuation. Return False if the worker does not hold it."""
        entry = self.entry(continuation_id)
        lease = lease_rules.renew_lease(entry.lease, worker, until)
        entry.lease = lease or entry.lease
        return lease is not None

    def interrupt(self, entry: Entry, now: datetime) -> Continuation:
        turn = self._turn_state(entry)
        self._apply(entry, turn_rules.interrupt(entry.continuation, turn, entry.steps, now))
        return entry.continuation

    def expire_forgotten(self, before: datetime, now: datetime) -> int:
        """Expire continuations without a worker that have not changed since `before`; return their number."""
        forgotten = [entry for entry in self._open.values() if entry.is_forgotten(before)]
        for entry in forgotten:
            self._apply(
                entry, turn_rules.expire(entry.continuation, self._turn_state(entry), entry.steps, now)
            )
            self._close(entry)
        return len(forgotten)

    def drop_old_steps(self, before: datetime) -> int:
        """Drop the steps of continuations that ended before `before`, and return the number of steps."""
        return sum(entry.drop_steps() for entry in self.entries.values() if entry.may_drop_steps(before))

    def expire_if_idle(self, before: datetime) -> bool:
        """Expire the session if it has not changed since `before`. Return True if this call expired it."""
        session = self.session
        holder_count = self.holders().number + len(self.waiting_turns)
        is_idle = retention_rules.is_idle(session.status, session.updated_at, holder_count, before)
        if is_idle:
            status, version = session_versions.expire_session(session.version)
            self.session = replace(session, status=status, version=version)
        return is_idle

    def refers_to(self, artifact_id: str) -> bool:
        """Return True if a turn, a step or a message names the artifact."""
        for entry in self.entries.values():
            if any(ref.id == artifact_id for ref in entry.continuation.artifacts):
                return True
            if any(artifact_id in encode(step) for step in entry.steps):
                return True
        return any(artifact_id in encode(message) for message in self.transcript)

    def add(self, entry: Entry) -> None:
        continuation = entry.continuation
        self.entries[continuation.id] = entry
        if not continuation.is_final:
            self._open[continuation.id] = entry
        if key := continuation.request.idempotency_key:
            self._by_key[key] = entry

    def add_message(self, message: MessageEntry, continuation_id: str | None) -> None:
        """Add a message to the end of the transcript. An imported message may have no continuation (None)."""
        self.transcript.append(message)
        self.turn_of[message.id] = continuation_id
        if entry := self.entries.get(continuation_id or ""):
            entry.first_position = entry.first_position or len(self.transcript)
            entry.messages.append(message)

    def apply_end(self, continuation_id: str, end: TurnEnd, now: datetime) -> None:
        """Apply the end of a turn to the session, the transcript and the window."""
        self.session = end.apply_to_session(self.session, now)
        for message in end.messages:
            self.add_message(message, continuation_id)
            self.in_window[message.id] = message
        if end.cut is not None:
            self.cut_window(end.cut)

    def add_waiting_turn(self, turn: WaitingTurn) -> WaitingTurn:
        known = self.waiting_turns.values()
        if same := waiting_rules.find_same(turn, known):
            return same
        waiting_rules.check_room(self.session, known)
        self.waiting_turns[turn.id] = turn
        return turn

    def drop_fired(self) -> None:
        """Drop the waiting turns that have become continuations, after a crash between the two writes."""
        self.waiting_turns = {
            turn.id: turn for turn in self.waiting_turns.values() if turn.key not in self._by_key
        }

    def cut_window(self, cut: Cut) -> None:
        change = message_rules.cut_window(self.in_window, self.evicted_count, cut)
        self.in_window, self.evicted_count = change.kept, change.evicted_count
        self.turn_starts, self.evicted = cut.turn_starts, cut.evicted

    def replace_answer(self, entry: Entry, answer: MessageEntry) -> None:
        """Replace the last message of a turn, and delete its vector, which no longer fits.

        Before vectors of messages there were vectors of turns, with the position of the turn's first message.
        """
        old = entry.messages[-1]
        index = self.transcript.index(old, entry.first_position - 1)
        entry.messages[-1] = self.transcript[index] = answer
        if answer.id in self.in_window:
            self.in_window[answer.id] = answer
        self._words.replace(index + 1, old, answer)
        of_turn = range(entry.first_position, index + 2)
        self.vectors.pop(max(filter(self.vectors.__contains__, of_turn), default=0), None)

    def entry(self, continuation_id: str) -> Entry:
        """Return the entry of a continuation, or raise `ContinuationNotFound`."""
        entry = self.entries.get(continuation_id)
        if entry is None:
            record_errors.raise_continuation_not_found(continuation_id)
        return entry

    def open_leases(self) -> dict[str, LeaseState]:
        """Return the leases of all open continuations, by continuation id."""
        return {key: entry.lease for key, entry in self._open.items()}

    def restore_leases(self, leases: dict[str, LeaseState]) -> None:
        """Set the leases that `open_leases` returned before the ledger was read again."""
        for key, entry in self._open.items():
            entry.lease = leases.get(key, entry.lease)

    def holders(self) -> Holders:
        """Return the continuations that run or await approval."""
        ids = [key for key, entry in self._open.items() if entry.continuation.status in HOLDING]
        return Holders(min(ids, default=None), len(ids))

    def count_pending(self) -> int:
        """Return the number of queued turns."""
        return sum(entry.continuation.status == "pending" for entry in self._open.values())

    def list_waiting(self, max_open: int) -> list[Continuation]:
        """Return the pending and interrupted continuations; empty if `max_open` turns hold the session."""
        turns, count = (entry.continuation for entry in self._open.values()), self.holders().number
        return [turn for turn in turns if turn_rules.is_claimable(turn.status, count, max_open)]

    def window(self) -> ConversationWindow:
        messages = self.in_window.values()
        return message_rules.make_window(self.session, messages, self.turn_starts, self.evicted_count)

    def count_window(self) -> WindowStats:
        messages = self.in_window.values()
        return WindowStats(
            len(messages),
            sum(message.token_count for message in messages),
            self.session.window.max_tokens,
            evicted_count=self.evicted_count,
            tag_distribution=Counter(tag for message in messages for tag in message.tags),
        )

    def window_turns(self) -> Iterable[Continuation]:
        """Return the continuations of the messages in the window, in the order of the messages."""
        ids = dict.fromkeys(self.turn_of[message_id] or "" for message_id in self.in_window)
        return (self.entries[key].continuation for key in ids if key in self.entries)

    def continuations(self, open_only: bool) -> list[Continuation]:
        entries = self._open if open_only else self.entries
        return [entry.continuation for entry in entries.values()]

    def messages(
        self, after: int, limit: int, tags: Collection[str] = (), before: int | None = None
    ) -> list[StoredMessage]:
        end = len(self.transcript) + 1
        wanted = range(after + 1, end if before is None else min(before, end))
        nearest_first = wanted if before is None else reversed(wanted)
        tagged = (n for n in nearest_first if not tags or not self.transcript[n - 1].tags.isdisjoint(tags))
        return [self.stored_message(position) for position in sorted(islice(tagged, limit))]

    def first_text(self) -> str:
        """Return the text of the first user message, or an empty text."""
        first = self.transcript[:FIRST_MESSAGES]
        return next((message.text for message in first if message.role == "user"), "")

    def tag_message(
        self, message_id: str, tags: frozenset[str], now: datetime
    ) -> tuple[Session, StoredMessage]:
        index = next((n for n, message in enumerate(self.transcript) if message.id == message_id), None)
        if index is None:
            record_errors.raise_message_not_found(self.session.id, message_id)
        self.session, tagged = message_rules.tag_message(self.session, self.transcript[index], tags, now)
        self.transcript[index] = tagged
        if entry := self.entries.get(self.turn_of[message_id] or ""):
            entry.messages[index + 1 - entry.first_position] = tagged
        if message_id in self.in_window:
            self.in_window[message_id] = tagged
        return self.session, self.stored_message(index + 1)

    def stored_message(self, position: int) -> StoredMessage:
        message = self.transcript[position - 1]
        turn = self.turn_of.get(message.id)
        return StoredMessage(self.session.id, position, message, message.id in self.in_window, turn)

    def add_vectors(self, vectors: Sequence[Vector], keep: int, replace_all: bool) -> None:
        if replace_all:
            self.vectors = {}
        last = next(reversed(self.vectors), 0)
        self.vectors |= {vector.position: vector for vector in sorted(vectors, key=lambda v: v.position)}
        if any(vector.position <= last for vector in vectors):
            self.vectors = dict(sorted(self.vectors.items()))
        self.drop_vectors(list(islice(self.vectors, max(0, len(self.vectors) - keep))))

    def drop_vectors(self, positions: Iterable[int]) -> None:
        """Drop the vectors at some positions."""
        for position in positions:
            self.vectors.pop(position, None)

    def find_words(self, words: Sequence[AskedWord]) -> WordHits[int]:
        """Find the evicted messages with some words."""
        lists = [{*filter(self._is_evicted, self.list_with_forms(word.forms))} for word in words]

        def find_similar(word: str) -> set[int]:
            similar = choose_similar(word, self.find_candidates(word))
            return {*filter(self._is_evicted, self.list_with_forms(similar))}

        guessed = add_similar(lists, words, find_similar)
        hits = choose_candidates(lists, len(self.transcript) - len(self.in_window), guessed)
        return hits.at_places({at: place for at in hits.found if (place := self.find_place(at))})

    def list_with_forms(self, forms: Iterable[str]) -> set[int]:
        """Return the positions of the messages with one of some forms, without results of tools."""
        index = self._words.update(self.transcript)
        return {at for form in forms for at in index.find(form)}

    def find_candidates(self, word: str) -> list[str]:
        """Return the words of the transcript that share the most parts with one."""
        return self._words.update(self.transcript).find_candidates(word)

    def read_places(self, positions: Collection[int], *, with_window: bool) -> list[Place]:
        """Return the places of those messages at some positions that were said."""
        known = (n for n in sorted(positions) if 0 < n <= len(self.transcript))
        wanted = (n for n in known if with_window or self._is_evicted(n))
        return [place for n in wanted if (place := self.find_place(n))]

    def find_place(self, position: int) -> Place | None:
        """Return the place of a message of the transcript, or None if it was not said."""
        message = self.transcript[position - 1]
        return make_place(position, message) if message.role in SPOKEN_ROLES and message.text else None

    def _is_evicted(self, position: int) -> bool:
        return self.transcript[position - 1].id not in self.in_window

    def events(self, after: int, limit: int) -> list[StoredStep]:
        found = [
            StoredStep(entry.continuation.id, step)
            for entry in self.entries.values()
            for step in entry.steps
            if step.cursor > after
        ]
        return sorted(found, key=lambda stored: stored.step.cursor)[:limit]

    def _state(self) -> SessionState:
        holders = self.holders()
        return SessionState(
            self.session.version,
            len(self.transcript),
            self.cursor,
            holders.oldest_id,
            holders.number,
            self.count_pending(),
        )

    def _turn_state(self, entry: Entry) -> TurnState:
        return TurnState(entry.lease, len(entry.steps), self.cursor)

    def _end_state(self, entry: Entry) -> EndState:
        has_pending = self._find_pending() is not None
        totals = SessionTotals.of(self.session)
        return EndState(self._turn_state(entry), len(self.transcript), has_pending, totals)

    def _find_by_key(self, new: Continuation) -> Continuation | None:
        entry = self._by_key.get(new.request.idempotency_key or "")
        return None if entry is None else entry.continuation

    def _find_pending(self) -> Entry | None:
        """Return the oldest continuation with the status "pending", or None."""
        return next((e for e in self._open.values() if e.continuation.status == "pending"), None)

    def _turn(self, entry: Entry, claim: ClaimRequest) -> Turn:
        lease = lease_rules.make_lease(entry.continuation, entry.lease)
        window = None if claim.knows(self.session.version) else self.window()
        return Turn(lease, entry.continuation, self.session, window, tuple(entry.steps), self.cursor)

    def _apply(self, entry: Entry, change: TurnChange) -> None:
        entry.continuation, entry.lease = change.continuation, change.lease
        entry.steps += change.steps
        self.cursor += len(change.steps)

    def _end(self, entry: Entry, end: TurnEnd, change: EndChange, now: datetime) -> None:
        ended = end.apply_to_continuation(entry.continuation, now)
        self._apply(entry, TurnChange(ended, change.steps, change.lease))
        entry.prompts += [end.prompts] if end.prompts else []
        self._close(entry)
        self.apply_end(ended.id, end, now)

    def _close(self, entry: Entry) -> None:
        entry.end_cursor = self.cursor
        self._open.pop(entry.continuation.id, None)
