"""The rules of waiting turns."""

from collections.abc import Collection

from sash.errors import TooManyWaitingTurns
from sash.ports.session_rules import check_active
from sash.stores.rules import record_errors
from sash.values.continuations import Continuation
from sash.values.sessions import Session
from sash.values.waiting_turns import MAX_WAITING_TURNS, WaitingTurn


def find_same(turn: WaitingTurn, known: Collection[WaitingTurn]) -> WaitingTurn | None:
    """Return the waiting turn that the same tool call has registered before, or None."""
    if turn.asked_in is None:
        return None
    return next((other for other in known if other.asked_in == turn.asked_in), None)


def check_room(session: Session, known: Collection[WaitingTurn]) -> None:
    """Raise if a session takes no more waiting turns. `known` are those that it has."""
    check_active(session)
    if len(known) >= MAX_WAITING_TURNS:
        raise TooManyWaitingTurns(
            f"{MAX_WAITING_TURNS} things wait in session {session.id}, the maximum: cancel some first",
            session_id=session.id,
            limit=MAX_WAITING_TURNS,
        )


def check_firing(new: Continuation, existing: Continuation | None, is_waiting: bool) -> None:
    """Raise `WaitingTurnNotFound` if `new` fires a waiting turn that is gone, and that has not fired before.

    `existing` is the continuation with the same key.
    """
    if new.request.fires is not None and existing is None and not is_waiting:
        record_errors.raise_waiting_turn_not_found(new.request.fires)
