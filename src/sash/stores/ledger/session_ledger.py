"""One session's records in memory, and the rules by which they change.

The `memory` store keeps ledgers, the `files` store writes them down. A method checks everything before it
changes anything, so that a refused call leaves the ledger as it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sash.errors import ContinuationNotFound, LeaseLost
from sash.ports.store import (
    BegunTurn,
    Bundle,
    ClaimRequest,
    EndWritten,
    Evicted,
    Lease,
    StoredMessage,
    StoredStep,
    SweepCounts,
    Turn,
    TurnEnd,
    Vector,
    WaitingStatus,
    after_turn,
    already_final,
    amended,
    busy,
    check_begin,
    check_version,
    ended,
    lease_end,
    number_steps,
)
from sash.stores.ledger.word_index import WordIndex
from sash.values.continuations import FINAL, HOLDING, Continuation
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import Session
from sash.values.stats import Stats
from sash.values.steps import Amended, Cancelled, Expired, Interrupted, Step, StepBody


@dataclass(slots=True)
class Entry:
    """A continuation with its steps, the messages it added at a position, and who holds it.

    `ended` is the session's cursor at its end.
    """

    continuation: Continuation
    steps: list[Step] = field(default_factory=list)
    messages: list[MessageEntry] = field(default_factory=list)
    position: int = 0
    ended: int = 0
    worker: str | None = None
    lease_until: datetime | None = None
    epoch: int = 0


class Ledger:
    """The records of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.entries: dict[str, Entry] = {}
        self._open: dict[str, Entry] = {}
        self._of_key: dict[str, Entry] = {}
        self.transcript: list[MessageEntry] = []
        self.turn_of: dict[str, str | None] = {}
        self.in_window: dict[str, MessageEntry] = {}
        self.turn_starts: tuple[str, ...] = ()
        self.evicted: tuple[Evicted, ...] = ()
        self.evicted_count = 0
        self.cursor = 0
        self.vectors: dict[int, Vector] = {}
        self._words = (WordIndex(), WordIndex())
        self._indexed = 0

    def save(self, session: Session, now: datetime) -> Session:
        check_version(self.session, session)
        self.session = replace(session, version=session.version + 1, updated_at=now)
        return self.session

    def begin(self, new: Continuation, claim: ClaimRequest, enqueue: bool, now: datetime) -> BegunTurn:
        if same := self._of_key.get(new.request.idempotency_key or ""):
            return BegunTurn(same.continuation, None, created=False)
        check_begin(self.session)
        holder = self.holder()
        if holder is not None and not enqueue:
            raise busy(self.session.id, holder.continuation.id)
        waits = holder is not None or self.next_pending() is not None
        entry = Entry(replace(new, status="pending"))
        self.add(entry)
        if waits:
            return BegunTurn(entry.continuation, None, created=True)
        turn = self._hand_over(entry, claim, now)
        return BegunTurn(turn.continuation, turn, created=True)

    def add(self, entry: Entry) -> None:
        """Take a continuation into the books."""
        continuation = entry.continuation
        self.entries[continuation.id] = entry
        if not continuation.is_final:
            self._open[continuation.id] = entry
        if key := continuation.request.idempotency_key:
            self._of_key[key] = entry

    def claim(self, entry: Entry, claim: ClaimRequest, steps: Sequence[StepBody], now: datetime) -> Turn:
        if entry.continuation.is_final:
            raise already_final(entry.continuation)
        holder = self.holder()
        waits_for_approval = entry.continuation.status == "awaiting_approval"
        if holder is not None and not (holder is entry and waits_for_approval):
            raise busy(self.session.id, holder.continuation.id)
        self._write(entry, steps, now)
        return self._hand_over(entry, claim, now)

    def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        give_back: WaitingStatus | None,
        stats: Stats,
        now: datetime,
    ) -> tuple[Step, ...]:
        entry = self.held(lease)
        written = self._write(entry, steps, now)
        if give_back is not None:
            entry.continuation = replace(entry.continuation, status=give_back, updated_at=now, stats=stats)
            self._let_go(entry)
        return written

    def finish(self, lease: Lease, end: TurnEnd, now: datetime) -> EndWritten:
        entry = self.held(lease)
        written = self._write(entry, end.steps, now)
        self._close(entry, end, now)
        self.take_in(entry.continuation.id, end, now)
        return EndWritten(written, self.next_pending() is not None)

    def record(
        self, new: Continuation, end: TurnEnd, session: Session, now: datetime
    ) -> tuple[Continuation, tuple[Step, ...]]:
        if same := self._of_key.get(new.request.idempotency_key or ""):
            return same.continuation, ()
        check_version(self.session, session)
        check_begin(self.session)
        if holder := self.holder():
            raise busy(self.session.id, holder.continuation.id)
        entry = Entry(replace(new, status="pending"))
        self.add(entry)
        written = self._write(entry, end.steps, now)
        self._close(entry, end, now)
        self.take_in(new.id, end, now)
        return entry.continuation, written

    def amend(self, entry: Entry, text: str, token_count: int, now: datetime) -> Continuation:
        answer = entry.messages[-1] if entry.messages else None
        continuation, message = amended(entry.continuation, answer, text, token_count)
        self._write(entry, (Amended(text),), now)
        entry.continuation = continuation
        self.put_answer(entry, message)
        self.touch(now)
        return continuation

    def touch(self, now: datetime) -> None:
        """Note that the window is not as it was."""
        self.session = replace(self.session, version=self.session.version + 1, updated_at=now)

    def put_answer(self, entry: Entry, message: MessageEntry) -> None:
        """Put an amended answer in the place of the one that it amends."""
        old = entry.messages[-1]
        place = self.transcript.index(old, entry.position - 1)
        entry.messages[-1] = self.transcript[place] = message
        if message.id in self.in_window:
            self.in_window[message.id] = message
        if place < self._indexed:
            for index in self._words:
                index.replace(place + 1, old.text, message.text)
        self.vectors.pop(entry.position, None)

    def take_in(self, continuation_id: str, end: TurnEnd, now: datetime) -> None:
        """Add what a turn leaves behind to the session, the transcript and the window."""
        self.session = after_turn(self.session, end, now)
        for message in end.messages:
            self.say(message, continuation_id)
            self.in_window[message.id] = message
        if end.cut is not None:
            for gone in end.cut.evicted:
                del self.in_window[gone.message_id]
            self.turn_starts, self.evicted = end.cut.turn_starts, end.cut.evicted
            self.evicted_count += len(self.evicted)

    def say(self, message: MessageEntry, continuation_id: str | None) -> None:
        """Add a message to the transcript."""
        self.transcript.append(message)
        self.turn_of[message.id] = continuation_id
        if entry := self.entries.get(continuation_id or ""):
            entry.position = entry.position or len(self.transcript)
            entry.messages.append(message)

    def cancel(self, entry: Entry, reason: str, stats: Stats, now: datetime) -> TurnEnd:
        if entry.continuation.is_final:
            raise already_final(entry.continuation)
        end = TurnEnd("cancelled", (Cancelled(reason),), stats=stats)
        self._write(entry, end.steps, now)
        self._close(entry, end, now)
        self.take_in(entry.continuation.id, end, now)
        return end

    def interrupt(self, entry: Entry, now: datetime) -> Continuation:
        self._write(entry, (Interrupted(),), now)
        entry.continuation = replace(entry.continuation, status="interrupted", updated_at=now)
        self._let_go(entry)
        return entry.continuation

    def expire(self, entry: Entry, now: datetime) -> None:
        end = TurnEnd("expired", (Expired(),))
        self._write(entry, end.steps, now)
        self._close(entry, end, now)

    def sweep(self, idle_before: datetime, ended_before: datetime, now: datetime) -> SweepCounts:
        expired = steps = 0
        for entry in self.entries.values():
            if entry.continuation.updated_at >= ended_before:
                continue
            if entry.continuation.is_final:
                steps += len(entry.steps)
                entry.steps.clear()
            elif entry.worker is None:
                self.expire(entry, now)
                expired += 1
        idle = self.session.status == "active" and self.session.updated_at < idle_before
        if idle := idle and self.holder() is None:
            self.session = replace(self.session, status="expired", version=self.session.version + 1)
        return SweepCounts(int(idle), expired, steps)

    def entry(self, continuation_id: str) -> Entry:
        try:
            return self.entries[continuation_id]
        except KeyError:
            raise ContinuationNotFound(
                f"no continuation {continuation_id}", continuation_id=continuation_id
            ) from None

    def leases(self) -> dict[str, tuple[str | None, datetime | None, int]]:
        """Who holds what, for a ledger that is read anew."""
        return {key: (entry.worker, entry.lease_until, entry.epoch) for key, entry in self._open.items()}

    def take_leases(self, leases: dict[str, tuple[str | None, datetime | None, int]]) -> None:
        """Let those who held something hold it again."""
        for key, entry in self._open.items():
            if key in leases:
                entry.worker, entry.lease_until, entry.epoch = leases[key]

    def held(self, lease: Lease) -> Entry:
        """Return the entry that the lease speaks of, if it still holds."""
        entry = self.entries.get(lease.continuation_id)
        if entry is None or (entry.worker, entry.epoch) != (lease.worker, lease.epoch):
            raise LeaseLost(lease.continuation_id)
        return entry

    def holder(self) -> Entry | None:
        """Return who runs or awaits approval: one at the most."""
        return next((e for e in self._open.values() if e.continuation.status in HOLDING), None)

    def next_pending(self) -> Entry | None:
        """Return who waits longest."""
        return next((e for e in self._open.values() if e.continuation.status == "pending"), None)

    def waiting(self) -> list[Continuation]:
        """Return what could go on: pending or interrupted, if nobody holds the session."""
        if self.holder() is not None:
            return []
        turns = (entry.continuation for entry in self._open.values())
        return [turn for turn in turns if turn.status in ("pending", "interrupted")]

    def window(self) -> ConversationWindow:
        limits = self.session.window
        return ConversationWindow(
            self.session.id,
            tuple(self.in_window.values()),
            max_tokens=limits.max_tokens,
            max_turns=limits.max_turns,
            evict_to=limits.evict_to,
            evicted_count=self.evicted_count,
            turn_starts=self.turn_starts,
        )

    def window_turns(self) -> Iterable[Continuation]:
        """Return the turns that have messages in the window."""
        ids = dict.fromkeys(self.turn_of[message_id] or "" for message_id in self.in_window)
        return (self.entries[key].continuation for key in ids if key in self.entries)

    def continuations(self, open_only: bool) -> list[Continuation]:
        entries = self._open if open_only else self.entries
        return [entry.continuation for entry in entries.values()]

    def messages(self, after: int, limit: int) -> list[StoredMessage]:
        chosen = self.transcript[after : after + limit]
        return [self.stored(message, position) for position, message in enumerate(chosen, after + 1)]

    def stored(self, message: MessageEntry, position: int) -> StoredMessage:
        turn = self.turn_of.get(message.id)
        return StoredMessage(self.session.id, position, message, message.id in self.in_window, turn)

    def add_vectors(self, vectors: Sequence[Vector], keep: int) -> None:
        merged = self.vectors | {vector.position: vector for vector in vectors}
        self.vectors = {position: merged[position] for position in sorted(merged)[-keep:]}

    def recall(self, beginnings: Sequence[str], limit: int, said: bool) -> list[StoredMessage]:
        self._index()
        found: set[int] = set()
        for beginning in beginnings:
            newest = self._words[said].newest(beginning, limit + len(self.in_window))
            gone = [at for at in newest if self.transcript[at - 1].id not in self.in_window]
            found |= set(sorted(gone, reverse=True)[:limit])
        return [self.stored(self.transcript[at - 1], at) for at in sorted(found)]

    def _index(self) -> None:
        """Let the indexes catch up with the transcript: one of all, and one of what was said."""
        for position, message in enumerate(self.transcript[self._indexed :], self._indexed + 1):
            for index in self._words[: 1 + (message.role != "tool")]:
                index.add(position, message.text)
        self._indexed = len(self.transcript)

    def events(self, after: int, limit: int) -> list[StoredStep]:
        found = [
            StoredStep(entry.continuation.id, step)
            for entry in self.entries.values()
            for step in entry.steps
            if step.cursor > after
        ]
        return sorted(found, key=lambda stored: stored.step.cursor)[:limit]

    def bundle(self) -> Bundle:
        return Bundle(
            session=self.session,
            continuations=tuple(entry.continuation for entry in self.entries.values()),
            steps=tuple(self.events(0, self.cursor)),
            messages=tuple(self.messages(0, len(self.transcript))),
            turn_starts=self.turn_starts,
            evicted=self.evicted,
            evicted_count=self.evicted_count,
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> "Ledger":
        ledger = cls(bundle.session)
        for continuation in bundle.continuations:
            ledger.add(Entry(continuation))
        for stored in bundle.steps:
            ledger.entries[stored.continuation_id].steps.append(stored.step)
            ledger.cursor = max(ledger.cursor, stored.step.cursor)
        for kept in bundle.messages:
            ledger.say(kept.message, kept.continuation_id)
            if kept.in_window:
                ledger.in_window[kept.message.id] = kept.message
        ledger.turn_starts, ledger.evicted = bundle.turn_starts, bundle.evicted
        ledger.evicted_count = bundle.evicted_count
        return ledger

    def _hand_over(self, entry: Entry, claim: ClaimRequest, now: datetime) -> Turn:
        entry.continuation = replace(entry.continuation, status="running", updated_at=now)
        entry.worker, entry.lease_until = claim.worker, lease_end(now, claim.lease_s)
        entry.epoch += 1
        lease = Lease(entry.continuation.id, self.session.id, claim.worker, entry.epoch)
        window = None if claim.knows(self.session.version) else self.window()
        return Turn(lease, entry.continuation, self.session, window, tuple(entry.steps))

    def _write(self, entry: Entry, steps: Sequence[StepBody], now: datetime) -> tuple[Step, ...]:
        written = number_steps(steps, len(entry.steps), self.cursor, now)
        entry.steps += written
        self.cursor += len(written)
        return written

    def _close(self, entry: Entry, end: TurnEnd, now: datetime) -> None:
        entry.continuation, entry.ended = ended(entry.continuation, end, now), self.cursor
        assert end.status in FINAL
        del self._open[entry.continuation.id]
        self._let_go(entry)

    def _let_go(self, entry: Entry) -> None:
        entry.worker = entry.lease_until = None
        entry.epoch += 1
