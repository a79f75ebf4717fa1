"""Seed 001's conversations, kept by a runtime: durable, one window for each owner and conversation id.

A conversation is a session that has the conversation's id for its name. It knows no HTTP: each verb returns
the JSON object of its route.
"""

from dataclasses import dataclass
from typing import Any

from sash.checks import check_conversation_id
from sash.conversation import PastTurn, as_dicts, as_text, check_max_turns, check_newest, stamp
from sash.errors import ContinuationNotFound, SessionBusy, SessionEnded, SessionExists, SessionNotFound
from sash.runtime import Runtime
from sash.sessions import Session, WindowLimits
from sash.steps import Continuation
from sash.store import keeps_changing

# Under this key a session's context has how many turns the conversation had before it.
TURNS_BEFORE = "turns_before"
# Others may clear a conversation while somebody adds to it, but not for ever.
MOST_TRIES = 10


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

    def __init__(self, runtime: Runtime, max_turns: int = 10) -> None:
        self._runtime = runtime
        self._max_turns = check_max_turns(max_turns)

    async def session(self, owner: str, conversation_id: str) -> Session:
        """Return the active session of a conversation, begun if there is none, and woken if it has expired."""
        name = check_conversation_id(conversation_id)
        for _ in range(MOST_TRIES):
            found = await self._runtime.find_session(name, owner=owner)
            if found is not None and found.status == "active":
                return found
            try:
                if found is not None and found.status == "expired":
                    return await self._runtime.reopen_session(found.id, owner=owner)
                return await self._begin(owner, name, 0 if found is None else _total(found))
            except (SessionExists, SessionNotFound, SessionEnded):
                continue  # somebody else was faster
        raise keeps_changing(name)

    async def add_turn(
        self,
        owner: str,
        conversation_id: str,
        user_message: str,
        ai_response: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Add a turn; the oldest is pushed out of the window if that is full."""
        turn = await self._record(owner, conversation_id, user_message, ai_response, metadata)
        past = await self._past(owner, conversation_id)
        return {
            "status": "success",
            "turn_id": turn.id,
            "message": "Conversation turn added successfully",
            "statistics": past.counts,
        }

    async def history(
        self, owner: str, conversation_id: str, *, format_text: bool = False, include_metadata: bool = True
    ) -> dict[str, Any]:
        """Return the turns in the window, oldest first; with `format_text` as one text to read."""
        past = await self._past(owner, conversation_id)
        render = as_text if format_text else as_dicts
        return {
            "turns": render(past.turns, include_metadata),
            "total_turns": len(past.turns),
            "max_turns": past.max_turns,
            "total_turns_ever": past.total,
            "oldest_turn_timestamp": past.oldest,
            "newest_turn_timestamp": past.newest,
        }

    async def stats(self, owner: str, conversation_id: str) -> dict[str, Any]:
        """Return how many turns there are, were, and are gone."""
        past = await self._past(owner, conversation_id)
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

    async def recent(self, owner: str, conversation_id: str, n: int = 5) -> dict[str, Any]:
        """Return the `n` newest turns, oldest of them first."""
        check_newest(n)
        turns = (await self._past(owner, conversation_id)).turns
        newest = as_dicts(turns[max(0, len(turns) - n) :])
        return {"status": "success", "recent_turns": newest, "count": len(newest), "requested": n}

    async def update(
        self, owner: str, conversation_id: str, turn_id: str, ai_response: str
    ) -> dict[str, Any]:
        """Set the answer of a turn in the window, as when it was streamed."""
        found = await self._runtime.find_session(check_conversation_id(conversation_id), owner=owner)
        turns = [] if found is None else await self._runtime.list_turns(found.id, owner=owner)
        if all(turn.id != turn_id for turn in turns):
            raise ContinuationNotFound(
                f"no turn {turn_id} in the window of conversation {conversation_id}", continuation_id=turn_id
            )
        await self._runtime.amend_turn(turn_id, ai_response, owner=owner)
        return {"status": "success", "turn_id": turn_id, "message": "AI response updated successfully"}

    async def clear(self, owner: str, conversation_id: str) -> dict[str, Any]:
        """Delete all that was said in a conversation, for good; how many turns it had is still known."""
        name, runtime = check_conversation_id(conversation_id), self._runtime
        found = await runtime.find_session(name, owner=owner)
        existed, total = found is not None, 0 if found is None else _total(found)
        while found is not None:
            await runtime.delete_session(found.id, owner=owner)
            found = await runtime.find_session(name, owner=owner)
        if existed:
            await self._begin(owner, name, total)
        return {"status": "success", "message": "Conversation history cleared", "total_turns_ever": total}

    async def _begin(self, owner: str, name: str, turns_before: int) -> Session:
        limits = WindowLimits(max_tokens=None, max_turns=self._max_turns, evict_to=1.0)
        context = {TURNS_BEFORE: turns_before} if turns_before else None
        return await self._runtime.start_session(owner=owner, name=name, window=limits, context=context)

    async def _record(self, owner: str, conversation_id: str, *said: Any) -> Continuation:
        raise NotImplementedError

    async def _past(self, owner: str, conversation_id: str) -> _Past:
        raise NotImplementedError


def _total(session: Session) -> int:
    """Return how many turns a conversation has ever had; a turn that failed is none."""
    stats, before = session.stats, session.context.get(TURNS_BEFORE, 0)
    return int(before) + stats.turns - stats.failed_turns - stats.cancelled_turns
