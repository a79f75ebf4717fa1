"""How a turn ends well: its messages join the window, what they push out of it is cut, and a digest is left.

Who ends a turn writes that with the turn's end, and tells the engine when it is on the disk.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sash.engine.turn.engine import Engine
from sash.engine.window_cache import CachedWindow
from sash.memory.digest import DIGEST_TOKENS, build_digest
from sash.memory.window import Eviction
from sash.ports.store import Cut, Evicted
from sash.values.messages import MessageEntry, built_in_tags, turns
from sash.values.sessions import Session
from sash.values.steps import Continuation


@dataclass(frozen=True, slots=True)
class Closing:
    """A turn's messages as the transcript keeps them, and what they have pushed out of the window."""

    messages: tuple[MessageEntry, ...]
    evicted: tuple[MessageEntry, ...] = ()
    cut: Cut | None = None


def close_turn(
    engine: Engine,
    session: Session,
    known: CachedWindow,
    turn: Continuation,
    said: Sequence[dict[str, Any]],
    tag: frozenset[str] = frozenset(),
) -> Closing:
    """Add what was said in a turn to the window; it is as a model was shown it."""
    messages = tuple(_entry(engine, turn, message, tag) for message in said)
    evicted = [
        gone
        for message, rendered in zip(messages, said, strict=True)
        for gone in known.add(message, engine.shown(rendered))
    ]
    if not evicted:
        return Closing(messages)
    cut = _cut(engine, session, known, evicted)
    return Closing(messages, tuple(gone.message for gone in evicted), cut)


def settle(engine: Engine, session: Session, known: CachedWindow, closing: Closing) -> None:
    """Note how a turn that is on the disk has left the session and its window."""
    engine.windows.remember(session, known)
    if closing.evicted:
        known.tell_anew()
        engine.after_cut(session, list(closing.evicted))


def _entry(engine: Engine, turn: Continuation, said: dict[str, Any], tag: frozenset[str]) -> MessageEntry:
    """Return a message of a finished turn as the transcript keeps it, counted without what Sash told."""
    now, role = engine.clock.now(), said["role"]
    calls, name = said.get("tool_calls", ()), said.get("name")
    asked = engine.asked(turn.request.content, turn.created_at) if role == "user" else None
    return MessageEntry(
        role,
        turn.request.content if role == "user" else said["content"],
        timestamp=turn.created_at if role == "user" else now,
        token_count=engine.counter.count_message(asked or engine.shown(said)["content"], calls, name),
        tags=built_in_tags(role, bool(calls)) | tag if tag else built_in_tags(role, bool(calls)),
        id=engine.ulids.new(now),
        tool_calls=tuple(calls),
        tool_call_id=said.get("tool_call_id"),
        name=name,
    )


def _cut(engine: Engine, session: Session, known: CachedWindow, evictions: Sequence[Eviction]) -> Cut:
    gone = tuple(Evicted(eviction.message.id, eviction.reason) for eviction in evictions)
    left = _digest(engine, session, [eviction.message for eviction in evictions])
    return Cut(gone, tuple(known.window.find_turn_starts()), left)


def _digest(engine: Engine, session: Session, evicted: Sequence[MessageEntry]) -> str:
    """Add lines for what was evicted to the session's digest.

    When it is full the older half goes: to drop a few lines each time would move the head of the prompt more
    than the cut does.
    """
    count_text = engine.counter.count_text
    new = build_digest(turns(evicted), count_text)
    lines = deque((*session.memory.digest.splitlines(), *new.splitlines()))
    total = sum(count_text(line) + 1 for line in lines)
    if total > DIGEST_TOKENS:
        while total > DIGEST_TOKENS / 2 and len(lines) > 1:
            total -= count_text(lines.popleft()) + 1
    return "\n".join(lines)
