"""Seed 001's routes: turns of conversations, and one turn of the agent."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from sash.app.schemas import Object
from sash.errors import InvalidInput
from sash.server.conversation import Conversations
from sash.server.wire import ERRORS, Who, reply
from sash.values.requests import Text
from sash.values.sessions import Label
from sash.values.validated import validated

DEFAULT = "default"
MAX_RECENT = 100

Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S", description="Which conversation.")]
ConversationId = Annotated[Name, Query()]
TurnId = Annotated[str, Path(min_length=1, max_length=256)]

router = APIRouter(prefix="/conversation", tags=["conversation"], responses=ERRORS)

_TURN = {
    "id": "01KA3V8Q6Z4T6P8C1YB8J7W0AE",
    "user_message": "How do I fix error 500?",
    "ai_response": "Check your database connection...",
    "timestamp": "2026-01-03T14:23:45.123Z",
    "metadata": {},
}


@validated(
    kw_only=True,
    example={
        "user_message": "How do I fix error 500?",
        "ai_response": "Check your database connection...",
        "metadata": {"source": "chat", "session_id": "abc123"},
    },
)
class AddTurn:
    """A turn that was answered elsewhere."""

    user_message: Text
    ai_response: str | None = None
    metadata: Object | None = None
    conversation_id: Name | None = None
    idempotency_key: Label | None = None


@validated(kw_only=True, example={"ai_response": "Updated response text"})
class Answer:
    """The answer of a turn."""

    ai_response: str


@validated(
    kw_only=True,
    example={"text": "Turn on the kitchen light", "conversation_id": "kitchen", "language": "en"},
)
class Say:
    """A message to the agent."""

    text: Text
    conversation_id: Name | None = None
    language: Label | None = None
    idempotency_key: Label | None = None


def _like(example: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": example}}}}


def _conversations(request: Request) -> Conversations:
    conversations: Conversations = request.app.state.conversations
    return conversations


@router.post(
    "/turn",
    response_model=dict[str, Any],
    responses=_like(
        {
            "status": "success",
            "turn_id": _TURN["id"],
            "message": "Conversation turn added successfully",
            "statistics": {"current_turns": 8, "max_turns": 10, "total_turns_ever": 15, "deleted_turns": 7},
        }
    ),
)
async def add_turn(
    request: Request, who: Who, body: AddTurn, conversation_id: ConversationId = DEFAULT
) -> Response:
    """Add a turn that was answered elsewhere; the oldest leaves the window when it is full.

    Who does not know whether a turn was added sends it again with the same `idempotency_key`.
    """
    name = body.conversation_id or conversation_id
    added = await _conversations(request).add_turn(
        who, name, body.user_message, body.ai_response, body.metadata, body.idempotency_key
    )
    return reply(added)


@router.get(
    "",
    response_model=dict[str, Any],
    responses=_like(
        {
            "turns": [_TURN],
            "total_turns": 1,
            "max_turns": 10,
            "total_turns_ever": 25,
            "oldest_turn_timestamp": _TURN["timestamp"],
            "newest_turn_timestamp": _TURN["timestamp"],
        }
    ),
)
async def history(
    request: Request,
    who: Who,
    conversation_id: ConversationId = DEFAULT,
    format_text: Annotated[bool, Query(description="The turns as one text to read.")] = False,
    include_metadata: bool = True,
) -> Response:
    """Return the turns in the window, word for word, oldest first."""
    return reply(
        await _conversations(request).history(
            who, conversation_id, format_text=format_text, include_metadata=include_metadata
        )
    )


@router.get("/stats", response_model=dict[str, Any])
async def stats(request: Request, who: Who, conversation_id: ConversationId = DEFAULT) -> Response:
    """Say how many turns there are, were, and are gone."""
    return reply(await _conversations(request).stats(who, conversation_id))


@router.get(
    "/recent",
    response_model=dict[str, Any],
    responses=_like({"status": "success", "recent_turns": [_TURN], "count": 1, "requested": 5}),
)
async def recent(
    request: Request,
    who: Who,
    conversation_id: ConversationId = DEFAULT,
    n: Annotated[int, Query(ge=0, le=MAX_RECENT)] = 5,
) -> Response:
    """Return the newest turns."""
    return reply(await _conversations(request).recent(who, conversation_id, n))


@router.patch(
    "/turn/{turn_id}",
    response_model=dict[str, Any],
    responses=_like(
        {"status": "success", "turn_id": _TURN["id"], "message": "AI response updated successfully"}
    ),
)
async def update_turn(
    request: Request,
    who: Who,
    turn_id: TurnId,
    conversation_id: ConversationId = DEFAULT,
    ai_response: Annotated[str | None, Query(description="The answer, if it is not in the body.")] = None,
    body: Annotated[Answer | None, Body()] = None,
) -> Response:
    """Set the answer of a turn, as when it was streamed."""
    answer = body.ai_response if body is not None else ai_response
    if answer is None:
        raise InvalidInput("ai_response is missing: give it as a parameter, or in the body")
    return reply(await _conversations(request).update(who, conversation_id, turn_id, answer))


@router.delete(
    "",
    response_model=dict[str, Any],
    responses=_like({"status": "success", "message": "Conversation history cleared", "total_turns_ever": 47}),
)
async def clear(request: Request, who: Who, conversation_id: ConversationId = DEFAULT) -> Response:
    """Delete all that was said in a conversation."""
    return reply(await _conversations(request).clear(who, conversation_id))


@router.post(
    "",
    response_model=dict[str, Any],
    responses=_like(
        {
            "response_text": "Turned on the light",
            "conversation_id": "kitchen",
            "extra": {"status": "completed"},
        }
    ),
)
async def say(request: Request, who: Who, body: Say, conversation_id: ConversationId = DEFAULT) -> Response:
    """Say something to the agent, and wait for its answer; the same `idempotency_key` brings the same one."""
    name = body.conversation_id or conversation_id
    said = await _conversations(request).say(who, name, body.text, body.language, body.idempotency_key)
    return reply(said)
