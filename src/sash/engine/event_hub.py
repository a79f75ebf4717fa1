"""Signals for the subscribers in this process: new events in the store, progress, and partial text.

Events come in the order of the journal. A progress message or a partial text has a place: directly after the
last step that its turn had written when it happened. Each subscriber, also a late or slow one, receives it
after that step and before the next step of the turn, or not at all. So the whole text of a model call comes
before the step that the call produced. A tool's progress comes between the call and its result.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sash.engine.redaction import GrowingText, redact
from sash.values.events import FinalEvent, PartialEvent, ProgressEvent, StepEvent
from sash.values.validation import well_formed

PARTIAL_INTERVAL_S = 0.5
# A subscriber that reads slowly loses its oldest events that are not stored.
MAX_UNREAD = 100
# Redaction of more characters at once would stop the event loop for too long.
MAX_NEW_CHARS = 32 << 10
# A subscriber knows the last step that it has read of this many turns.
MAX_TURNS = 16
_END = sys.maxsize


@dataclass(eq=False, slots=True)
class Place:
    """The place directly after step `n` of a turn; 0 is the turn's start.

    `cursor` is the cursor of that step, or None until the journal knows that the step is stored.
    """

    n: int
    cursor: int | None = None


@dataclass(eq=False, slots=True)
class PartialText:
    """The text of one model call. `written` is the whole text so far.

    `is_complete` is True if the model has ended its last word. Otherwise that word is not shown, because it
    may be the beginning of a secret. `is_provisional` is True if the answer may still be corrected.
    """

    session_id: str
    continuation_id: str
    place: Place
    is_provisional: bool = False
    written: str = ""
    is_ended: bool = False
    is_complete: bool = False
    is_new: bool = False
    clean: str = ""
    _growing: GrowingText = field(default_factory=GrowingText)

    def show(self) -> str:
        """Return the text without secrets. It is redacted once for all subscribers.

        A text that has grown too much at once is not shown any further. The end of its turn has all of it.
        """
        if self.is_new:
            self.is_new = False
            text = well_formed(self.written if self.is_complete else _whole_words(self.written))
            if self._growing.count_unsettled(text) <= MAX_NEW_CHARS:
                self.clean = self._growing.redact(text)
        return self.clean


@dataclass(slots=True)
class _Unread:
    """An event that is not stored, for one subscriber. `shown` is the text that the subscriber has read."""

    item: ProgressEvent | PartialText
    place: Place
    shown: str = ""


class Subscriber:
    """A subscriber of one session. `news` is set when there may be something to read.

    With `reads_store_only` it gets no events that are not stored.
    """

    def __init__(self, reads_store_only: bool) -> None:
        self.news = asyncio.Event()
        self._reads_store_only = reads_store_only
        self._unread: list[_Unread] = []
        self._last_steps: dict[str, int] = {}

    def add(self, item: ProgressEvent | PartialText, place: Place) -> None:
        """Add an event that the subscriber receives when it has read the step at `place`."""
        if not self._reads_store_only:
            self._unread.append(_Unread(item, place))
            del self._unread[:-MAX_UNREAD]

    def find_last_place(self) -> int:
        """Return the greatest cursor that an unread event waits for, or 0. Unstored steps do not count."""
        return max((unread.place.cursor or 0 for unread in self._unread), default=0)

    def take(self, cursor: int) -> list[ProgressEvent | PartialEvent]:
        """Remove and return the unread events for a subscriber that has read the steps up to `cursor`."""
        if not self._unread:
            return []
        events: list[ProgressEvent | PartialEvent] = []
        kept = []
        for unread in self._unread:
            place, last_step = unread.place, self._last_steps.get(unread.item.continuation_id, 0)
            if place.n < last_step:
                continue
            # A late subscriber does not read the steps before its cursor. It knows them by their cursors.
            is_before = place.cursor is not None and place.cursor <= cursor
            is_due = is_before or place.n == last_step > 0
            events += self._read(unread) if is_due else ()
            if not is_due or (isinstance(unread.item, PartialText) and not unread.item.is_ended):
                kept.append(unread)
        self._unread = kept
        return events

    def pass_step(self, event: StepEvent | FinalEvent) -> None:
        """Note that the subscriber has read a step. It receives no earlier events of that turn any more."""
        turn = event.continuation_id
        self._last_steps.pop(turn, None)
        self._last_steps[turn] = _END if isinstance(event, FinalEvent) else event.step.n
        if len(self._last_steps) > MAX_TURNS:
            del self._last_steps[next(iter(self._last_steps))]

    def _read(self, unread: _Unread) -> Iterator[ProgressEvent | PartialEvent]:
        item = unread.item
        if isinstance(item, ProgressEvent):
            yield item
            return
        text = item.show()
        new = text[_count_equal(unread.shown, text) :]
        unread.shown = text
        if new:
            yield PartialEvent(item.session_id, item.continuation_id, new, item.is_provisional)


class EventHub:
    """Wakes the subscribers of a session, and keeps running texts for subscribers that join later."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._subscribers: defaultdict[str, set[Subscriber]] = defaultdict(set)
        self._texts: dict[str, dict[str, PartialText]] = {}
        self._due: dict[str, asyncio.TimerHandle] = {}

    @contextmanager
    def subscribe(self, session_id: str, *, reads_store_only: bool = False) -> Iterator[Subscriber]:
        """Subscribe to a session until the context ends."""
        subscriber = Subscriber(reads_store_only)
        for text in self._texts.get(session_id, {}).values():
            subscriber.add(text, text.place)
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

    def close(self) -> None:
        """Wake all subscribers, so that they end, and leave no timer behind."""
        self.wake_all()
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()

    def progress(self, session_id: str, continuation_id: str, message: str, place: Place) -> None:
        """Send a progress message to the current subscribers of a session. Later ones do not get it."""
        if session_id not in self._subscribers:
            return
        event = ProgressEvent(session_id, continuation_id, redact(message))
        for subscriber in self._subscribers[session_id]:
            subscriber.add(event, place)
        self.wake(session_id)

    def write(self, text: PartialText, written: str) -> None:
        """Set the whole text of a model call so far. Subscribers are woken once per interval."""
        if text.is_ended:
            return
        session_id = text.session_id
        if not text.written:
            self._texts.setdefault(session_id, {})[text.continuation_id] = text
            for subscriber in self._subscribers.get(session_id, ()):
                subscriber.add(text, text.place)
        text.written, text.is_new = written, True
        if session_id not in self._due and session_id in self._subscribers:
            self._due[session_id] = asyncio.get_running_loop().call_later(
                self._interval_s, self._flush, session_id
            )

    def end_text(self, text: PartialText, *, is_complete: bool = False) -> None:
        """End the text of a model call. A second call changes nothing."""
        if text.is_ended:
            return
        text.is_ended, text.is_complete, text.is_new = True, is_complete, True
        texts = self._texts.get(text.session_id, {})
        if texts.get(text.continuation_id) is text:
            del texts[text.continuation_id]
            if not texts:
                del self._texts[text.session_id]

    def end_turn(self, session_id: str, continuation_id: str) -> None:
        """End the running text of a turn that has ended, and wake the session's subscribers."""
        if text := self._texts.get(session_id, {}).get(continuation_id):
            self.end_text(text)
        self.wake(session_id)

    def is_writing(self, session_id: str, continuation_id: str) -> bool:
        """Return True if a model is writing text for this turn now."""
        return continuation_id in self._texts.get(session_id, {})

    def _flush(self, session_id: str) -> None:
        self._due.pop(session_id, None)
        self.wake(session_id)


def _count_equal(shown: str, text: str) -> int:
    """Return the number of characters at the start that a shown text and the text now have in common.

    Usually these are all shown characters. But shown words may turn out to belong to a secret.
    """
    if text.startswith(shown):
        return len(shown)
    return next((n for n, (a, b) in enumerate(zip(shown, text, strict=False)) if a != b), len(text))


def _whole_words(text: str) -> str:
    """Return the text without its last word, which may be the beginning of a secret."""
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]
