"""Whole sessions as ledgers, for export and import."""

from sash.ports.store import Bundle
from sash.stores.ledger.entry import Entry
from sash.stores.ledger.session_ledger import Ledger


def make_bundle(ledger: Ledger) -> Bundle:
    """Return a session with all its records, except its artifacts and vectors."""
    return Bundle(
        session=ledger.session,
        continuations=tuple(entry.continuation for entry in ledger.entries.values()),
        steps=tuple(ledger.events(0, ledger.cursor)),
        messages=tuple(ledger.messages(0, len(ledger.transcript))),
        turn_starts=ledger.turn_starts,
        evicted=ledger.evicted,
        evicted_count=ledger.evicted_count,
        waiting_turns=tuple(ledger.waiting_turns.values()),
    )


def make_ledger(bundle: Bundle) -> Ledger:
    """Return a ledger with the session and all records of a bundle, except its artifacts."""
    ledger = Ledger(bundle.session)
    for continuation in bundle.continuations:
        ledger.add(Entry(continuation))
    for stored in bundle.steps:
        ledger.entries[stored.continuation_id].steps.append(stored.step)
        ledger.cursor = max(ledger.cursor, stored.step.cursor)
    for kept in bundle.messages:
        ledger.add_message(kept.message, kept.continuation_id)
        if kept.in_window:
            ledger.in_window[kept.message.id] = kept.message
    ledger.turn_starts, ledger.evicted = bundle.turn_starts, bundle.evicted
    ledger.evicted_count = bundle.evicted_count
    ledger.waiting_turns = {turn.id: turn for turn in bundle.waiting_turns}
    return ledger
