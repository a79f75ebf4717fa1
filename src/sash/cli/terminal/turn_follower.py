"""Follows a turn to its end: shows its events and asks the user for approvals."""

from collections.abc import Callable
from contextlib import suppress

from anyio.from_thread import BlockingPortal

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.cli.terminal.portal import call, iterate
from sash.cli.terminal.turn_view import TurnView
from sash.errors import NotAwaitingApproval
from sash.values.continuations import UNDER_WAY
from sash.values.events import Event, FinalEvent, PartialEvent, ProgressEvent, StepEvent
from sash.values.requests import Approve
from sash.values.steps import ApprovalRequested, Interrupted

Confirm = Callable[[ContinuationShown], bool | None]


class TurnFollower:
    """Follows turns of a service. If `confirm` returns None, the turn keeps waiting for its approval."""

    def __init__(
        self, portal: BlockingPortal, service: AgentService, caller: Caller, view: TurnView, confirm: Confirm
    ) -> None:
        self._portal = portal
        self._service = service
        self._caller = caller
        self._view = view
        self._confirm = confirm
        self._cursors: dict[str, int] = {}

    def get_turn(self, continuation_id: str) -> ContinuationShown:
        """Return the current state of a turn."""
        turn = call(self._portal, self._service.await_continuation(self._caller, continuation_id))
        return ContinuationShown.of(turn)

    def skip_events(self, session_id: str, continuation_id: str | None) -> None:
        """Do not show the session's events up to the last step of this turn. None skips no events."""
        steps = self.get_turn(continuation_id).steps if continuation_id is not None else ()
        self._cursors[session_id] = max((step.cursor for step in steps), default=0)

    def follow(self, session_id: str, continuation_id: str) -> ContinuationShown:
        """Show a turn until it ends, is interrupted or gets no approval from the user. Return its state."""
        while True:
            with self._view.show_activity():
                self._show_events(session_id, continuation_id)
            turn = self.get_turn(continuation_id)
            if turn.status == "awaiting_approval":
                return self.ask_and_follow(turn)
            if turn.status not in UNDER_WAY:
                return turn

    def _show_events(self, session_id: str, continuation_id: str) -> None:
        """Show the events of a turn until it ends, is interrupted or waits for an approval."""
        after = self._cursors.get(session_id, 0)
        events = call(self._portal, self._service.events(self._caller, session_id, after))
        for event in iterate(self._portal, events):
            self._cursors[session_id] = event.cursor or self._cursors.get(session_id, 0)
            if event.continuation_id == continuation_id and not self._show_event(event):
                return

    def _show_event(self, event: Event) -> bool:
        """Show an event. Return False if the turn ends, is interrupted or waits with it."""
        match event:
            case ProgressEvent(message=message):
                self._view.update_activity(message)
            case PartialEvent(text=text):
                self._view.show_partial(text)
            case StepEvent(step=step):
                self._view.show_step(step.body)
                return not isinstance(step.body, ApprovalRequested | Interrupted)
            case FinalEvent():
                return False
        return True

    def answer(self, turn: ContinuationShown, approved: bool) -> ContinuationShown:
        """Approve or deny all waiting calls of a turn, and follow it. Return its state."""
        for waiting in turn.waiting_calls:
            given = Approve(call_id=waiting.call_id, approved=approved)
            with suppress(NotAwaitingApproval):  # Another client answered in the meantime.
                call(self._portal, self._service.approve(self._caller, turn.continuation_id, given))
        return self.follow(turn.session_id, turn.continuation_id)

    def ask_and_follow(self, turn: ContinuationShown) -> ContinuationShown:
        """Ask for the approval of a turn, and follow the turn if there is an answer. Return its state."""
        approved = self._confirm(turn)
        return turn if approved is None else self.answer(turn, approved)
