"""The rules of messages and windows."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from sash.ports.turns import Cut
from sash.stores.rules.session_versions import touch_session
from sash.stores.states import CutChange
from sash.values.messages import RESERVED_TAGS, ConversationWindow, MessageEntry, refuse_reserved
from sash.values.sessions import Session

T = TypeVar("T")


def make_window(
    session: Session, messages: Iterable[MessageEntry], turn_starts: tuple[str, ...], evicted_count: int
) -> ConversationWindow:
    """Return a window with these messages and the session's limits."""
    return ConversationWindow(
        session.id,
        tuple(messages),
        max_tokens=session.window.max_tokens,
        max_turns=session.window.max_turns,
        evict_to=session.window.evict_to,
        preserve_system=session.window.preserve_system,
        evicted_count=evicted_count,
        turn_starts=turn_starts,
    )


def cut_window(window: Mapping[str, T], evicted_count: int, cut: Cut) -> CutChange[T]:
    """Apply a cut to a window, given by the ids of its messages. Ids that the window lacks are ignored."""
    gone = {evicted.message_id for evicted in cut.evicted}
    kept = {key: value for key, value in window.items() if key not in gone}
    evicted = {key: value for key, value in window.items() if key in gone}
    return CutChange(kept, evicted, evicted_count + len(cut.evicted))


def tag_message(
    session: Session, message: MessageEntry, tags: frozenset[str], now: datetime
) -> tuple[Session, MessageEntry]:
    """Return the session with a new version, and the message with these tags and its reserved ones.

    Raise `InvalidInput` for a reserved tag that the message does not have.
    """
    own = message.tags & RESERVED_TAGS
    refuse_reserved(tags - own)
    return touch_session(session, now), replace(message, tags=tags | own)
