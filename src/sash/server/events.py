"""Server-sent events: a session's events, by cursor, without a gap or a double."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sash.errors import TooManySubscribers, Unauthorized
from sash.server.metrics import Metrics
from sash.server.wire import ERRORS, Who
from sash.values.events import Event

HEARTBEAT_S = 15
SEND_TIMEOUT_S = 30.0
MAX_CURSOR = 2**53

_FRAME = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The event's cursor; what is not kept has none."},
        "event": {"enum": ["progress", "step", "partial", "final"]},
        "data": {
            "type": "string",
            "description": "`type`, `session_id`, `continuation_id`, `payload` as JSON.",
        },
    },
}

router = APIRouter(tags=["events"])


class Streams:
    """The event streams that are open, and how many may be."""

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        self._open = 0
        self._written: WeakKeyDictionary[Event, bytes] = WeakKeyDictionary()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a stream for as long as it is open, unless there are as many as there may be."""
        if self._open >= self._most:
            raise TooManySubscribers(
                f"{self._most} streams are open already: close some, or raise max_subscribers",
                limit=self._most,
            )
        self._open += 1
        self._metrics.subscribers.inc()
        try:
            yield
        finally:
            self._open -= 1
            self._metrics.subscribers.dec()

    async def frames(
        self, events: AsyncIterator[Event], after: int, still: Callable[[], object]
    ) -> AsyncIterator[bytes]:
        """Give a stream's frames; the first is only the id behind which it goes on.

        Who may not listen any more, by `still`, is told nothing more.
        """
        yield f"id: {after}\r\n\r\n".encode()
        with suppress(Unauthorized):
            async with aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    still()
                    yield self._frame(event)

    def _frame(self, event: Event) -> bytes:
        """Return an event as it is sent: one that is kept is written once for all who listen."""
        if event.cursor is None:
            return _write(event)
        if event not in self._written:
            self._written[event] = _write(event)
        return self._written[event]


class Stream(EventSourceResponse):
    """A response that is counted from its first byte to its last."""

    def __init__(self, streams: Streams, frames: AsyncIterator[bytes]) -> None:
        super().__init__(
            frames,
            ping=HEARTBEAT_S,
            send_timeout=SEND_TIMEOUT_S,
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
        )
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one_more():
            await super().__call__(scope, receive, send)


def _write(event: Event) -> bytes:
    data = {
        "type": event.type,
        "session_id": event.session_id,
        "continuation_id": event.continuation_id,
        "payload": event.payload,
    }
    cursor = "" if event.cursor is None else f"id: {event.cursor}\r\n"
    return f"{cursor}event: {event.type}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


@router.get(
    "/events/{session_id}",
    response_class=EventSourceResponse,
    responses=ERRORS
    | {200: {"content": {"text/event-stream": {"schema": _FRAME}}, "description": "Events, as they happen."}},
)
async def events(
    request: Request,
    who: Who,
    session_id: str,
    after: Annotated[int, Query(ge=0, le=MAX_CURSOR, description="Only what came later.")] = 0,
    last_event_id: Annotated[
        str, Header(pattern=r"^[0-9]{0,15}$", description="The same, as a browser says it.")
    ] = "",
) -> Response:
    """Listen to a session: `progress`, `step`, `partial` and `final`, until the session is over.

    The id of an event is its cursor. Who was cut off sends the last one, and misses and sees twice nothing.
    """
    start = int(last_event_id) if last_event_id else after
    streams: Streams = request.app.state.streams
    found = await request.app.state.desk.events(who, session_id, start)
    return Stream(streams, streams.frames(found, start, request.scope["still"]))
