"""The runtime's methods for waiting turns: list, cancel, describe, and fire those that are due."""

from typing import Any

from sash.engine.detached import detached
from sash.engine.session_verbs import SessionVerbs
from sash.engine.waiting_text import describe_waiting_turn
from sash.engine.waiting_turns import WaitingTurns
from sash.values.continuations import Continuation
from sash.values.sessions import DEFAULT_OWNER
from sash.values.validation import check_label
from sash.values.waiting_turns import WaitingTurn


class WaitingVerbs(SessionVerbs):
    """Methods for what sessions do later."""

    _waiting_turns: WaitingTurns

    async def list_waiting(
        self, session_id: str | None = None, *, owner: str = DEFAULT_OWNER
    ) -> list[WaitingTurn]:
        """Return the waiting turns of a session or of all sessions of an owner, oldest first."""
        return await self._parts.store.waiting_turns(owner, session_id=session_id)

    @detached
    async def cancel_waiting(self, turn_id: str, *, owner: str = DEFAULT_OWNER) -> WaitingTurn:
        """Cancel a waiting turn and return it.

        Raises:
            WaitingTurnNotFound: it has fired, was cancelled, or never existed.
        """
        return await self._waiting_turns.cancel(owner, check_label("id", turn_id))

    @detached
    async def fire_waiting_turns(self) -> list[Continuation]:
        """Fire the waiting turns that are due now, and return the continuations that they became."""
        return await self._waiting_turns.check()

    def describe_waiting(self, turn: WaitingTurn) -> dict[str, Any]:
        """Return what a waiting turn does and what it waits for, with local times and names of entities."""
        return describe_waiting_turn(turn, self._parts.find_index(), self._parts.local_time.zone)
