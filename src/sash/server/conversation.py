"""Seed 001's conversations, kept by a runtime: durable, one window for each owner and conversation id.

A conversation is a session that has the conversation's id for its name. It knows no HTTP: each verb returns
the JSON object of its route.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sash.app.access import Caller
from sash.app.schemas import Acknowledged, ContinuationShown, shown_result
from sash.app.service import AgentService
from sash.errors import (
    ContinuationNotFound,
    SessionBusy,
    SessionChanged,
    SessionEnded,
    SessionExists,
    SessionNotFound,
)
from sash.intents.approval_words import parse_approval
from sash.memory.conversation import PastTurn, as_dicts, as_text, check_max_turns, check_newest, stamp
from sash.values.codec import adapter
from sash.values.continuations import UNDER_WAY, Continuation
from sash.values.requests import Approve, SendMessage
from sash.values.sessions import Session, WindowLimits
from sash.values.validation import check_conversation_id

# Under this key a session's context has how many turns the conversation had before it.
TURNS_BEFORE = "turns_before"
# How long an answer is waited for before the user is told that it takes longer.
ANSWER_S = 50.0
# Others may begin or clear a conversation at the same time, but not for ever.
MAX_TRIES = 10
_OVERTAKEN = (SessionExists, SessionNotFound, SessionEnded)


@dataclass(frozen=True, slots=True)
class _Past:
    """What there is of a conversation: the turns in its window, and how many it has ever had."""

    turns: tuple[PastTurn, ...]
    total: int
    max_turns: int

    @property
    def oldest(self) -> str | None:
        return self.turns[0].timestamp if self.turns else None

    @property
    def newest(self) -> str | None:
        return self.turns[-1].timestamp if self.turns else None

    @property
    def counts(self) -> dict[str, Any]:
        return {
            "current_turns": len(self.turns),
            "max_turns": self.max_turns,
            "total_turns_ever": self.total,
            "deleted_turns": self.total - len(self.turns),
        }


class Conversations:
    """The last `max_turns` turns of each conversation, word for word."""

    def __init__(self, desk: AgentService, max_turns: int = 10) -> None:
        self._desk = desk
        self._runtime = desk.runtime
        self._max_turns = check_max_turns(max_turns)

    async def session(self, caller: Caller, conversation_id: str) -> Session:
        """Return the active session of a conversation, begun if there is none, reopened if it expired."""
        name = check_conversation_id(conversation_id)
        for _ in range(MAX_TRIES):
            found = await self._runtime.find_session(name, owner=caller.owner)
            if found is not None and found.status == "active":
                return found
            try:
                if found is not None and found.status == "expired":
                    return await self._runtime.reopen_session(found.id, owner=caller.owner)
                return await self._begin(caller, name, 0 if found is None else _total(found))
            except _OVERTAKEN:
                continue
        raise _keeps_changing(name)

    async def add_turn(
        self,
        caller: Caller,
        conversation_id: str,
        user_message: str,
        ai_response: str | None = None,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Add a turn; the oldest is pushed out of the window if that is full."""
        caller.need("converse")
        kept = {"metadata": metadata, "idempotency_key": idempotency_key}
        turn = await self._record(caller, conversation_id, user_message, ai_response, **kept)
        past = await self._past(caller, conversation_id)
        return {
            "status": "success",
            "turn_id": turn.id,
            "message": "Conversation turn added successfully",
            "statistics": past.counts,
        }

    async def history(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        format_text: bool = False,
        include_metadata: bool = True,
    ) -> dict[str, Any]:
        """Return the turns in the window, oldest first; with `format_text` as one text to read."""
        caller.need("read")
        past = await self._past(caller, conversation_id)
        render = as_text if format_text else as_dicts
        return {
            "turns": render(past.turns, include_metadata),
            "total_turns": len(past.turns),
            "max_turns": past.max_turns,
            "total_turns_ever": past.total,
            "oldest_turn_timestamp": past.oldest,
            "newest_turn_timestamp": past.newest,
        }

    async def stats(self, caller: Caller, conversation_id: str) -> dict[str, Any]:
        """Return how many turns there are, were, and are gone."""
        caller.need("read")
        past = await self._past(caller, conversation_id)
        return {
            "status": "success",
            "statistics": past.counts | {"oldest_turn": past.oldest, "newest_turn": past.newest},
            "sliding_window_info": {
                "max_turns": past.max_turns,
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

    async def recent(self, caller: Caller, conversation_id: str, n: int = 5) -> dict[str, Any]:
        """Return the `n` newest turns, oldest of them first."""
        caller.need("read")
        check_newest(n)
        turns = (await self._past(caller, conversation_id)).turns
        newest = as_dicts(turns[max(0, len(turns) - n) :])
        return {"status": "success", "recent_turns": newest, "count": len(newest), "requested": n}

    async def update(
        self, caller: Caller, conversation_id: str, turn_id: str, ai_response: str
    ) -> dict[str, Any]:
        """Set the answer of a turn in the window, as when it was streamed."""
        caller.need("converse")
        found = await self._runtime.find_session(check_conversation_id(conversation_id), owner=caller.owner)
        turns = [] if found is None else await self._runtime.list_turns(found.id, owner=caller.owner)
        if all(turn.id != turn_id for turn in turns):
            raise ContinuationNotFound(
                f"no turn {turn_id} in the window of conversation {conversation_id}", continuation_id=turn_id
            )
        if found is not None:
            await self._desk.check_act(caller, found.id)
        await self._runtime.amend_turn(turn_id, ai_response, owner=caller.owner)
        return {"status": "success", "turn_id": turn_id, "message": "AI response updated successfully"}

    async def clear(self, caller: Caller, conversation_id: str) -> dict[str, Any]:
        """Delete all that was said in a conversation, for good; how many turns it had is still known."""
        caller.need("converse")
        name, total = check_conversation_id(conversation_id), 0
        if (begun := await self._begin_anew(caller, name)) is not None:
            total = _total(begun)
            await self._delete_before(caller, begun)
        return {"status": "success", "message": "Conversation history cleared", "total_turns_ever": total}

    async def say(
        self,
        caller: Caller,
        conversation_id: str,
        text: str,
        language: str | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Let the agent answer, behind what is under way; who has to wait too long is told so."""
        caller.need("converse")
        caller.need("read")
        asking = await self._asking(caller, conversation_id)
        try:
            if asking is None:
                message = SendMessage(message=text, busy="enqueue", idempotency_key=idempotency_key)
                sent = await self._send(caller, conversation_id, message, language)
                turn = await self._answer(caller, sent.continuation_id)
            else:
                turn = await self._take(caller, asking, parse_approval(text))
        except ContinuationNotFound as error:
            raise SessionChanged(
                f"conversation {conversation_id} was cleared while the agent answered: say it again"
            ) from error
        return {"response_text": _reply(turn), "conversation_id": conversation_id, "extra": _extra(turn)}

    async def _asking(self, caller: Caller, conversation_id: str) -> ContinuationShown | None:
        """Return the turn that waits for a yes, if there is one, whoever clears the conversation."""
        name = check_conversation_id(conversation_id)
        found = await self._runtime.find_session(name, owner=caller.owner)
        with suppress(SessionNotFound, ContinuationNotFound):
            for turn in await self._runtime.open_continuations(found.id, owner=caller.owner) if found else ():
                if turn.status == "awaiting_approval":
                    return await self._answer(caller, turn.id)
        return None

    async def _take(
        self, caller: Caller, asking: ContinuationShown, answer: bool | None
    ) -> ContinuationShown:
        """Take a yes or no as the answer to all that was asked; to anything else it is asked again."""
        turn = asking
        for call in asking.waiting_calls if answer is not None else ():
            if call in turn.waiting_calls:
                approved = Approve(call_id=call.call_id, approved=bool(answer))
                await self._desk.approve(caller, asking.continuation_id, approved)
                turn = await self._answer(caller, asking.continuation_id)
        return turn

    async def _answer(self, caller: Caller, continuation_id: str) -> ContinuationShown:
        """Wait for a turn, but not so long that whoever waits gives up."""
        return shown_result(
            await self._runtime.await_continuation(continuation_id, owner=caller.owner, timeout_s=ANSWER_S)
        )

    async def _send(
        self, caller: Caller, conversation_id: str, message: SendMessage, language: str | None
    ) -> Acknowledged:
        """Send a message, whoever clears the conversation at the same time."""
        for _ in range(MAX_TRIES):
            session = await self.session(caller, conversation_id)
            try:
                if language is not None and session.preferences.get("language") != language:
                    await self._desk.set_preferences(caller, session.id, {"language": language})
                return await self._desk.send_message(caller, session.id, message)
            except _OVERTAKEN:
                continue
        raise _keeps_changing(conversation_id)

    async def _begin(self, caller: Caller, name: str, turns_before: int) -> Session:
        return await self._runtime.start_session(
            owner=caller.owner,
            name=name,
            policy=self._desk.policy(caller),
            window=WindowLimits(max_tokens=None, max_turns=self._max_turns, evict_to=1.0),
            context={TURNS_BEFORE: turns_before} if turns_before else None,
        )

    async def _begin_anew(self, caller: Caller, name: str) -> Session | None:
        """Let a new session take the place of a conversation's last one, if it has one.

        The old one is deleted when the new one knows how many turns there were, whoever dies meanwhile.
        """
        for _ in range(MAX_TRIES):
            found = await self._runtime.find_session(name, owner=caller.owner)
            if found is None:
                return None
            try:
                await self._runtime.end_session(found.id, owner=caller.owner)
                ended = await self._runtime.get_session(found.id, owner=caller.owner)
                return await self._begin(caller, name, _total(ended))
            except _OVERTAKEN:
                continue
        raise _keeps_changing(name)

    async def _delete_before(self, caller: Caller, begun: Session) -> None:
        """Delete the sessions of a conversation before this one, which knows how many turns they had.

        A later one is for whoever has ended it: its turns are not counted elsewhere yet.
        """
        cursor: str | None = begun.id
        while cursor is not None:
            page = await self._runtime.list_sessions(owner=caller.owner, name=begun.name, cursor=cursor)
            for session in page.items:
                with suppress(SessionNotFound):
                    await self._runtime.delete_session(session.id, owner=caller.owner)
            cursor = page.next_cursor

    async def _record(self, caller: Caller, conversation_id: str, *said: Any, **kept: Any) -> Continuation:
        """Add a turn to a conversation, whoever clears it at the same time."""
        until = asyncio.get_running_loop().time() + ANSWER_S
        for _ in range(MAX_TRIES):
            session = await self.session(caller, conversation_id)
            try:
                await self._desk.check_act(caller, session.id)
                return await self._runtime.record_turn(session.id, *said, owner=caller.owner, **kept)
            except SessionBusy as busy:
                await self._let_end(caller, busy, until)
            except _OVERTAKEN:
                continue
        raise _keeps_changing(conversation_id)

    async def _let_end(self, caller: Caller, busy: SessionBusy, until: float) -> None:
        """Wait for the turn that holds a conversation; one that waits for somebody may take too long."""
        left_s = max(0.0, until - asyncio.get_running_loop().time())
        with suppress(ContinuationNotFound):
            held = await self._runtime.await_continuation(
                busy.continuation_id, owner=caller.owner, timeout_s=left_s
            )
            if not held.continuation.is_final and held.status != "interrupted":
                waits = "waits for a yes: give an answer" if held.status == "awaiting_approval" else "runs"
                raise SessionBusy(
                    f"{held.continuation.id} of the conversation {waits}, cancel it, or try again later",
                    continuation_id=held.continuation.id,
                ) from busy

    async def _past(self, caller: Caller, conversation_id: str) -> _Past:
        """Read a conversation; one that there is not is empty, and is not begun by that."""
        name = check_conversation_id(conversation_id)
        for _ in range(MAX_TRIES):
            found = await self._runtime.find_session(name, owner=caller.owner)
            if found is None:
                return _Past((), 0, self._max_turns)
            try:
                turns = await self._runtime.list_turns(found.id, owner=caller.owner)
                session = await self._runtime.get_session(found.id, owner=caller.owner)
            except SessionNotFound:
                continue
            most = session.window.max_turns or self._max_turns
            return _Past(tuple(map(_past_turn, turns)), _total(session), most)
        raise _keeps_changing(name)


def _reply(turn: ContinuationShown) -> str:
    """Say to the user what came of it, or where it stands."""
    if turn.response is not None:
        return turn.response.final_message
    if turn.error is not None:
        return turn.error.message
    if turn.waiting_calls:
        asked = " ".join(f"May I use {call.in_words}?" for call in turn.waiting_calls)
        return f"{asked} Say yes or no."
    if turn.status in UNDER_WAY:
        return "I am still working on it."
    return f"It was {turn.status}."


def _extra(turn: ContinuationShown) -> dict[str, Any]:
    """Return what a program wants to know beside the text."""
    shown = adapter(ContinuationShown).dump_python(turn, mode="json")
    response = shown["response"] or {}
    names = ("continuation_id", "session_id", "status", "artifacts", "waiting_calls", "error")
    told = {name: shown[name] for name in names}
    return told | {"actions": response.get("actions", []), "stopped_by": response.get("stopped_by")}


def _past_turn(turn: Continuation) -> PastTurn:
    answer = None if turn.response is None else turn.response.final_message
    return PastTurn(turn.id, turn.request.message, answer, stamp(turn.created_at), turn.request.metadata)


def _total(session: Session) -> int:
    """Return how many turns a conversation has ever had; a turn that failed is none."""
    stats, before = session.stats, session.context.get(TURNS_BEFORE)
    if not isinstance(before, int):  # It has none, or was imported with something else.
        before = 0
    return before + stats.turns - stats.failed_turns - stats.cancelled_turns


def _keeps_changing(session_id: str) -> SessionChanged:
    return SessionChanged(
        f"session {session_id} is changed by others all the time: try again", session_id=session_id
    )
