"""`/conversation`: conversations by name."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import AfterValidator, Field
from starlette.responses import Response

from sash.app.schemas import Object
from sash.errors import InvalidInput
from sash.server.conversation_service import ConversationService, UserMessage
from sash.server.routes.dependencies import ERRORS, CurrentCaller, QueryRoute, make_json_response
from sash.server.routes.event_routes import STREAM, open_stream, wants_stream
from sash.values.requests import Tags, Text
from sash.values.sessions import Flag, Label
from sash.values.validated import validated
from sash.values.validation import check_conversation_id

DEFAULT_CONVERSATION = "default"
CONVERSATION_HEADER = "X-Conversation-Id"
MAX_RECENT_TURNS = 100

Name = Annotated[
    str,
    Field(min_length=1, max_length=256, pattern=r"\S", description="The id of the conversation."),
    AfterValidator(check_conversation_id),
]
ConversationId = Annotated[Name, Query()]
TurnId = Annotated[str, Path(min_length=1, max_length=256)]

router = APIRouter(prefix="/conversation", tags=["conversation"], responses=ERRORS, route_class=QueryRoute)

_EXAMPLE_TURN = {
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

    user_message: Annotated[Text, Field(pattern=r"\S")]
    ai_response: str | None = None
    metadata: Object | None = None
    conversation_id: Name | None = None
    idempotency_key: Label | None = None
    tags: Tags = ()


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
    stream: Flag = False


async def _get_conversations(request: Request) -> ConversationService:
    conversations: ConversationService = request.app.state.conversations
    return conversations


Conversations = Annotated[ConversationService, Depends(_get_conversations)]


def _document_example(example: Any, **other_types: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": example}, **other_types}}}


@router.post(
    "/turn",
    response_model=dict[str, Any],
    responses=_document_example(
        {
            "status": "success",
            "turn_id": _EXAMPLE_TURN["id"],
            "message": "Conversation turn added successfully",
            "statistics": {"current_turns": 8, "max_turns": 10, "total_turns_ever": 15, "deleted_turns": 7},
        }
    ),
)
async def add_turn(
    conversations: Conversations,
    caller: CurrentCaller,
    body: AddTurn,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
) -> Response:
    """Add a turn that was answered elsewhere. If the window is full, its oldest turn is removed.

    It is safe to send a turn again with the same `idempotency_key`: it is added once.
    """
    added = await conversations.add_turn(
        caller,
        body.conversation_id or conversation_id,
        body.user_message,
        body.ai_response,
        body.metadata,
        body.idempotency_key,
        body.tags,
    )
    return make_json_response(added)


@router.get(
    "",
    name="history",
    response_model=dict[str, Any],
    responses=_document_example(
        {
            "turns": [_EXAMPLE_TURN],
            "total_turns": 1,
            "max_turns": 10,
            "total_turns_ever": 25,
            "oldest_turn_timestamp": _EXAMPLE_TURN["timestamp"],
            "newest_turn_timestamp": _EXAMPLE_TURN["timestamp"],
        }
    ),
)
async def get_history(
    conversations: Conversations,
    caller: CurrentCaller,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
    format_text: Annotated[bool, Query(description="Return the turns as one text.")] = False,
    include_metadata: bool = True,
) -> Response:
    """Return the turns in the window, unchanged, oldest first."""
    history = await conversations.get_history(
        caller, conversation_id, format_text=format_text, include_metadata=include_metadata
    )
    return make_json_response(history)


@router.get("/stats", name="stats", response_model=dict[str, Any])
async def get_statistics(
    conversations: Conversations,
    caller: CurrentCaller,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
) -> Response:
    """Return the number of turns: in the window, in total, and removed."""
    return make_json_response(await conversations.get_statistics(caller, conversation_id))


@router.get(
    "/recent",
    name="recent",
    response_model=dict[str, Any],
    responses=_document_example(
        {"status": "success", "recent_turns": [_EXAMPLE_TURN], "count": 1, "requested": 5}
    ),
)
async def get_recent_turns(
    conversations: Conversations,
    caller: CurrentCaller,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
    n: Annotated[int, Query(ge=0, le=MAX_RECENT_TURNS)] = 5,
) -> Response:
    """Return the newest turns."""
    return make_json_response(await conversations.get_recent_turns(caller, conversation_id, n))


@router.patch(
    "/turn/{turn_id}",
    response_model=dict[str, Any],
    responses=_document_example(
        {"status": "success", "turn_id": _EXAMPLE_TURN["id"], "message": "AI response updated successfully"}
    ),
)
async def update_turn(
    conversations: Conversations,
    caller: CurrentCaller,
    turn_id: TurnId,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
    ai_response: Annotated[str | None, Query(description="The answer, if the body has none.")] = None,
    body: Annotated[Answer | None, Body()] = None,
) -> Response:
    """Set the answer of a turn, for example after it was streamed."""
    answer = body.ai_response if body is not None else ai_response
    if answer is None:
        raise InvalidInput("ai_response is missing: send it as a query parameter or in the body")
    return make_json_response(await conversations.update_turn(caller, conversation_id, turn_id, answer))


@router.delete(
    "",
    name="clear",
    response_model=dict[str, Any],
    responses=_document_example(
        {"status": "success", "message": "Conversation history cleared", "total_turns_ever": 47}
    ),
)
async def clear_conversation(
    conversations: Conversations,
    caller: CurrentCaller,
    conversation_id: ConversationId = DEFAULT_CONVERSATION,
) -> Response:
    """Delete all turns of a conversation permanently."""
    return make_json_response(await conversations.clear(caller, conversation_id))


@router.post(
    "",
    name="say",
    response_model=dict[str, Any],
    responses=_document_example(
        {
            "response_text": "Turned on the light",
            "conversation_id": "kitchen",
            "extra": {"status": "completed"},
        },
        **STREAM["content"],
    ),
)
async def send_to_agent(
    request: Request,
    conversations: Conversations,
    caller: CurrentCaller,
    body: Say,
    conversation_id: Annotated[Name | None, Query()] = None,
) -> Response:
    """Send a message to the agent and wait for its answer.

    Without a `conversation_id` a new conversation starts, and the response has its id. If
    `auto_create_conversation_id` is off, the message is answered without a conversation instead. A message
    that is sent again with the same `idempotency_key` gets the same answer. If the agent has asked for an
    approval, a yes or no within a minute answers it; any other message drops the question. With `stream` or
    `Accept: text/event-stream` the response is the event stream of the turn, and the header
    `X-Conversation-Id` has the id.
    """
    message = UserMessage(
        body.text, body.conversation_id or conversation_id, body.language, body.idempotency_key
    )
    if body.stream or wants_stream(request):
        with open_stream(request, caller) as stream:
            begun = await conversations.begin_answer(caller, message)
            name = begun.conversation_id
            headers = {} if name is None else {CONVERSATION_HEADER: quote(name)}
            return await stream.follow(begun.continuation_id, headers)
    return make_json_response(await conversations.send_to_agent(caller, message))
