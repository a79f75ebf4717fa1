"""Sessions and their windows, cached in this process so that a turn need not read them again."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sash.engine.prompt_record import PromptRecorder
from sash.home.briefing import HomeBriefing
from sash.memory.window import Eviction, Window
from sash.memory.words import normalize
from sash.ports.turns import Turn
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
from sash.values.window_stats import WindowTotals, sum_windows

MAX_WINDOWS = 256
# The characters of all cached windows together.
MAX_CACHED_CHARS = 64 << 20
# A window is read as a whole. Above this size its oldest turns are evicted, even if it has no other limit.
MAX_WINDOW_CHARS = 8 << 20
# A message counts as this many characters more, because a short one also takes memory and time.
MESSAGE_CHARS = 1 << 10
# Word searches look at this many characters of a message.
MAX_SEARCHED_CHARS = 32 << 10

Render = Callable[[MessageEntry], dict[str, Any]]


class CachedWindow:
    """A window with its messages as a model reads them, rendered once and never changed.

    `texts` has the beginning of each message in normal form, for word searches. `last_prompt` is the last
    model request with this window and `briefing` the description of the home in it; both are lost with the
    process.
    """

    def __init__(self, window: Window, render: Render) -> None:
        self.window = window
        self._render = render
        self.last_prompt: list[dict[str, Any]] | None = None
        self.briefing: HomeBriefing | None = None
        self.prompts = PromptRecorder()
        self.rendered: dict[str, dict[str, Any]] = {m.id: render(m) for m in window}
        self.texts: dict[str, str] = {m.id: _normalize(m) for m in window}
        self.char_count = sum(map(_count_chars, window))

    def drop_briefing(self) -> None:
        """Drop the description of the home, and the changes that stand in the messages."""
        if self.briefing is not None:
            self.briefing = None
            self.prompts.drop_window()
            self.rendered = {message.id: self._render(message) for message in self.window}

    def add(self, message: MessageEntry, rendered: dict[str, Any]) -> tuple[Eviction, ...]:
        """Add a message and return the evictions that it caused."""
        evicted = self.window.add(message)
        self.rendered[message.id] = rendered
        self.texts[message.id] = _normalize(message)
        self.char_count += _count_chars(message)
        self._forget(evicted)
        if self.char_count > MAX_WINDOW_CHARS:
            self.window, oldest = evict_oldest(self.window)
            self._forget(oldest)
            evicted += oldest
        return evicted

    def reset(self) -> tuple[Eviction, ...]:
        """Evict all messages, pinned ones too, except preserved system messages. Return the evictions."""
        preserved = self.window.limits.preserve_system
        evicted = tuple(Eviction(m, "reset") for m in self.window if not (preserved and m.role == "system"))
        self.window = _without(self.window, evicted)
        self._forget(evicted)
        return evicted

    def _forget(self, evicted: tuple[Eviction, ...]) -> None:
        """Drop everything that is kept beside the messages that left the window."""
        if evicted:
            self.prompts.drop_window()
        for gone in evicted:
            del self.rendered[gone.message.id], self.texts[gone.message.id]
            self.char_count -= _count_chars(gone.message)


def is_too_large(messages: Iterable[MessageEntry]) -> bool:
    """Return True if messages have more characters than a window may have."""
    return sum(map(_count_chars, messages)) > MAX_WINDOW_CHARS


def evict_oldest(window: Window) -> tuple[Window, tuple[Eviction, ...]]:
    """Evict the oldest turns, pinned ones too, until a window has half of the maximum size or one turn.

    A window that is not too large stays the same.
    """
    messages = tuple(window)
    if not is_too_large(messages):
        return window, ()
    size = sum(map(_count_chars, messages))
    start = 0
    for place, message in enumerate(messages):
        if message.role == "user":
            start = place
            if size <= MAX_WINDOW_CHARS // 2:
                break
        size -= _count_chars(message)
    evicted = tuple(Eviction(message, "max_characters") for message in messages[:start])
    return _without(window, evicted), evicted


def _without(window: Window, evicted: tuple[Eviction, ...]) -> Window:
    state = window.snapshot("window")
    gone = {eviction.message.id for eviction in evicted}
    return Window.restore(
        replace(
            state,
            messages=tuple(message for message in state.messages if message.id not in gone),
            turn_starts=tuple(start for start in state.turn_starts if start not in gone),
            evicted_count=state.evicted_count + len(evicted),
        )
    )


def _normalize(message: MessageEntry) -> str:
    return normalize(message.text[:MAX_SEARCHED_CHARS])


def _count_chars(message: MessageEntry) -> int:
    """Return the number of characters of a message, with its images and tool calls."""
    content = message.content
    size = len(content) if isinstance(content, str) else sum(len(str(part)) for part in content)
    return MESSAGE_CHARS + size + sum(len(str(call)) for call in message.tool_calls)


class WindowCache:
    """The most recent windows by session id, each with the version of the session that it belongs to."""

    def __init__(self, max_windows: int = MAX_WINDOWS, max_chars: int = MAX_CACHED_CHARS) -> None:
        self._max_windows = max_windows
        self._max_chars = max_chars
        self._char_count = 0
        self._windows: OrderedDict[str, tuple[Session, CachedWindow]] = OrderedDict()

    def session(self, session_id: str) -> Session | None:
        """Return the session of a cached window, as it was when the window was cached, or None."""
        cached = self._windows.get(session_id)
        return None if cached is None else cached[0]

    def get(self, session_id: str, version: int) -> CachedWindow | None:
        """Return the cached window if it belongs to this version of the session, else None."""
        session, window = self._windows.get(session_id, (None, None))
        return window if session is not None and session.version == version else None

    def take(self, turn: Turn, render: Render) -> CachedWindow | None:
        """Remove and return the window of a turn: from the turn itself, or the cached one if it is current.

        The turn changes the window. When the turn ends, `put` returns the window to the cache. None if
        neither is there.
        """
        session, window = self.pop(turn.session.id) or (None, None)
        if turn.window is not None:
            return CachedWindow(Window.restore(turn.window), render)
        return window if session is not None and session.version == turn.session.version else None

    def pop(self, session_id: str) -> tuple[Session, CachedWindow] | None:
        """Remove and return a session and its window; None if they are not cached."""
        cached = self._windows.pop(session_id, None)
        if cached is not None:
            self._char_count -= cached[1].char_count
        return cached

    def put(self, session: Session, window: CachedWindow) -> None:
        """Cache the window of a session. Above a maximum, the least recently used windows are dropped."""
        self.pop(session.id)
        self._windows[session.id] = (session, window)
        self._char_count += window.char_count
        while len(self._windows) > self._max_windows or self._char_count > self._max_chars:
            self.pop(next(iter(self._windows)))

    def replace_message(self, session: Session, message: MessageEntry) -> None:
        """Replace a message that got other tags. Its text is the same, so the prompt stays the same.

        `session` is the session after this change.
        """
        window = self.get(session.id, session.version - 1)
        if window is not None and message.id in window.window:
            window.window = window.window.replace_message(message)
        self.follow(session)

    def follow(self, session: Session) -> None:
        """Keep the window of a session that got other notes or statistics, so that its prompt stays the same.

        `session` is the session after this change. A window of another version is dropped later.
        """
        window = self.get(session.id, session.version - 1)
        if window is not None:
            self.put(session, window)

    def sum_windows(self) -> WindowTotals:
        """Return the sums of all cached windows, without their tags."""
        return sum_windows(window.window.count_stats(with_tags=False) for _, window in self._windows.values())

    def drop_owner(self, owner: str) -> None:
        for session_id in [k for k, (session, _) in self._windows.items() if session.owner == owner]:
            self.pop(session_id)
