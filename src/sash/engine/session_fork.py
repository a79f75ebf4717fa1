"""Copies of a session: whole, or up to one of its turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sash.engine.window_cache import evict_oldest
from sash.errors import ContinuationNotFound, InvalidInput
from sash.memory.digest import build_digest
from sash.memory.window import Eviction, Limits, Window
from sash.ports.store import Bundle, StoredMessage
from sash.ports.turns import Evicted
from sash.values.messages import turns
from sash.values.sessions import Session, SessionMemory


@dataclass(frozen=True, slots=True)
class DigestRules:
    """How the digest of evicted turns is built."""

    count_text: Callable[[str], int]
    max_tokens: int


def copy_bundle(source: Bundle, session: Session, at: str | None, rules: DigestRules) -> Bundle:
    """Return the transcript and the window of `source` as those of `session`, without the turns.

    With `at`, the turn with this id is the last one, and the window has the messages that fit into it. What
    a reset has hidden before that turn stays hidden.
    """
    messages = tuple(
        replace(stored, session_id=session.id, continuation_id=None)
        for stored in (source.messages if at is None else _cut_after(source, at))
    )
    if at is not None:
        ended_at = next(turn.updated_at for turn in source.continuations if turn.id == at)
        return _refill_window(session, messages, _count_before_reset(source, ended_at), ended_at, rules)
    return Bundle(
        session,
        messages=messages,
        turn_starts=source.turn_starts,
        evicted=source.evicted,
        evicted_count=source.evicted_count,
    )


def _cut_after(source: Bundle, at: str) -> tuple[StoredMessage, ...]:
    """Return the messages up to the end of a turn. Raise if the turn is unknown or has no messages."""
    if all(turn.id != at for turn in source.continuations):
        raise ContinuationNotFound(
            f"session {source.session.id} has no continuation {at:.80}", continuation_id=at
        )
    last = max((n for n, m in enumerate(source.messages, 1) if m.continuation_id == at), default=0)
    if not last:
        raise InvalidInput(f"turn {at} is not in the transcript: fork at a completed turn")
    return source.messages[:last]


def _count_before_reset(source: Bundle, ended_at: datetime) -> int:
    """Return the number of messages before the last reset, or 0 if it came after `ended_at`."""
    reset_at = source.session.memory.reset_at
    if reset_at is None or reset_at > ended_at:
        return 0
    ends = {turn.id: turn.updated_at for turn in source.continuations}
    times = (ends.get(m.continuation_id or "", m.message.timestamp) for m in source.messages)
    return sum(time < reset_at for time in times)


def _refill_window(
    session: Session,
    messages: tuple[StoredMessage, ...],
    hidden_count: int,
    ended_at: datetime,
    rules: DigestRules,
) -> Bundle:
    """Return a session whose window got these messages one by one. It remembers nothing newer.

    The first `hidden_count` messages are not shown, except preserved system messages.
    """
    limits = session.window
    window = Window(Limits(limits.max_tokens, limits.max_turns, limits.evict_to, limits.preserve_system))
    last_cut: tuple[Eviction, ...] = ()
    gone = []
    before = messages[:hidden_count] if limits.preserve_system else ()
    shown = [*(m for m in before if m.message.role == "system"), *messages[hidden_count:]]
    for stored in shown:
        if cut := window.add(stored.message):
            last_cut = cut
            gone += [eviction.message for eviction in cut]
    window, cut = evict_oldest(window)
    last_cut += cut
    gone += [eviction.message for eviction in cut]
    old = session.memory
    memory = SessionMemory(
        digest=build_digest(turns(gone), rules.count_text, rules.max_tokens) if gone else "",
        facts=tuple(fact for fact in old.facts if fact.created_at <= ended_at),
        pins=tuple(pin for pin in old.pins if pin.created_at <= ended_at),
        last_k=old.last_k,
        cut_at=session.created_at if gone else None,
    )
    return Bundle(
        replace(session, memory=memory),
        messages=tuple(replace(stored, in_window=stored.message.id in window) for stored in messages),
        turn_starts=tuple(window.find_turn_starts()),
        evicted=tuple(Evicted(eviction.message.id, eviction.reason) for eviction in last_cut),
        evicted_count=window.evicted_count + len(messages) - len(shown),
    )
