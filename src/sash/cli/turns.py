"""A turn from here to its end: shown as it happens, with a question to the user where it needs a yes."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sash.access import Caller
from sash.cli.beside import Beside
from sash.cli.console import one_line
from sash.cli.screen import Screen
from sash.desk import Desk
from sash.errors import NotAwaitingApproval
from sash.events import Event
from sash.shapes import Approve, ContinuationShown
from sash.steps import Step

MOST_SHOWN = 500
UNDER_WAY = frozenset({"pending", "running", "streaming"})
# What ends a stretch of a turn: somebody has to look where it stands.
_STOPS = frozenset({"approval_requested", "interrupted"})


@dataclass(frozen=True, slots=True)
class Wish:
    """A call that waits for a yes."""

    call_id: str
    name: str
    reason: str
    would: str


Confirm = Callable[[Wish], bool | None]


class Turns:
    """Follows turns at a desk. `confirm` asks for a yes; if it answers None the turn goes on waiting."""

    def __init__(self, beside: Beside, desk: Desk, caller: Caller, screen: Screen, confirm: Confirm) -> None:
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
        wish = next(iter(wishes(turn.steps)), None)
        said = None if wish is None else self._confirm(wish)
        if wish is None or said is None:
            return False
        answer = Approve(call_id=wish.call_id, approved=said)
        with suppress(NotAwaitingApproval):  # somebody else has answered meanwhile
            self._beside.call(self._desk.approve(self._caller, turn.continuation_id, answer))
        return True


def wishes(steps: Iterable[Step]) -> list[Wish]:
    """Return the calls that wait for a yes."""
    waiting: dict[str, Wish] = {}
    for step in steps:
        detail = step.detail
        call_id = str(detail.get("call_id"))
        if detail.get("event") == "approval_requested":
            reason, would = str(detail.get("reason", "")), _written(detail.get("would"))
            waiting[call_id] = Wish(call_id, str(detail.get("name")), reason, would)
        elif detail.get("event") == "approval" or step.type == "tool_result":
            waiting.pop(call_id, None)
    return list(waiting.values())


def _written(would: Any) -> str:
    """Write what a call would do: a service with its entities as a person says it, all else as it is."""
    if isinstance(would, dict) and "service" in would:
        things = ", ".join(map(_thing, would.get("entities") or ()))
        given = json.dumps(would["data"], ensure_ascii=False) if would.get("data") else ""
        return one_line(f"{would['service']} {things} {given}", MOST_SHOWN)
    return one_line(would if isinstance(would, str) else json.dumps(would, ensure_ascii=False), MOST_SHOWN)


def _thing(entity: Any) -> str:
    if not isinstance(entity, dict):
        return str(entity)
    now = f", now {entity['now']}" if "now" in entity else ""
    return f"{entity.get('name') or entity.get('entity_id')} ({entity.get('entity_id')}{now})"
