"""Conversations by name: one durable window of turns for each owner and conversation id.

A conversation is a session whose name is the conversation id. Each method returns the JSON object of its
route. `_retry` handles callers that clear the same conversation at the same time.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import (
    ContinuationNotFound,
    InvalidInput,
    SessionBusy,
    SessionChanged,
    SessionEnded,
    SessionNotFound,
)
from sash.memory.conversation import (
    PastTurn,
    check_max_turns,
    check_turn_count,
    format_timestamp,
    turns_to_dicts,
    turns_to_text,
)
from sash.server.conversation_replies import describe_turn, write_reply
from sash.values.continuations import Continuation
from sash.values.requests import Ask, SendMessage, StartSession
from sash.values.sessions import Session, WindowLimits

ANSWER_S = 50.0
MAX_TRIES = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ConversationWindow:
    """The turns in the window of a conversation, and the number of turns it ever had."""

    turns: tuple[PastTurn, ...]
    total: int
    max_turns: int

    @property
    def oldest_at(self) -> str | None:
        return self.turns[0].timestamp if self.turns else None

    @property
    def newest_at(self) -> str | None:
        return self.turns[-1].timestamp if self.turns else None

    @property
    def counts(self) -> dict[str, Any]:
        return {
            "current_turns": len(self.turns),
            "max_turns": self.max_turns,
            "total_turns_ever": self.total,
            "deleted_turns": self.total - len(self.turns),
        }


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message to the agent. None as its conversation id means that the caller has no conversation yet."""

    text: str
    conversation_id: str | None = None
    language: str | None = None
    idempotency_key: str | None = None

    def to_request(self) -> SendMessage:
        return SendMessage(
            message=self.text,
            language=self.language,
            busy="enqueue",
            idempotency_key=self.idempotency_key,
        )


@dataclass(frozen=True, slots=True)
class BegunAnswer:
    """The turn that answers a message. Without a conversation, its id is None."""

    conversation_id: str | None
    continuation_id: str


class ConversationService:
    """Serves the last `max_turns` turns of each conversation, unchanged.

    `answer_s` is the time to wait for the agent before the user is told that it still works, unless the
    service has a shorter `early_wait_s`. Each method checks the scopes of its route, and then reads from the
    runtime. So a caller without the scope `read` can add, update and clear turns.
    """

    def __init__(
        self,
        service: AgentService,
        max_turns: int = 10,
        *,
        answer_s: float = ANSWER_S,
        auto_create_ids: bool = True,
    ) -> None:
        self.runtime = service.runtime
        self._service = service
        self._max_turns = check_max_turns(max_turns)
        self._answer_s = answer_s
        self._reply_s = min(answer_s, service.early_wait_s or answer_s)
        self._auto_create_ids = auto_create_ids

    async def open_session(self, caller: Caller, conversation_id: str, *, reopen: bool = True) -> Session:
        """Return the active session of a conversation. Start a session if the conversation lacks one.

        With `reopen` an expired session becomes active again instead.
        """
        request = StartSession(
            name=conversation_id,
            window=WindowLimits(max_tokens=None, max_turns=self._max_turns, evict_to=1.0),
        )
        return await self._service.open_session(caller, request, reopen=reopen)

    async def add_turn(
        self,
        caller: Caller,
        conversation_id: str,
        user_message: str,
        ai_response: str | None = None,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Add a turn and return its id with the new counts. A full window loses its oldest turn."""
        caller.need("converse")
        turn = await self._record_turn(
            caller, conversation_id, user_message, ai_response, metadata, idempotency_key, tags
        )
        window = await self._read_window(caller, conversation_id)
        return {
            "status": "success",
            "turn_id": turn.id,
            "message": "Conversation turn added successfully",
            "statistics": window.counts,
        }

    async def get_history(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        format_text: bool = False,
        include_metadata: bool = True,
    ) -> dict[str, Any]:
        """Return the turns in the window, oldest first. With `format_text`, return them as one text."""
        caller.need("read")
        window = await self._read_window(caller, conversation_id)
        render = turns_to_text if format_text else turns_to_dicts
        return {
            "turns": render(window.turns, include_metadata),
            "total_turns": len(window.turns),
            "max_turns": window.max_turns,
            "total_turns_ever": window.total,
            "oldest_turn_timestamp": window.oldest_at,
            "newest_turn_timestamp": window.newest_at,
        }

    async def get_statistics(self, caller: Caller, conversation_id: str) -> dict[str, Any]:
        """Return the number of turns: in the window, in total, and removed."""
        caller.need("read")
        window = await self._read_window(caller, conversation_id)
        return {
            "status": "success",
            "statistics": window.counts | {"oldest_turn": window.oldest_at, "newest_turn": window.newest_at},
            "sliding_window_info": {
                "max_turns": window.max_turns,
                "policy": "FIFO (First In First Out)",
                "philosophy": "Chopping > Summarizing",
                "benefits": [
                    "Recent precision: Last N turns perfectly intact",
                    "Zero AI cost: No summarization needed",
                    "No information loss: Lossless compression of recent past",
                    "Predictable: Always know what's in context",
                ],
            },
        }

    async def get_recent_turns(self, caller: Caller, conversation_id: str, n: int = 5) -> dict[str, Any]:
        """Return the `n` newest turns, the oldest of them first."""
        caller.need("read")
        check_turn_count(n)
        turns = (await self._read_window(caller, conversation_id)).turns
        newest = turns_to_dicts(turns[max(0, len(turns) - n) :])
        return {"status": "success", "recent_turns": newest, "count": len(newest), "requested": n}

    async def update_turn(
        self, caller: Caller, conversation_id: str, turn_id: str, ai_response: str
    ) -> dict[str, Any]:
        """Set the answer of a turn in the window, for example after it was streamed.

        Raise `ContinuationNotFound` if the window lacks the turn.
        """
        caller.need("converse")
        found = await self.runtime.find_session(conversation_id, owner=caller.owner)
        turns = [] if found is None else await self.runtime.list_turns(found.id, owner=caller.owner)
        if all(turn.id != turn_id for turn in turns):
            raise ContinuationNotFound(
                f"there is no turn {turn_id} in the window of conversation {conversation_id}",
                continuation_id=turn_id,
            )
        await self._service.amend_turn(caller, turn_id, ai_response)
        return {"status": "success", "turn_id": turn_id, "message": "AI response updated successfully"}

    async def clear(self, caller: Caller, conversation_id: str) -> dict[str, Any]:
        """Delete all turns of a conversation permanently. `total_turns_ever` keeps its value."""
        caller.need("converse")
        total = 0
        if (started := await self._replace_session(caller, conversation_id)) is not None:
            total = started.total_turns
            await self._delete_older_sessions(caller, started)
        return {"status": "success", "message": "Conversation history cleared", "total_turns_ever": total}

    async def send_to_agent(self, caller: Caller, message: UserMessage) -> dict[str, Any]:
        """Send a message to the agent and wait for the answer. Earlier turns of the session end first.

        If a turn waits for an approval, a "yes" or "no" within a minute answers it. Any other text, and a
        later one, drops the question and is answered. If the answer takes too long, the reply says that the
        agent still works.
        """
        begun = await self.begin_answer(caller, message)
        with _explain_clearing(begun.conversation_id):
            turn = await self._await_turn(caller, begun.continuation_id, self._reply_s)
            notice = await self._service.write_notice(caller, turn)
        shown = ContinuationShown.of(turn, notice)
        return {
            "response_text": write_reply(shown),
            "conversation_id": begun.conversation_id,
            "extra": describe_turn(shown),
        }

    async def begin_answer(self, caller: Caller, message: UserMessage) -> BegunAnswer:
        """Start the turn that answers a message, or let the message answer an approval question.

        A message without a conversation id starts a conversation, or has none: `auto_create_ids` decides.
        """
        caller.need("converse")
        caller.need("read")
        conversation_id = message.conversation_id
        if conversation_id is None:
            if not self._auto_create_ids:
                return BegunAnswer(None, await self._answer_once(caller, message))
            conversation_id = _make_conversation_id(message.idempotency_key)
        with _explain_clearing(conversation_id):
            turn = await self._reply(caller, conversation_id, message)
            return BegunAnswer(conversation_id, turn.id)

    async def _answer_once(self, caller: Caller, message: UserMessage) -> str:
        """Start a turn without a conversation, and return its id."""
        if message.idempotency_key is not None:
            raise InvalidInput(
                "an idempotency_key needs a conversation_id, because auto_create_conversation_id is off"
            )
        preferences = None if message.language is None else {"language": message.language}
        question = Ask(message=message.text)
        return (await self._service.put_question(caller, question, preferences=preferences)).id

    async def _await_turn(self, caller: Caller, continuation_id: str, timeout_s: float) -> ContinuationResult:
        return await self._service.await_continuation(caller, continuation_id, timeout_s=timeout_s)

    async def _reply(self, caller: Caller, conversation_id: str, message: UserMessage) -> Continuation:
        """Start the turn that answers a message, or let the message answer an approval question."""
        sent = message.to_request()

        async def reply() -> Continuation:
            session_id = None
            if "act" not in caller.scopes:
                session_id = await self._find_waiting_session(caller, conversation_id)
            if session_id is None:
                session_id = (await self.open_session(caller, conversation_id)).id
            return await self._service.reply(caller, session_id, sent)

        return await self._retry(conversation_id, reply)

    async def _find_waiting_session(self, caller: Caller, conversation_id: str) -> str | None:
        """Return the session of a conversation if one of its turns waits for an approval, else None.

        For callers without the scope `act`: they cannot open the session, but may be allowed to approve.
        """
        found = await self.runtime.find_session(conversation_id, owner=caller.owner)
        if found is None or found.status != "active":
            return None
        turns = await self._service.open_continuations(caller, found.id)
        return found.id if any(turn.status == "awaiting_approval" for turn in turns) else None

    async def _replace_session(self, caller: Caller, name: str) -> Session | None:
        """End the newest session of a conversation and open a new one. Return None if it has no session.

        The new session stores the count of turns before the old one is deleted, so a crash loses no count.
        """
        found = await self.runtime.find_session(name, owner=caller.owner)
        if found is None:
            return None
        with suppress(SessionNotFound):
            await self._service.end_session(caller, found.id)
        return await self.open_session(caller, name, reopen=False)

    async def _delete_older_sessions(self, caller: Caller, current: Session) -> None:
        """Delete the sessions of a conversation that are older than `current`, which counts their turns.

        A newer session is left alone: the caller that ended it has not counted its turns yet.
        """
        cursor: str | None = current.id
        while cursor is not None:
            page = await self.runtime.list_sessions(owner=caller.owner, name=current.name, cursor=cursor)
            for session in page.items:
                with suppress(SessionNotFound):
                    await self._service.delete_session(caller, session.id)
            cursor = page.next_cursor

    async def _record_turn(
        self,
        caller: Caller,
        conversation_id: str,
        user_message: str,
        ai_response: str | None,
        metadata: dict[str, Any] | None,
        idempotency_key: str | None,
        tags: Sequence[str],
    ) -> Continuation:
        """Add a turn as soon as no other turn runs.

        Raise `SessionBusy` if that takes longer than `answer_s`.
        """
        deadline = asyncio.get_running_loop().time() + self._answer_s

        async def record() -> Continuation:
            session = await self.open_session(caller, conversation_id)
            while True:
                try:
                    return await self._service.record_turn(
                        caller,
                        session.id,
                        user_message,
                        ai_response,
                        metadata=metadata,
                        idempotency_key=idempotency_key,
                        tags=tags,
                    )
                except SessionBusy as busy:
                    await self._await_busy_turn(caller, busy, deadline)

        return await self._retry(conversation_id, record)

    async def _await_busy_turn(self, caller: Caller, busy: SessionBusy, deadline: float) -> None:
        """Wait for the running turn. Raise `SessionBusy` if it has not ended by `deadline` (loop time)."""
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        with suppress(ContinuationNotFound):
            running = await self._service.wait_for_turn(caller, busy.continuation_id, left_s)
            if not running.continuation.is_final and running.status != "interrupted":
                needs_approval = running.status == "awaiting_approval"
                state = (
                    "needs an approval: approve or deny it" if needs_approval else "is running: wait for it"
                )
                raise SessionBusy(
                    f"turn {running.continuation.id} {state}, cancel it, or try again later",
                    continuation_id=running.continuation.id,
                ) from busy

    async def _read_window(self, caller: Caller, conversation_id: str) -> _ConversationWindow:
        """Return the window of a conversation. A missing conversation is empty; it is not started."""

        async def read() -> _ConversationWindow:
            found = await self.runtime.find_session(conversation_id, owner=caller.owner)
            if found is None:
                return _ConversationWindow((), 0, self._max_turns)
            turns = await self.runtime.list_turns(found.id, owner=caller.owner)
            session = await self.runtime.get_session(found.id, owner=caller.owner)
            max_turns = session.window.max_turns or self._max_turns
            return _ConversationWindow(tuple(map(_make_past_turn, turns)), session.total_turns, max_turns)

        return await self._retry(conversation_id, read)

    async def _retry(self, conversation_id: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `attempt`. Repeat it if another caller cleared the conversation meanwhile.

        Raise `SessionChanged` after `MAX_TRIES` attempts.
        """
        for _ in range(MAX_TRIES):
            with suppress(SessionNotFound, SessionEnded):
                return await attempt()
        raise SessionChanged(f"other callers keep clearing conversation {conversation_id}: try again")


def _make_conversation_id(idempotency_key: str | None) -> str:
    """Return a new UUID4. A message that is sent again with its key gets the same one."""
    if idempotency_key is None:
        return str(uuid4())
    digest = hashlib.sha256(f"sash conversation {idempotency_key}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


@contextmanager
def _explain_clearing(conversation_id: str | None) -> Iterator[None]:
    """Raise `SessionChanged` if the turn that the agent answers disappears, or its session."""
    try:
        yield
    except (ContinuationNotFound, SessionNotFound) as error:
        raise SessionChanged(
            f"conversation {conversation_id} was cleared while the agent answered: send the message again"
        ) from error


def _make_past_turn(turn: Continuation) -> PastTurn:
    answer = None if turn.response is None else turn.response.final_message
    return PastTurn(
        turn.id, turn.request.message, answer, format_timestamp(turn.created_at), turn.request.metadata
    )
