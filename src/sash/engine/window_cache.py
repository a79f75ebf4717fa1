"""The sessions and windows that this process knows, so that a turn need not read them again."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from sash.home.briefing import HomeBriefing
from sash.memory.window import Eviction, Window
from sash.memory.words import normalize
from sash.ports.store import Turn
from sash.values.messages import MessageEntry
from sash.values.sessions import Session

MAX_WINDOWS = 256

Render = Callable[[MessageEntry], dict[str, Any]]


class CachedWindow:
    """A window with its messages as a model takes them, made once; nobody may change what is rendered.

    `texts` has its words, for who looks for some. `asked` is what a model was asked last with this window,
    and `told` what it was told of the house; both are forgotten with the process, and told anew.
    """

    def __init__(self, window: Window, render: Render) -> None:
        self.window = window
        self._render = render
        self.asked: list[dict[str, Any]] | None = None
        self.told: HomeBriefing | None = None
        self.rendered: dict[str, dict[str, Any]] = {m.id: render(m) for m in window}
        self.texts: dict[str, str] = {m.id: normalize(m.text) for m in window}

    def tell_anew(self) -> None:
        """Forget what was told of the house, and the changes that stand with the messages."""
        if self.told is not None:
            self.told = None
            self.rendered = {message.id: self._render(message) for message in self.window}

    def add(self, message: MessageEntry, rendered: dict[str, Any]) -> tuple[Eviction, ...]:
        """Add a message and return what it pushed out."""
        evicted = self.window.add(message)
        self.rendered[message.id] = rendered
        self.texts[message.id] = normalize(message.text)
        for gone in evicted:
            del self.rendered[gone.message.id], self.texts[gone.message.id]
        return evicted


class WindowCache:
    """The last windows by session, each with the session as it was when the window was so."""

    def __init__(self, most: int = MAX_WINDOWS) -> None:
        self._most = most
        self._windows: OrderedDict[str, tuple[Session, CachedWindow]] = OrderedDict()

    def session(self, session_id: str) -> Session | None:
        """Return the session whose window is known, as it was then."""
        known = self._windows.get(session_id)
        return None if known is None else known[0]

    def last(self, session_id: str, version: int) -> CachedWindow | None:
        """Return the window of a session, if it is known and still the last."""
        session, known = self._windows.get(session_id, (None, None))
        return known if session is not None and session.version == version else None

    def take(self, turn: Turn, render: Render) -> CachedWindow | None:
        """Return the window of a turn's session, the one that came with the turn or the one that is known.

        The turn changes it, so it is not known any more until it is remembered with the turn's end.
        """
        session, known = self._windows.pop(turn.session.id, (None, None))
        if turn.window is not None:
            return CachedWindow(Window.restore(turn.window), render)
        return known if session is not None and session.version == turn.session.version else None

    def pop(self, session_id: str) -> tuple[Session, CachedWindow] | None:
        """Forget a session and its window, and return them to one who will change them."""
        return self._windows.pop(session_id, None)

    def remember(self, session: Session, known: CachedWindow) -> None:
        """Note which session a window belongs to now."""
        self._windows[session.id] = (session, known)
        self._windows.move_to_end(session.id)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)

    def forget(self, owner: str) -> None:
        """Drop the windows of an owner."""
        mine = [key for key, (session, _) in self._windows.items() if session.owner == owner]
        for session_id in mine:
            del self._windows[session_id]
