"""The windows that this process knows, so that a turn need not read its session's window again."""

from collections import OrderedDict

from sash.store import Turn
from sash.window import Window

MOST_WINDOWS = 256


class KnownWindows:
    """The last windows by session, each with the version of the session that it belongs to."""

    def __init__(self, most: int = MOST_WINDOWS) -> None:
        self._most = most
        self._windows: OrderedDict[str, tuple[int, Window]] = OrderedDict()

    def version(self, session_id: str) -> int | None:
        """Which version of the session's window is known, if any."""
        known = self._windows.get(session_id)
        return None if known is None else known[0]

    def of(self, turn: Turn) -> Window:
        """Return the window of a turn's session: the known one, or the one that came with the turn."""
        if turn.window is None:
            return self._windows[turn.session.id][1]
        window = Window.restore(turn.window)
        self.remember(turn.session.id, turn.session.version, window)
        return window

    def remember(self, session_id: str, version: int, window: Window) -> None:
        """Note which version of the session a window belongs to now."""
        self._windows[session_id] = (version, window)
        self._windows.move_to_end(session_id)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Drop a window that may not be what the store has."""
        self._windows.pop(session_id, None)
