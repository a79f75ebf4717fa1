"""The earlier turns of a session, for the intents that answer a sentence which refers to them."""

from datetime import datetime

from sash.engine.notes import Notes
from sash.engine.past_actions import explain_newest
from sash.engine.turn.said_messages import SaidMessages
from sash.ports.intents import SaidMessage, SaidSearch
from sash.ports.store import Store
from sash.values.action_explanation import ActionExplanation
from sash.values.continuations import Continuation, Status
from sash.values.sessions import Session
from sash.values.waiting_turns import WaitingTurn

# The turns before the present one that are read to find those of a stretch of time.
MAX_TURNS = 200
_ANSWERED: frozenset[Status] = frozenset({"completed"})
_CANCELLED: frozenset[Status] = frozenset({"cancelled"})


class SessionDialogue:
    """Reads the turns of a session before a given one, and its notes. It implements the port `Dialogue`."""

    def __init__(self, store: Store, turn: Continuation, session: Session, notes: Notes) -> None:
        self._store = store
        self._turn = turn
        self._session = session
        self._notes = notes
        self._said = SaidMessages(store, turn.owner, turn.session_id, session.memory.reset_at)
        self._recent: list[Continuation] | None = None

    async def list_recent(self, limit: int) -> list[Continuation]:
        """Return the newest completed turns, oldest of them first."""
        if self._recent is None or len(self._recent) < limit:
            found = await self._read(limit)
            self._recent = found[::-1]
        return self._recent[-limit:]

    async def list_cancelled(self, limit: int) -> list[Continuation]:
        """Return the newest turns that were cancelled, for example because the user said something else.

        The oldest of them is first.
        """
        return (await self._read(limit, _CANCELLED))[::-1]

    async def list_between(self, start: datetime, end: datetime, limit: int) -> list[Continuation]:
        """Return the first completed turns of a stretch of time, oldest first."""
        turns = await self._read(MAX_TURNS)
        return [turn for turn in reversed(turns) if start <= turn.created_at < end][:limit]

    async def list_said(self, limit: int) -> list[SaidMessage]:
        """Return the newest messages of the user in the transcript, oldest of them first."""
        return await self._said.list_newest(limit)

    async def list_said_between(self, start: datetime | None, end: datetime) -> list[SaidMessage]:
        """Return what the user said in a time, oldest first. Of a long time, only parts of it are read."""
        return await self._said.list_between(start, end)

    async def search_said(self, question: str, language: str, now: datetime) -> SaidSearch:
        """Find the messages of the user that have the words of a question."""
        return await self._said.search(question, language, now)

    async def find_last_answer(self) -> str:
        """Return the last answer in the transcript; empty without one."""
        return await self._said.find_last_answer()

    async def explain_action(self, entity_id: str | None = None) -> ActionExplanation | None:
        """Explain the newest action of the session, or the owner's newest action on one entity."""
        session_id = None if entity_id else self._turn.session_id
        return await explain_newest(self._store, [self._turn.owner], entity_id, session_id)

    async def list_waiting(self) -> list[WaitingTurn]:
        """Return what waits to be done or told in the session, oldest first."""
        return await self._store.waiting_turns(self._turn.owner, session_id=self._turn.session_id)

    async def list_facts(self) -> list[str]:
        """Return the noted facts that the owner or the session knows, the newest last."""
        known = await self._notes.read_known(self._turn.owner)
        facts = sorted((*known.facts, *self._session.memory.facts), key=lambda fact: fact.changed_at)
        return list(dict.fromkeys(fact.text for fact in facts))

    async def _read(self, limit: int, statuses: frozenset[Status] = _ANSWERED) -> list[Continuation]:
        """Return the newest turns with such a status before the present one, newest first."""
        return await self._store.recent_continuations(
            self._turn.owner,
            session_id=self._turn.session_id,
            before=self._turn.id,
            statuses=statuses,
            limit=limit,
        )
