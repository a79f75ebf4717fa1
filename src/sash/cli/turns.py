"""A turn from here to its end: shown as it happens, with a question to the user where it needs a yes."""

from collections.abc import Callable
from contextlib import suppress

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown, WaitingCall
from sash.app.service import AgentService
from sash.cli.beside import Beside
from sash.cli.screen import Screen
from sash.errors import NotAwaitingApproval
from sash.values.continuations import UNDER_WAY
from sash.values.events import Event
from sash.values.requests import Approve

# What ends a stretch of a turn: somebody has to look where it stands.
_STOPS = frozenset({"approval_requested", "interrupted"})


Confirm = Callable[[WaitingCall], bool | None]


class Turns:
    """Follows turns at a desk. `confirm` asks for a yes; if it answers None the turn goes on waiting."""

    def __init__(
        self, beside: Beside, desk: AgentService, caller: Caller, screen: Screen, confirm: Confirm
    ) -> None:
        self._beside = beside
        self._desk = desk
        self._caller = caller
        self._screen = screen
        self._confirm = confirm
        self._cursors: dict[str, int] = {}

    def stand(self, continuation_id: str) -> ContinuationShown:
        """Return where a turn stands."""
        return self._beside.call(self._desk.await_continuation(self._caller, continuation_id))

    def start_behind(self, session_id: str, continuation_id: str | None) -> None:
        """Take what happened in a session until the end of a turn as seen."""
        steps = self.stand(continuation_id).steps if continuation_id is not None else ()
        self._cursors[session_id] = max((step.cursor for step in steps), default=0)

    def take_up(self, turn: ContinuationShown) -> ContinuationShown:
        """Go on with a turn that waits for a yes, as far as there is one."""
        return self.follow(turn.session_id, turn.continuation_id) if self._answer(turn) else turn

    def follow(self, session_id: str, continuation_id: str) -> ContinuationShown:
        """Show a turn until it is over, or waits for somebody else; return where it stands then."""
        while True:
            with self._screen.waiting():
                self._show(session_id, continuation_id)
            turn = self.stand(continuation_id)
            if turn.status == "awaiting_approval":
                if not self._answer(turn):
                    return turn
            elif turn.status not in UNDER_WAY:
                return turn

    def _show(self, session_id: str, continuation_id: str) -> None:
        """Show what happens in a turn until it is over or stops."""
        after = self._cursors.get(session_id, 0)
        events = self._beside.call(self._desk.events(self._caller, session_id, after))
        for event in self._beside.each(events):
            self._cursors[session_id] = event.cursor or self._cursors.get(session_id, 0)
            if event.continuation_id == continuation_id and not self._go_on(event):
                return

    def _go_on(self, event: Event) -> bool:
        if event.type == "progress":
            self._screen.wait(event.payload["message"])
        elif event.type == "partial":
            self._screen.partial(event.payload["partial_response"])
        elif event.type == "step":
            step = event.payload["step"]
            self._screen.step(step["type"], step["detail"])
            return step["detail"].get("event") not in _STOPS
        return event.type != "final"

    def _answer(self, turn: ContinuationShown) -> bool:
        """Get an answer to the first call that waits for one; False if there is none to be had."""
        call = next(iter(turn.waiting_calls), None)
        said = None if call is None else self._confirm(call)
        if call is None or said is None:
            return False
        answer = Approve(call_id=call.call_id, approved=said)
        with suppress(NotAwaitingApproval):  # somebody else has answered meanwhile
            self._beside.call(self._desk.approve(self._caller, turn.continuation_id, answer))
        return True
