"""Signals for the subscribers in this process: new events in the store, progress, and partial text."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sash.values.events import PartialEvent, ProgressEvent

PARTIAL_INTERVAL_S = 0.5
MAX_PROGRESS = 100


@dataclass(eq=False, slots=True)
class Subscriber:
    """A subscriber of one session. `news` is set when there may be something to read.

    `progress` has the messages that the subscriber has not read. `read` counts the characters that it has
    read of each text.
    """

    news: asyncio.Event = field(default_factory=asyncio.Event)
    progress: list[ProgressEvent] = field(default_factory=list)
    read: dict[tuple[str, int], int] = field(default_factory=dict)


@dataclass(slots=True)
class _PartialText:
    """The text of a running model call. `stream` counts the model calls of the turn.

    `redacted` is the text without secrets, made from `redacted_from`.
    """

    stream: int
    text: str = ""
    redacted: str = ""
    redacted_from: str = ""


class EventHub:
    """Wakes the subscribers of a session, and keeps partial text for subscribers that join later.

    `redact` removes secrets from a text before a subscriber sees it.
    """

    def __init__(self, interval_s: float, redact: Callable[[str], str]) -> None:
        self._interval_s = interval_s
        self._redact = redact
        self._subscribers: defaultdict[str, set[Subscriber]] = defaultdict(set)
        self._texts: dict[str, dict[str, _PartialText]] = {}
        self._due: set[str] = set()

    @contextmanager
    def subscribe(self, session_id: str) -> Iterator[Subscriber]:
        """Subscribe to a session until the context ends."""
        subscriber = Subscriber()
        self._subscribers[session_id].add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers[session_id].discard(subscriber)
            if not self._subscribers[session_id]:
                del self._subscribers[session_id]

    def count_subscribers(self, session_id: str | None = None) -> int:
        """Return the number of subscribers in this process, of one session or of all."""
        if session_id is None:
            return sum(map(len, self._subscribers.values()))
        return len(self._subscribers.get(session_id, ()))

    def wake(self, session_id: str) -> None:
        """Tell the subscribers of a session that the store may have new events."""
        for subscriber in self._subscribers.get(session_id, ()):
            subscriber.news.set()

    def wake_all(self) -> None:
        for session_id in self._subscribers:
            self.wake(session_id)

    def progress(self, session_id: str, continuation_id: str, message: str) -> None:
        """Send a progress message to the current subscribers of a session. Later ones do not get it."""
        if session_id not in self._subscribers:
            return
        event = ProgressEvent(session_id, continuation_id, self._redact(message))
        for subscriber in self._subscribers[session_id]:
            subscriber.progress.append(event)
            del subscriber.progress[:-MAX_PROGRESS]
        self.wake(session_id)

    def write(self, session_id: str, continuation_id: str, stream: int, text: str) -> None:
        """Set the whole text of a model call so far. Subscribers are woken once per interval."""
        texts = self._texts.setdefault(session_id, {})
        partial = texts.get(continuation_id)
        if partial is None:
            texts[continuation_id] = _PartialText(stream, text)
        else:
            partial.stream, partial.text = stream, text
        if session_id not in self._due and session_id in self._subscribers:
            self._due.add(session_id)
            asyncio.get_running_loop().call_later(self._interval_s, self._flush, session_id)

    def end_text(self, session_id: str, continuation_id: str) -> None:
        """Drop the text of a model call that has ended."""
        texts = self._texts.get(session_id, {})
        texts.pop(continuation_id, None)
        if not texts:
            self._texts.pop(session_id, None)

    def is_writing(self, session_id: str, continuation_id: str) -> bool:
        """Return True if a model is writing text for this turn now."""
        return continuation_id in self._texts.get(session_id, {})

    def partials(self, session_id: str, subscriber: Subscriber) -> list[PartialEvent]:
        """Return the partial text that the subscriber has not read yet, with at most one event per turn."""
        found, read = [], {}
        for continuation_id, partial in self._texts.get(session_id, {}).items():
            key = (continuation_id, partial.stream)
            text = self._redacted(partial)
            new = text[subscriber.read.get(key, 0) :]
            read[key] = len(text)
            if new:
                found.append(PartialEvent(session_id, continuation_id, new))
        subscriber.read = read
        return found

    def _redacted(self, partial: _PartialText) -> str:
        """Return a partial text without secrets. It is redacted once for all subscribers."""
        if partial.text is not partial.redacted_from:
            partial.redacted = self._redact(_whole_words(partial.text))
            partial.redacted_from = partial.text
        return partial.redacted

    def _flush(self, session_id: str) -> None:
        self._due.discard(session_id)
        self.wake(session_id)


def _whole_words(text: str) -> str:
    """Return the text without its last word, which may be the beginning of a secret."""
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]
