"""The windows that this process knows, so that a turn need not read its session's window again."""

from collections import OrderedDict
from typing import Any

from sash.state import MessageEntry
from sash.store import Turn
from sash.window import Window

MOST_WINDOWS = 256


class KnownWindow:
    """A window with its messages as a model takes them, made once; nobody may change what is rendered."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.rendered: dict[str, dict[str, Any]] = {m.id: m.to_openai() for m in window}

    def add(self, message: MessageEntry) -> list[MessageEntry]:
        """Add a message and return the evicted ones."""
        evicted = [eviction.message for eviction in self.window.add(message)]
        self.rendered[message.id] = message.to_openai()
        for gone in evicted:
            del self.rendered[gone.id]
        return evicted


class KnownWindows:
    """The last windows by session, each with the version of the session that it belongs to."""

    def __init__(self, most: int = MOST_WINDOWS) -> None:
        self._most = most
        self._windows: OrderedDict[str, tuple[int, KnownWindow]] = OrderedDict()

    def version(self, session_id: str) -> int | None:
        """Which version of the session's window is known, if any."""
        known = self._windows.get(session_id)
        return None if known is None else known[0]

    def of(self, turn: Turn) -> KnownWindow:
        """Return the window of a turn's session: the known one, or the one that came with the turn."""
        if turn.window is None:
            return self._windows[turn.session.id][1]
        known = KnownWindow(Window.restore(turn.window))
        self.remember(turn.session.id, turn.session.version, known)
        return known

    def remember(self, session_id: str, version: int, known: KnownWindow) -> None:
        """Note which version of the session a window belongs to now."""
        self._windows[session_id] = (version, known)
        self._windows.move_to_end(session_id)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Drop a window that may not be what the store has."""
        self._windows.pop(session_id, None)
