"""One continuation of a ledger, with its records."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sash.stores.rules import retention_rules
from sash.stores.states import NO_LEASE, LeaseState
from sash.values.continuations import Continuation
from sash.values.messages import MessageEntry
from sash.values.prompts import PromptPart, SentPrompts, find_needed, move_parts
from sash.values.steps import Step


@dataclass(slots=True)
class Entry:
    """A continuation with its steps, its messages and its lease.

    `first_position` is the position of its first message in the transcript, 0 if it has none. `end_cursor` is
    the session's cursor at its end. `kept_parts` are parts of prompts of dropped turns that others need.
    """

    continuation: Continuation
    steps: list[Step] = field(default_factory=list)
    messages: list[MessageEntry] = field(default_factory=list)
    first_position: int = 0
    end_cursor: int = 0
    lease: LeaseState = NO_LEASE
    prompts: list[SentPrompts] = field(default_factory=list)
    kept_parts: tuple[PromptPart, ...] = ()

    def is_forgotten(self, before: datetime) -> bool:
        """Return True if it is open, has no worker, and has not changed since `before`."""
        turn = self.continuation
        return retention_rules.is_forgotten(turn.status, turn.updated_at, self.lease.worker, before)

    def may_drop_steps(self, before: datetime) -> bool:
        """Return True if it ended before `before`."""
        turn = self.continuation
        return retention_rules.may_drop_steps(turn.status, turn.updated_at, before)

    def drop_steps(self) -> int:
        """Drop the steps and the prompts, and return the number of steps."""
        dropped = len(self.steps)
        self.steps.clear()
        self.prompts.clear()
        self.kept_parts = ()
        return dropped

    def list_prompts(self) -> list[SentPrompts]:
        return [*self.prompts, SentPrompts(parts=self.kept_parts)]


def get_prompts(entry: Entry, entries: Iterable[Entry]) -> SentPrompts:
    """Return the prompts of a turn, with all parts that they use. `entries` are all turns of the session."""
    records = tuple(record for sent in entry.prompts for record in sent.records)
    every = (sent for each in entries for sent in each.list_prompts())
    parts = {part.key: part for sent in every for part in sent.parts}
    return SentPrompts(records, tuple(find_needed(records, parts).values()))


def keep_parts(entries: Collection[Entry], before: datetime) -> Entry | None:
    """Move parts of prompts to the first kept turn: those that kept turns need, but old turns have.

    A turn is old if it ended before `before`. Return the first kept turn, or None if no part was moved.
    """
    old = [entry for entry in entries if entry.may_drop_steps(before)]
    kept = [entry for entry in entries if entry.prompts and not entry.may_drop_steps(before)]
    dropped = [sent for entry in old for sent in entry.list_prompts()]
    moved = move_parts(dropped, [sent for entry in kept for sent in entry.prompts])
    if not moved:
        return None
    kept[0].kept_parts += moved
    return kept[0]
