"""`/v1`: sessions and continuations over HTTP. Each route parses, asks the desk, and encodes."""

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sash.app.schemas import (
    Acknowledged,
    Cancelled,
    ContextShown,
    ContinuationShown,
    Erased,
    Export,
    FactList,
    MessageList,
    PinList,
    SessionList,
    SessionOver,
    SessionShown,
    SessionStarted,
)
from sash.errors import InvalidJson
from sash.server.wire import ERRORS, At, Who, reply
from sash.values.requests import MAX_WAIT_MS, Approve, Ask, Note, Preferences, SendMessage, StartSession, Why
from sash.values.sessions import Fact, Pin, SessionStatus

MOST = 500

Id = Annotated[str, Path(min_length=1, max_length=256)]
Limit = Annotated[int, Query(ge=1, le=MOST)]

router = APIRouter(prefix="/v1", responses=ERRORS)


@router.post("/sessions", status_code=201, response_model=SessionStarted, tags=["sessions"])
async def start_session(desk: At, who: Who, body: StartSession | None = None) -> Response:
    """Begin a session."""
    return reply(await desk.start_session(who, body or StartSession()), 201)


@router.get("/sessions", response_model=SessionList, tags=["sessions"])
async def list_sessions(
    desk: At,
    who: Who,
    status: SessionStatus | None = None,
    limit: Limit = 50,
    cursor: Annotated[
        str | None,
        Query(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$", description="The `next_cursor` of the last page."),
    ] = None,
) -> Response:
    """List your sessions, newest first."""
    return reply(await desk.list_sessions(who, status=status, limit=limit, cursor=cursor))


@router.post(
    "/sessions/import",
    status_code=201,
    response_model=SessionStarted,
    tags=["sessions"],
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    },
)
async def import_session(desk: At, who: Who, request: Request) -> Response:
    """Bring back what was exported; it becomes yours."""
    body = await asyncio.to_thread(_parse, await request.body())
    return reply(await desk.import_session(who, body), 201)


def _parse(body: bytes) -> Any:
    """Read JSON; beside the loop, for a whole session may be large."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"the body is not JSON: {error}") from error


@router.get("/sessions/{session_id}", response_model=SessionShown, tags=["sessions"])
async def get_session(desk: At, who: Who, session_id: Id) -> Response:
    """Show a session, and which of its turns are not over."""
    return reply(await desk.get_session(who, session_id))


@router.patch("/sessions/{session_id}", response_model=SessionShown, tags=["sessions"])
async def change_session(desk: At, who: Who, session_id: Id, body: Preferences) -> Response:
    """Change preferences; one that is null is dropped."""
    return reply(await desk.set_preferences(who, session_id, body.preferences))


@router.delete("/sessions/{session_id}", response_model=Erased, tags=["sessions"])
async def delete_session(desk: At, who: Who, session_id: Id) -> Response:
    """Delete a session with all that was said in it, for good."""
    return reply(await desk.delete_session(who, session_id))


@router.post("/sessions/{session_id}/end", response_model=SessionOver, tags=["sessions"])
async def end_session(desk: At, who: Who, session_id: Id, body: Why | None = None) -> Response:
    """End a session: it takes no more turns, and what runs in it is cancelled."""
    return reply(await desk.end_session(who, session_id, body.reason if body else None))


@router.post("/sessions/{session_id}/fork", status_code=201, response_model=SessionStarted, tags=["sessions"])
async def fork_session(desk: At, who: Who, session_id: Id) -> Response:
    """Copy a session, so that both go on apart."""
    return reply(await desk.fork_session(who, session_id), 201)


@router.get("/sessions/{session_id}/export", response_model=Export, tags=["sessions"])
async def export_session(desk: At, who: Who, session_id: Id) -> Response:
    """Return a whole session, as it can be imported."""
    exported = await desk.export_session(who, session_id)
    return Response(await asyncio.to_thread(_write, exported), media_type="application/json")


def _write(exported: dict[str, Any]) -> bytes:
    return json.dumps(exported, ensure_ascii=False).encode()


@router.get("/sessions/{session_id}/context", response_model=ContextShown, tags=["sessions"])
async def context(desk: At, who: Who, session_id: Id) -> Response:
    """Show what the next model call would be made of, and what was evicted."""
    return reply(await desk.context(who, session_id))


@router.get("/sessions/{session_id}/search", response_model=MessageList, tags=["sessions"])
async def search(
    desk: At,
    who: Who,
    session_id: Id,
    q: Annotated[str, Query(min_length=1, max_length=256, description="Words that the messages hold.")],
    limit: Limit = 10,
) -> Response:
    """Find messages of a session, evicted ones too."""
    return reply(await desk.search(who, q, session_id=session_id, limit=limit))


@router.post(
    "/sessions/{session_id}/messages", status_code=202, response_model=Acknowledged, tags=["continuations"]
)
async def send_message(desk: At, who: Who, session_id: Id, body: SendMessage) -> Response:
    """Begin a turn; it is safe in the store when this answers, and goes on if you go away."""
    return reply(await desk.send_message(who, session_id, body), 202)


@router.get("/sessions/{session_id}/messages", response_model=MessageList, tags=["sessions"])
async def list_messages(
    desk: At,
    who: Who,
    session_id: Id,
    limit: Limit = 100,
    cursor: Annotated[int, Query(ge=0, le=2**53, description="The `next_cursor` of the last page.")] = 0,
) -> Response:
    """List the transcript, oldest first."""
    return reply(await desk.list_messages(who, session_id, after=cursor, limit=limit))


@router.get("/sessions/{session_id}/facts", response_model=FactList, tags=["memory"])
async def facts(desk: At, who: Who, session_id: Id) -> Response:
    """List what the agent is to remember."""
    return reply(await desk.facts(who, session_id))


@router.post("/sessions/{session_id}/facts", status_code=201, response_model=Fact, tags=["memory"])
async def remember(desk: At, who: Who, session_id: Id, body: Note) -> Response:
    """Note a fact."""
    return reply(await desk.remember(who, session_id, body), 201)


@router.delete("/sessions/{session_id}/facts/{fact_id}", response_model=FactList, tags=["memory"])
async def forget(desk: At, who: Who, session_id: Id, fact_id: Id) -> Response:
    """Drop a fact, and return it."""
    return reply(await desk.forget(who, session_id, fact_id))


@router.get("/sessions/{session_id}/pins", response_model=PinList, tags=["memory"])
async def pins(desk: At, who: Who, session_id: Id) -> Response:
    """List what is always part of the context."""
    return reply(await desk.pins(who, session_id))


@router.post("/sessions/{session_id}/pins", status_code=201, response_model=Pin, tags=["memory"])
async def pin(desk: At, who: Who, session_id: Id, body: Note) -> Response:
    """Let a text always be part of the context."""
    return reply(await desk.pin(who, session_id, body), 201)


@router.delete("/sessions/{session_id}/pins/{pin_id}", status_code=204, tags=["memory"])
async def unpin(desk: At, who: Who, session_id: Id, pin_id: Id) -> Response:
    """Take a pin away."""
    await desk.unpin(who, session_id, pin_id)
    return Response(status_code=204)


@router.get("/continuations/{continuation_id}", response_model=ContinuationShown, tags=["continuations"])
async def get_continuation(
    desk: At,
    who: Who,
    continuation_id: Id,
    wait_ms: Annotated[int, Query(ge=0, le=MAX_WAIT_MS, description="How long to wait for its end.")] = 0,
) -> Response:
    """Say where a turn stands: when it is over, waits for a yes, or time is up."""
    return reply(await desk.await_continuation(who, continuation_id, wait_ms=wait_ms))


@router.post("/continuations/{continuation_id}/cancel", response_model=Cancelled, tags=["continuations"])
async def cancel(desk: At, who: Who, continuation_id: Id, body: Why | None = None) -> Response:
    """End a turn, at once and for good; one that was over already stays as it was."""
    return reply(await desk.cancel(who, continuation_id, body.reason if body else None))


@router.post(
    "/continuations/{continuation_id}/resume",
    status_code=202,
    response_model=ContinuationShown,
    tags=["continuations"],
)
async def resume(desk: At, who: Who, continuation_id: Id) -> Response:
    """Go on with an interrupted turn, from the first step that is missing."""
    return reply(await desk.resume(who, continuation_id), 202)


@router.post(
    "/continuations/{continuation_id}/retry",
    status_code=202,
    response_model=Acknowledged,
    tags=["continuations"],
)
async def retry(desk: At, who: Who, continuation_id: Id) -> Response:
    """Run a turn again, as a new continuation."""
    return reply(await desk.retry(who, continuation_id), 202)


@router.post(
    "/continuations/{continuation_id}/approve",
    status_code=202,
    response_model=ContinuationShown,
    tags=["continuations"],
)
async def approve(desk: At, who: Who, continuation_id: Id, body: Approve) -> Response:
    """Say yes or no to a call that waits for it."""
    return reply(await desk.approve(who, continuation_id, body), 202)


@router.post("/ask", response_model=ContinuationShown, tags=["continuations"])
async def ask(desk: At, who: Who, body: Ask) -> Response:
    """Ask one question in a session of its own, which ends with the answer."""
    return reply(await desk.ask(who, body))


@router.get(
    "/artifacts/{artifact_id}",
    tags=["sessions"],
    response_class=Response,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def artifact(desk: At, who: Who, artifact_id: Id) -> Response:
    """Return a large result, as it was kept; a browser is told to run nothing in it."""
    found = await desk.artifact(who, artifact_id)
    headers = {
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": "attachment"
        if "html" in found.ref.type or "svg" in found.ref.type
        else "inline",
    }
    return Response(found.data, headers=headers, media_type=found.ref.type)


@router.get("/stats", response_model=dict[str, Any], tags=["owner"])
async def stats(desk: At, who: Who, days: Annotated[int, Query(ge=1, le=366)] = 7) -> Response:
    """Say what your sessions have done and cost: in all, today, and day by day."""
    return reply(await desk.statistics(who, days))


@router.delete("/owners/me", response_model=Erased, tags=["owner"])
async def erase(desk: At, who: Who) -> Response:
    """Delete everything of yours, for good."""
    return reply(await desk.erase(who))
