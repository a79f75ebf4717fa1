"""Turns: sending a message, and waiting for, cancelling, resuming, retrying or approving a turn."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sash.app.schemas import Acknowledged, Cancelled, ContinuationList, ContinuationShown, PromptList
from sash.server.routes.dependencies import (
    ERRORS,
    CurrentCaller,
    Id,
    PageSize,
    QueryRoute,
    Service,
    make_json_response,
)
from sash.server.routes.event_routes import STREAM, open_stream, wants_stream
from sash.values.ids import ULID_PATTERN
from sash.values.requests import MAX_WAIT_MS, Approve, Ask, SendMessage, Why

StoredStatus = Literal[
    "pending", "running", "awaiting_approval", "interrupted", "completed", "failed", "cancelled", "expired"
]

router = APIRouter(prefix="/v1", tags=["continuations"], responses=ERRORS, route_class=QueryRoute)


@router.post(
    "/sessions/{session_id}/messages",
    status_code=202,
    response_model=Acknowledged,
    responses={200: STREAM},
)
async def send_message(
    request: Request, service: Service, caller: CurrentCaller, session_id: Id, body: SendMessage
) -> Response:
    """Start a turn. It is stored when this responds, and continues if you disconnect.

    If a turn of the session waits for an approval, a yes or no within 60 seconds answers it, and this
    responds with that turn. Any other message cancels that turn and is answered itself.

    With `Accept: text/event-stream` the response is the event stream of the turn. It ends with `final`, or
    with the step that asks for an approval.
    """
    if wants_stream(request):
        with open_stream(request, caller) as stream:
            return await stream.follow((await service.reply(caller, session_id, body)).id)
    sent = await service.reply(caller, session_id, body)
    return make_json_response(Acknowledged(sent.id), 202)


@router.get("/continuations", response_model=ContinuationList)
async def list_continuations(
    service: Service,
    caller: CurrentCaller,
    session_id: Annotated[
        str | None, Query(min_length=1, max_length=256, description="Show only turns of this session.")
    ] = None,
    is_open: Annotated[bool, Query(alias="open", description="Show only turns that have not ended.")] = False,
    status: Annotated[
        StoredStatus | None,
        Query(description="Show only turns with this status. A turn that streams its answer is `running`."),
    ] = None,
    limit: PageSize = 50,
    cursor: Annotated[
        str | None, Query(pattern=ULID_PATTERN, description="The `next_cursor` of the previous page.")
    ] = None,
) -> Response:
    """List your turns, newest first, without their steps. A turn that waits shows its `waiting_calls`."""
    page = await service.list_continuations(
        caller, session_id=session_id, is_open=is_open, status=status, limit=limit, cursor=cursor
    )
    return make_json_response(page)


@router.get("/continuations/{continuation_id}", response_model=ContinuationShown)
async def get_continuation(
    service: Service,
    caller: CurrentCaller,
    continuation_id: Id,
    wait_ms: Annotated[
        int, Query(ge=0, le=MAX_WAIT_MS, description="The maximum time to wait for the end of the turn.")
    ] = 0,
) -> Response:
    """Return the state of a turn when it ends, when it needs an approval, or after `wait_ms`."""
    turn = await service.await_continuation(caller, continuation_id, timeout_s=wait_ms / 1000)
    return make_json_response(ContinuationShown.of(turn))


@router.get("/continuations/{continuation_id}/prompts", name="prompts", response_model=PromptList)
async def get_prompts(service: Service, caller: CurrentCaller, continuation_id: Id) -> Response:
    """Return what each model call of a turn sent, word for word, as long as its steps are kept.

    `parts` has the tokens of each part of the prompt, and what differs from the model call before.
    """
    return make_json_response(PromptList(tuple(await service.sent_prompts(caller, continuation_id))))


@router.post("/continuations/{continuation_id}/cancel", name="cancel", response_model=Cancelled)
async def cancel_turn(
    service: Service, caller: CurrentCaller, continuation_id: Id, body: Why | None = None
) -> Response:
    """Cancel a turn immediately. A turn that has already ended does not change."""
    cancelling = service.cancel(caller, continuation_id, body.reason if body else None)
    return make_json_response(await Cancelled.of(cancelling))


@router.post(
    "/continuations/{continuation_id}/resume",
    name="resume",
    status_code=202,
    response_model=ContinuationShown,
)
async def resume_turn(service: Service, caller: CurrentCaller, continuation_id: Id) -> Response:
    """Resume an interrupted turn from its first missing step."""
    turn = await service.resume(caller, continuation_id)
    return make_json_response(ContinuationShown.of(turn), 202)


@router.post(
    "/continuations/{continuation_id}/retry", name="retry", status_code=202, response_model=Acknowledged
)
async def retry_turn(service: Service, caller: CurrentCaller, continuation_id: Id) -> Response:
    """Run the message of a turn again, as a new turn."""
    again = await service.retry(caller, continuation_id)
    return make_json_response(Acknowledged(again.id), 202)


@router.post(
    "/continuations/{continuation_id}/approve",
    name="approve",
    status_code=202,
    response_model=ContinuationShown,
)
async def approve_call(
    service: Service, caller: CurrentCaller, continuation_id: Id, body: Approve
) -> Response:
    """Approve or deny a tool call that waits for an approval."""
    turn = await service.approve(caller, continuation_id, body)
    return make_json_response(ContinuationShown.of(turn), 202)


@router.post("/ask", name="ask", response_model=ContinuationShown, responses={200: STREAM})
async def ask_question(request: Request, service: Service, caller: CurrentCaller, body: Ask) -> Response:
    """Ask one question in a session of its own. The session ends with the answer.

    If the answer takes longer than `timeout_ms` or `early_wait_seconds`, the response has a `notice` for the
    user, and the turn continues. With `stream` or `Accept: text/event-stream` the response is the event
    stream of the turn. It ends with `final`, or with the step that asks for an approval.
    """
    if body.stream or wants_stream(request):
        with open_stream(request, caller) as stream:
            return await stream.follow((await service.put_question(caller, body)).id)
    turn = await service.ask(caller, body)
    return make_json_response(ContinuationShown.of(turn, await service.write_notice(caller, turn)))
