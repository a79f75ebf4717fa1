"""What subscribers see. Durable events are read from the store; here is the news that there are some, and the
text that a model is still writing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

EventType = Literal["progress", "step", "partial", "final"]

PARTIAL_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Event:
    """One event of a session, the same to all who see it; `cursor` is None for what is not kept."""

    type: EventType
    session_id: str
    continuation_id: str
    payload: dict[str, Any]
    cursor: int | None = None


@dataclass(eq=False, slots=True)
class Subscriber:
    """One who listens: woken when there is news, and free to be slow."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    progress: list[Event] = field(default_factory=list)
    read: dict[tuple[str, int], int] = field(default_factory=dict)


@dataclass(slots=True)
class _Writing:
    """The text of a model call under way; `part` counts the model calls of the turn."""

    part: int
    text: str = ""
    shown: str = ""
    shown_of: str = ""


class EventHub:
    """Wakes the subscribers of a session, and keeps the partial text for those who join late.

    `clean` takes the secrets out of a text before anybody sees it.
    """

    def __init__(self, interval_s: float, clean: Callable[[str], str]) -> None:
        self._interval_s = interval_s
        self._clean = clean
        self._subscribers: defaultdict[str, set[Subscriber]] = defaultdict(set)
        self._writing: dict[str, dict[str, _Writing]] = {}
        self._due: set[str] = set()

    @contextmanager
    def subscribe(self, session_id: str) -> Iterator[Subscriber]:
        """Listen to a session for as long as the context lasts."""
        subscriber = Subscriber()
        self._subscribers[session_id].add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers[session_id].discard(subscriber)
            if not self._subscribers[session_id]:
                del self._subscribers[session_id]

    def wake(self, session_id: str) -> None:
        """Tell the subscribers that the store has something new."""
        for subscriber in self._subscribers.get(session_id, ()):
            subscriber.news.set()

    def wake_all(self) -> None:
        """Tell everybody that something has ended."""
        for session_id in self._subscribers:
            self.wake(session_id)

    def progress(self, session_id: str, continuation_id: str, message: str) -> None:
        """Tell the subscribers what is being done; nobody else will ever know."""
        if session_id not in self._subscribers:
            return
        event = Event("progress", session_id, continuation_id, {"message": self._clean(message)})
        for subscriber in self._subscribers[session_id]:
            subscriber.progress.append(event)
            del subscriber.progress[:-100]
        self.wake(session_id)

    def write(self, session_id: str, continuation_id: str, part: int, text: str) -> None:
        """Note how far a model has written; the subscribers are woken every half second."""
        turns = self._writing.setdefault(session_id, {})
        writing = turns.get(continuation_id)
        if writing is None:
            turns[continuation_id] = _Writing(part, text)
        else:
            writing.part, writing.text = part, text
        if session_id not in self._due and session_id in self._subscribers:
            self._due.add(session_id)
            asyncio.get_running_loop().call_later(self._interval_s, self._flush, session_id)

    def end_text(self, session_id: str, continuation_id: str) -> None:
        """Forget the text of a turn that is over, or whose text is in the journal now."""
        writing = self._writing.get(session_id, {})
        writing.pop(continuation_id, None)
        if not writing:
            self._writing.pop(session_id, None)

    def is_writing(self, session_id: str, continuation_id: str) -> bool:
        """Whether a model is writing text for this turn right now."""
        return continuation_id in self._writing.get(session_id, {})

    def partials(self, session_id: str, subscriber: Subscriber) -> list[Event]:
        """Return the text that the subscriber has not seen yet; all of it to one who joined late."""
        found, read = [], {}
        for continuation_id, writing in self._writing.get(session_id, {}).items():
            key = (continuation_id, writing.part)
            text = self._shown(writing)
            new = text[subscriber.read.get(key, 0) :]
            read[key] = len(text)
            if new:
                found.append(Event("partial", session_id, continuation_id, {"partial_response": new}))
        subscriber.read = read
        return found

    def _shown(self, writing: _Writing) -> str:
        """Return what may be seen of a text; however many look, it is cleaned once."""
        if writing.text is not writing.shown_of:
            writing.shown, writing.shown_of = self._clean(_whole_words(writing.text)), writing.text
        return writing.shown

    def _flush(self, session_id: str) -> None:
        self._due.discard(session_id)
        self.wake(session_id)


def _whole_words(text: str) -> str:
    """Leave out the last word, which may be the beginning of a secret."""
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]
