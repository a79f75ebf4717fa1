"""The MCP tools of the agent. To add one, write its handler and list it in `AGENT_TOOLS`."""

from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from sash.app.schemas import (
    Acknowledged,
    Cancelled,
    Erased,
    MessageList,
    MessageShown,
    SessionOver,
    SessionReset,
    SessionShown,
    SessionStarted,
)
from sash.errors import ContinuationNotFound, InvalidInput
from sash.server.mcp.agent_tool import agent_tool
from sash.server.mcp.note_tools import NOTE_TOOLS
from sash.server.mcp.tool import CallContext, Tool
from sash.server.mcp.tool_outputs import SummaryList, summarize_sessions
from sash.server.mcp.waiting_tools import WAITING_TOOLS
from sash.values.requests import (
    MAX_TAGS,
    Approve,
    Ask,
    Fork,
    MessageTags,
    Milliseconds,
    SendMessage,
    StartSession,
    Tag,
    TagFilter,
    UpdateSession,
)
from sash.values.sessions import Flag, Label, SessionStatus
from sash.values.validated import validated
from sash.values.validation import whole

# Many clients give up after a minute.
WAIT_MS = 50_000
MAX_SESSIONS = 500
MAX_MESSAGES = 100


@validated(kw_only=True)
class SessionId:
    session_id: Label


@validated(kw_only=True)
class SessionUpdate(UpdateSession):
    session_id: Label


@validated(kw_only=True)
class SessionFork(Fork):
    session_id: Label


@validated(kw_only=True)
class SessionEnd(SessionId):
    reason: Label | None = None


@validated(kw_only=True)
class SessionQuery:
    status: SessionStatus | None = None
    limit: Annotated[int, Strict(), Field(ge=1, le=MAX_SESSIONS), BeforeValidator(whole)] = 20
    cursor: Label | None = None


@validated(kw_only=True)
class SessionMessage(SendMessage):
    session_id: Label


@validated(kw_only=True)
class MessageQuery(SessionId):
    tag_filter: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()
    limit: Annotated[int, Strict(), Field(ge=1, le=MAX_MESSAGES), BeforeValidator(whole)] = 50
    cursor: Label | None = None


@validated(kw_only=True)
class TaggedMessage(MessageTags):
    session_id: Label
    message_id: Label


@validated(kw_only=True)
class Question(Ask):
    timeout_ms: Milliseconds | None = None


@validated(kw_only=True)
class TurnId:
    continuation_id: Label


@validated(kw_only=True)
class TurnCancellation(TurnId):
    reason: Label | None = None


@validated(kw_only=True)
class TurnWait(TurnId):
    timeout_ms: Milliseconds = WAIT_MS
    stream: Flag = False


@validated(kw_only=True)
class TurnApproval(Approve):
    continuation_id: Label
    timeout_ms: Milliseconds = WAIT_MS


@agent_tool(
    "ha_agent_list_sessions",
    "List sessions",
    "List your sessions with the home agent, newest first. Use it to find a conversation to continue.",
    is_read_only=True,
    is_idempotent=True,
)
async def list_sessions(context: CallContext, query: SessionQuery) -> SummaryList:
    page = await context.service.list_sessions(
        context.caller, status=query.status, limit=query.limit, cursor=query.cursor
    )
    return summarize_sessions(page)


@agent_tool(
    "ha_agent_ask",
    "Ask the agent once",
    "Ask the home agent one question and get its answer, without a conversation. Use it for a single "
    "question about the house, or a single task. For follow-up questions start a session instead.",
    waits_for_turn=True,
    is_destructive=True,
    is_open_world=True,
)
async def ask(context: CallContext, question: Question) -> str:
    return (await context.service.put_question(context.caller, question)).id


@agent_tool(
    "ha_agent_start_session",
    "Start a session",
    "Start a conversation with the home agent. It lasts for weeks, and the agent remembers what was said. "
    "Returns the session_id to send messages with. The agent changes the house only if the policy allows it.",
)
async def start_session(context: CallContext, options: StartSession) -> SessionStarted:
    session = await context.service.start_session(context.caller, options)
    return SessionStarted(session.id)


@agent_tool(
    "ha_agent_send_message",
    "Send a message",
    "Send a message to the agent in a session. Returns a continuation_id immediately; the agent works in "
    "the background. Get the answer with ha_agent_await_continuation. If the agent has asked for an "
    "approval, a yes or no answers it, and any other message drops the question.",
    is_destructive=True,
    is_open_world=True,
)
async def send_message(context: CallContext, message: SessionMessage) -> Acknowledged:
    sent = await context.service.reply(context.caller, message.session_id, message)
    return Acknowledged(sent.id)


@agent_tool(
    "ha_agent_await_continuation",
    "Wait for an answer",
    "Wait for the agent's answer to a message. If the time is up first, the result is the state so far: "
    "call this tool again. It is safe to wait twice, or not at all.",
    waits_for_turn=True,
    is_read_only=True,
    is_idempotent=True,
)
async def await_continuation(context: CallContext, turn: TurnWait) -> str:
    return turn.continuation_id


@agent_tool(
    "ha_agent_approve",
    "Approve or deny a call",
    "Tell the agent whether it may make a call that needs an approval, such as unlocking a door. Ask the "
    "user first. Then this tool waits for the agent's answer.",
    waits_for_turn=True,
    is_destructive=True,
    is_open_world=True,
)
async def approve(context: CallContext, approval: TurnApproval) -> str:
    return (await context.service.approve(context.caller, approval.continuation_id, approval)).id


@agent_tool(
    "ha_agent_cancel",
    "Cancel a turn",
    "Cancel the agent's work on a message immediately, when the user no longer wants it.",
    is_destructive=True,
    is_idempotent=True,
)
async def cancel(context: CallContext, turn: TurnCancellation) -> Cancelled:
    try:
        return await Cancelled.of(context.service.cancel(context.caller, turn.continuation_id, turn.reason))
    except ContinuationNotFound:
        return Cancelled("not_found")


@agent_tool(
    "ha_agent_resume",
    "Resume a turn",
    "Continue a turn that was interrupted, for example by a restart. Finished steps are not repeated. Then "
    "this tool waits for the agent's answer.",
    waits_for_turn=True,
    is_destructive=True,
    is_open_world=True,
)
async def resume(context: CallContext, turn: TurnWait) -> str:
    return (await context.service.resume(context.caller, turn.continuation_id)).id


@agent_tool(
    "ha_agent_retry",
    "Retry a turn",
    "Send the message of a failed, cancelled or interrupted turn again. Returns the continuation_id of the "
    "new turn, as ha_agent_send_message does.",
    is_destructive=True,
    is_open_world=True,
)
async def retry(context: CallContext, turn: TurnId) -> Acknowledged:
    again = await context.service.retry(context.caller, turn.continuation_id)
    return Acknowledged(again.id)


@agent_tool(
    "ha_agent_get_session",
    "Look at a session",
    "Show a session: its model, policy, budgets, memory, cost, unfinished turns, and how full its window is.",
    is_read_only=True,
    is_idempotent=True,
)
async def get_session(context: CallContext, session: SessionId) -> SessionShown:
    found = await context.service.get_session(context.caller, session.session_id)
    open_turns = await context.service.open_continuations(context.caller, session.session_id)
    return SessionShown.of(found, open_turns, await context.service.window_stats(context.caller, found))


@agent_tool(
    "ha_agent_list_messages",
    "Read the messages of a session",
    "List what was said in a session, oldest first, also what the agent no longer sees. With tag_filter, "
    "only messages that have one of these tags, such as important or context:lights.",
    is_read_only=True,
    is_idempotent=True,
)
async def list_messages(context: CallContext, query: MessageQuery) -> MessageList:
    found = await context.service.list_messages(
        context.caller,
        query.session_id,
        after=_read_cursor(query.cursor),
        limit=query.limit + 1,
        tag_filter=TagFilter(tags=query.tag_filter),
    )
    return MessageList.of(found, query.limit)


def _read_cursor(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
        raise InvalidInput("cursor must be the next_cursor of the previous page")
    return int(cursor or 0)


@agent_tool(
    "ha_agent_tag_message",
    "Tag a message",
    "Replace the tags of a message. The agent keeps a pinned message in view for ever, an important one "
    "longer than others, and an ephemeral one less long.",
    is_idempotent=True,
)
async def tag_message(context: CallContext, message: TaggedMessage) -> MessageShown:
    tagged = await context.service.tag_message(
        context.caller, message.session_id, message.message_id, message
    )
    return MessageShown.of(tagged)


@agent_tool(
    "ha_agent_update_session",
    "Change a session",
    "Change the name, instructions, model, policy, budgets, window or preferences of a session. Fields that "
    "you leave out stay as they are. The changes apply from the next message on. "
    "ha_agent_get_session shows them.",
    is_idempotent=True,
)
async def update_session(context: CallContext, changes: SessionUpdate) -> SessionStarted:
    session = await context.service.update_session(context.caller, changes.session_id, changes)
    return SessionStarted(session.id)  # The schema of a whole session would fill the list of tools.


@agent_tool(
    "ha_agent_end_session",
    "End a session",
    "End a session when its conversation is over. It accepts no more messages, and its running turns are "
    "cancelled. The transcript is kept.",
    is_destructive=True,
    is_idempotent=True,
)
async def end_session(context: CallContext, session: SessionEnd) -> SessionOver:
    ended = await context.service.end_session(context.caller, session.session_id, session.reason)
    return SessionOver.of(ended)


@agent_tool(
    "ha_agent_reset_session",
    "Start over in a session",
    "Start the conversation of a session over: the agent no longer sees its earlier turns. The transcript "
    "and remembered facts stay.",
    is_destructive=True,
    is_idempotent=True,
)
async def reset_session(context: CallContext, session: SessionId) -> SessionReset:
    return SessionReset((await context.service.reset_session(context.caller, session.session_id)).id)


@agent_tool(
    "ha_agent_fork_session",
    "Copy a session",
    "Copy a session, whole or up to one of its turns, to try another continuation of the conversation. "
    "Returns the session_id of the copy.",
)
async def fork_session(context: CallContext, session: SessionFork) -> SessionStarted:
    copy = await context.service.fork_session(context.caller, session.session_id, session)
    return SessionStarted(copy.id)


@agent_tool(
    "ha_agent_delete_session",
    "Delete a session",
    "Delete a session permanently, with its transcript and its artifacts. Ask the user first.",
    is_destructive=True,
)
async def delete_session(context: CallContext, session: SessionId) -> Erased:
    await context.service.delete_session(context.caller, session.session_id)
    return Erased(1)


AGENT_TOOLS: tuple[Tool, ...] = (
    list_sessions,
    ask,
    start_session,
    send_message,
    await_continuation,
    approve,
    cancel,
    resume,
    retry,
    get_session,
    update_session,
    list_messages,
    tag_message,
    end_session,
    reset_session,
    *WAITING_TOOLS,
    *NOTE_TOOLS,
    fork_session,
    delete_session,
)
