"""`/events`: the events of a session as server-sent events."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sash.app.access import Caller
from sash.app.approval_question import write_question
from sash.app.owner_shares import leave_place
from sash.app.service import AgentService
from sash.errors import TooManySubscribers, Unauthorized
from sash.server.routes.dependencies import ERRORS, CurrentCaller, QueryRoute, Service
from sash.server.timeouts import Timeouts
from sash.values.events import Event
from sash.values.steps import ApprovalRequested

MAX_CURSOR = 2**53
MEDIA_TYPE = "text/event-stream"

_FRAME_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "description": "The cursor of the event; events that are not stored have none.",
        },
        "event": {"enum": ["progress", "step", "partial", "final"]},
        "data": {
            "type": "string",
            "description": "`type`, `session_id`, `continuation_id`, `payload` as JSON. The payload of an "
            "approval request has the `question` for the user.",
        },
    },
}

STREAM: dict[str, Any] = {
    "content": {MEDIA_TYPE: {"schema": _FRAME_SCHEMA}},
    "description": "Events as they happen.",
}

router = APIRouter(tags=["events"], route_class=QueryRoute)


class EventStreams:
    """The open event streams, at most `limit` at a time, and at most `owner_limit` of one owner.

    `on_change` gets the number of open streams after each change.
    """

    def __init__(
        self,
        limit: int,
        owner_limit: int,
        timeouts: Timeouts,
        on_change: Callable[[int], None] | None = None,
    ) -> None:
        self.timeouts = timeouts
        self._limit = limit
        self._owner_limit = owner_limit
        self._on_change = on_change or (lambda _: None)
        self._open_by_owner: Counter[str] = Counter()
        # An event is encoded once for all its subscribers.
        self._encoded: WeakKeyDictionary[Event, bytes] = WeakKeyDictionary()

    @contextmanager
    def open(self, owner: str) -> Iterator[None]:
        """Count a stream while it is open. Raise `TooManySubscribers` at a limit."""
        if self._open_by_owner[owner] >= self._owner_limit:
            raise TooManySubscribers(
                f"you have {self._owner_limit} event streams open: close some, or raise "
                "max_subscribers_per_owner",
                limit=self._owner_limit,
            )
        if self._open_by_owner.total() >= self._limit:
            raise TooManySubscribers(
                f"{self._limit} event streams are open: close some, or raise max_subscribers",
                limit=self._limit,
            )
        self._open_by_owner[owner] += 1
        self._on_change(self._open_by_owner.total())
        try:
            yield
        finally:
            self._open_by_owner[owner] -= 1
            if not self._open_by_owner[owner]:
                del self._open_by_owner[owner]
            self._on_change(self._open_by_owner.total())

    async def encode(
        self, events: AsyncIterator[Event], after: int, check_token: Callable[[], None]
    ) -> AsyncIterator[bytes]:
        """Yield the frames of a stream. The first frame has only the cursor at which the stream starts.

        The stream ends if `check_token` raises `Unauthorized`.
        """
        yield f"id: {after}\r\n\r\n".encode()
        with suppress(Unauthorized):
            async with aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    check_token()
                    yield self._encode_once(event)

    def _encode_once(self, event: Event) -> bytes:
        if event.cursor is None:  # Events that are not stored are made for one subscriber.
            return _encode(event)
        if event not in self._encoded:
            self._encoded[event] = _encode(event)
        return self._encoded[event]


class EventStreamResponse(EventSourceResponse):
    """An event stream that leaves its `place` after its last byte. `headers` are sent in addition."""

    def __init__(
        self,
        streams: EventStreams,
        place: ExitStack,
        frames: AsyncIterator[bytes],
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            frames,
            ping=streams.timeouts.heartbeat_s,
            send_timeout=streams.timeouts.event_send_s,
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store", **(headers or {})},
        )
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A stream counts among the owner's streams, and takes no place of a running request.
        leave_place()
        with self._place:
            await super().__call__(scope, receive, send)

    @staticmethod
    async def _listen_for_exit_signal() -> None:
        """Wait forever. A runtime that closes ends its streams, so sse-starlette need not look for signals.

        Its own method starts a task for each event loop that wakes twice a second until the process ends.
        """
        await asyncio.Event().wait()


def _encode(event: Event) -> bytes:
    data = {
        "type": event.type,
        "session_id": event.session_id,
        "continuation_id": event.continuation_id,
        "payload": _add_question(event.payload),
    }
    id_line = "" if event.cursor is None else f"id: {event.cursor}\r\n"
    return f"{id_line}event: {event.type}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


def _add_question(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an event; that of an approval request with the question for the user."""
    step = payload.get("step") or {}
    detail = step.get("detail") or {}
    if detail.get("event") != "approval_requested":
        return payload
    call = (detail["call_id"], detail["name"], detail["reason"], detail["would"], detail.get("language"))
    return payload | {"question": write_question([ApprovalRequested(*call)])}


def wants_stream(request: Request) -> bool:
    """Return True if the `Accept` header asks for an event stream, and does not accept JSON, the default."""
    ranges = [part.split(";") for part in request.headers.get("accept", "").split(",")]
    accepted = {
        name.strip().lower()
        for name, *options in ranges
        if "q=0" not in (option.strip() for option in options)
    }
    return MEDIA_TYPE in accepted and "application/json" not in accepted


@dataclass(frozen=True, slots=True)
class TurnStream:
    """An open stream for a turn that the caller starts."""

    request: Request
    caller: Caller
    place: ExitStack

    async def follow(self, continuation_id: str, headers: dict[str, str] | None = None) -> Response:
        """Return the events of one turn as a stream, in the form of `/events/{session_id}`.

        The turn continues if the client disconnects.
        """
        streams: EventStreams = self.request.app.state.streams
        service: AgentService = self.request.app.state.service
        cursor, events = await service.turn_events(self.caller, continuation_id)
        frames = streams.encode(events, cursor, self.request.scope["check_token"])
        return EventStreamResponse(streams, self.place.pop_all(), frames, headers)


@contextmanager
def open_stream(request: Request, caller: Caller) -> Iterator[TurnStream]:
    """Open a stream before its turn starts, so that a request that is refused has started no turn.

    Raise `TooManySubscribers` at a limit, and `Forbidden` if the caller may not read.
    """
    caller.need("read")
    streams: EventStreams = request.app.state.streams
    with ExitStack() as place:
        place.enter_context(streams.open(caller.owner))
        yield TurnStream(request, caller, place)


@router.get(
    "/events/{session_id}",
    name="events",
    response_class=EventSourceResponse,
    responses=ERRORS | {200: STREAM},
)
async def stream_events(
    request: Request,
    service: Service,
    caller: CurrentCaller,
    session_id: str,
    after: Annotated[int, Query(ge=0, le=MAX_CURSOR, description="Send only events after this cursor.")] = 0,
    last_event_id: Annotated[
        str, Header(pattern=r"^[0-9]{0,15}$", description="The same as `after`; browsers send it.")
    ] = "",
) -> Response:
    """Stream the events of a session (`progress`, `step`, `partial`, `final`) until the session ends.

    The id of an event is its cursor. A reconnecting client sends the last id it saw and receives every later
    event exactly once.
    """
    cursor = int(last_event_id) if last_event_id else after
    streams: EventStreams = request.app.state.streams
    with ExitStack() as place:
        place.enter_context(streams.open(caller.owner))  # A refused request does not read the store.
        events = await service.events(caller, session_id, cursor)
        frames = streams.encode(events, cursor, request.scope["check_token"])
        return EventStreamResponse(streams, place.pop_all(), frames)
