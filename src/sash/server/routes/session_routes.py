"""`/v1/sessions` and `/v1/artifacts`: sessions with their transcripts and results."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sash.app.access import Caller
from sash.app.schemas import (
    ContextShown,
    Erased,
    Export,
    MessageList,
    MessageShown,
    SessionList,
    SessionOver,
    SessionReset,
    SessionShown,
    SessionStarted,
)
from sash.app.service import AgentService
from sash.errors import InvalidJson
from sash.server.routes.dependencies import (
    ERRORS,
    CurrentCaller,
    Id,
    MaxTokens,
    PageSize,
    QueryRoute,
    SearchWords,
    Service,
    make_json_response,
)
from sash.values.ids import ULID_PATTERN
from sash.values.large_json import encode_in_steps, parse_json
from sash.values.requests import TAG_LIST, Fork, MessageTags, StartSession, TagFilter, UpdateSession, Why
from sash.values.sessions import SessionStatus
from sash.values.validation import check_depth

CHUNK_CHARS = 1 << 16
RECORDS_FREED_AT_ONCE = 1000

router = APIRouter(prefix="/v1", tags=["sessions"], responses=ERRORS, route_class=QueryRoute)


class ExportResponse(Response):
    """An export, which uses its owner's share until the client has read the last byte."""

    def __init__(self, service: AgentService, caller: Caller, session_id: str) -> None:
        super().__init__()
        self._service = service
        self._caller = caller
        self._session_id = session_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._service.open_export(self._caller, self._session_id) as exported:
            chunks = await asyncio.to_thread(_encode_export, exported)
            headers = {"Content-Length": str(sum(map(len, chunks)))}
            response = StreamingResponse(_yield_all(chunks), headers=headers, media_type="application/json")
            await response(scope, receive, send)


def _encode_export(exported: dict[str, Any]) -> list[bytes]:
    """Return the JSON text of an export in chunks. A slow client needs only the text, so free the rest."""
    chunks, pieces, size = [], [], 0
    for piece in encode_in_steps(exported):
        pieces.append(piece)
        size += len(piece)
        if size >= CHUNK_CHARS:
            chunks.append("".join(pieces).encode())
            pieces, size = [], 0
    _free(exported)
    return [*chunks, "".join(pieces).encode()]


def _free(exported: Any) -> None:
    """Empty the lists of an export in steps, because all threads wait while one thread frees objects."""
    for part in exported.values() if isinstance(exported, dict) else ():
        while isinstance(part, list) and part:
            del part[-RECORDS_FREED_AT_ONCE:]


async def _yield_all(chunks: list[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body. The server waits after each of them until the client has read enough."""
    for chunk in chunks:
        yield chunk


@router.post("/sessions", status_code=201, response_model=SessionStarted)
async def start_session(
    service: Service, caller: CurrentCaller, body: StartSession | None = None
) -> Response:
    """Start a session."""
    session = await service.start_session(caller, body or StartSession())
    return make_json_response(SessionStarted(session.id), 201)


@router.get("/sessions", response_model=SessionList)
async def list_sessions(
    service: Service,
    caller: CurrentCaller,
    status: SessionStatus | None = None,
    limit: PageSize = 50,
    cursor: Annotated[
        str | None, Query(pattern=ULID_PATTERN, description="The `next_cursor` of the previous page.")
    ] = None,
    include: Annotated[
        Literal["titles"] | None,
        Query(description="Also return the title of each session: its name, or the first words of its user."),
    ] = None,
) -> Response:
    """List your sessions, newest first."""
    page = await service.list_sessions(caller, status=status, limit=limit, cursor=cursor)
    titles = await service.find_titles(caller, page.items) if include == "titles" else None
    return make_json_response(SessionList.of(page, titles))


@router.post(
    "/sessions/import",
    status_code=201,
    response_model=SessionStarted,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    },
)
async def import_session(service: Service, caller: CurrentCaller, request: Request) -> Response:
    """Import an exported session. You become its owner."""
    # An export may be large, so it is parsed in a thread.
    body = await asyncio.to_thread(_parse_json, await request.body())
    try:
        session = await service.import_session(caller, body)
    finally:
        await asyncio.to_thread(_free, body)
    return make_json_response(SessionStarted(session.id), 201)


def _parse_json(body: bytes) -> Any:
    try:
        value = parse_json(body)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"the body is not JSON: {error}") from error
    check_depth(value)
    return value


@router.get("/sessions/{session_id}", response_model=SessionShown)
async def get_session(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """Return a session, the ids of its unfinished turns, and the counts of its window."""
    session = await service.get_session(caller, session_id)
    open_turns = await service.open_continuations(caller, session_id)
    window = await service.window_stats(caller, session)
    return make_json_response(SessionShown.of(session, open_turns, window))


@router.patch("/sessions/{session_id}", response_model=SessionShown)
async def change_session(
    service: Service, caller: CurrentCaller, session_id: Id, body: UpdateSession
) -> Response:
    """Change the given fields of a session, from the next turn on. Others stay as they are."""
    return make_json_response(SessionShown(await service.update_session(caller, session_id, body)))


@router.delete("/sessions/{session_id}", response_model=Erased)
async def delete_session(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """Delete a session and its transcript permanently."""
    await service.delete_session(caller, session_id)
    return make_json_response(Erased(1))


@router.post("/sessions/{session_id}/reset", name="reset", response_model=SessionReset)
async def reset_session(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """Empty the window, so that the conversation starts over. The transcript, facts and pins stay."""
    return make_json_response(SessionReset((await service.reset_session(caller, session_id)).id))


@router.post("/sessions/{session_id}/end", response_model=SessionOver)
async def end_session(
    service: Service, caller: CurrentCaller, session_id: Id, body: Why | None = None
) -> Response:
    """End a session. It accepts no more turns, and its running turns are cancelled."""
    session = await service.end_session(caller, session_id, body.reason if body else None)
    return make_json_response(SessionOver.of(session))


@router.post("/sessions/{session_id}/fork", status_code=201, response_model=SessionStarted)
async def fork_session(
    service: Service, caller: CurrentCaller, session_id: Id, body: Fork | None = None
) -> Response:
    """Copy a session, whole or up to a turn. The copy and the original continue independently."""
    session = await service.fork_session(caller, session_id, body or Fork())
    return make_json_response(SessionStarted(session.id), 201)


@router.get("/sessions/{session_id}/export", response_model=Export)
async def export_session(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """Return a whole session in the form that `POST /v1/sessions/import` accepts."""
    return ExportResponse(service, caller, session_id)


@router.get("/sessions/{session_id}/context", name="context", response_model=ContextShown)
async def get_context(
    service: Service,
    caller: CurrentCaller,
    session_id: Id,
    include: Annotated[
        Literal["messages"] | None, Query(description="Also return the messages and tools, word for word.")
    ] = None,
) -> Response:
    """Return the parts of the next model call, and the messages that were evicted.

    The new message, and the texts that are found for it, are not part of it.
    """
    report = await service.context_report(caller, session_id, with_messages=include == "messages")
    return make_json_response(ContextShown.of(report))


@router.get("/sessions/{session_id}/search", name="search", response_model=MessageList)
async def search_messages(
    service: Service,
    caller: CurrentCaller,
    session_id: Id,
    q: SearchWords,
    limit: PageSize = 10,
    max_tokens: MaxTokens = None,
) -> Response:
    """Search the messages of a session, including evicted ones, best match first. There is only one page."""
    found = await service.search(caller, q, session_id=session_id, limit=limit, max_tokens=max_tokens)
    return make_json_response(MessageList.of_best(found))


@router.get("/sessions/{session_id}/messages", response_model=MessageList)
async def list_messages(
    service: Service,
    caller: CurrentCaller,
    session_id: Id,
    limit: PageSize = 100,
    cursor: Annotated[int, Query(ge=0, le=2**53, description="The `next_cursor` of the previous page.")] = 0,
    before: Annotated[
        int | None,
        Query(
            ge=1,
            le=2**53,
            description="Return the last messages before this position. Then `next_cursor` is the `before` "
            "of the next older page. 2^53 gives the newest messages.",
        ),
    ] = None,
    tag_filter: Annotated[
        str | None,
        Query(
            pattern=TAG_LIST,
            description="Show only messages with one of these tags: `important,context:lights`.",
        ),
    ] = None,
) -> Response:
    """List the transcript, oldest first. `cursor` pages forwards, and `before` pages backwards.

    With both, it lists the messages between them.
    """
    # One message more than the page shows whether another page follows.
    found = await service.list_messages(
        caller,
        session_id,
        after=cursor,
        before=before,
        limit=limit + 1,
        tag_filter=TagFilter.of(tag_filter),
    )
    page = MessageList.of(found, limit) if before is None else MessageList.of_older(found, limit)
    return make_json_response(page)


@router.patch("/sessions/{session_id}/messages/{message_id}", response_model=MessageShown)
async def tag_message(
    service: Service, caller: CurrentCaller, session_id: Id, message_id: Id, body: MessageTags
) -> Response:
    """Replace the tags of a message. `pinned`, `important` and `ephemeral` change when it is evicted.

    Tags that only Sash sets, such as `input`, stay. Evictions regard the new tags from the next turn on.
    """
    return make_json_response(
        MessageShown.of(await service.tag_message(caller, session_id, message_id, body))
    )


@router.get(
    "/artifacts/{artifact_id}",
    name="artifact",
    response_class=Response,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def get_artifact(service: Service, caller: CurrentCaller, artifact_id: Id) -> Response:
    """Return a large result as it was stored. The headers forbid browsers to run scripts in it."""
    artifact = await service.artifact(caller, artifact_id)
    kind = artifact.ref.type
    headers = {
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": "attachment" if "html" in kind or "svg" in kind else "inline",
    }
    return Response(artifact.data, headers=headers, media_type=kind)
