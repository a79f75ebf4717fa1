"""Finds the turns of a session that began by themselves, because what the user asked for later was due."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread

from anyio.from_thread import BlockingPortal

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.cli.terminal.portal import call
from sash.errors import SashError
from sash.values.events import Event, FinalEvent, StepEvent
from sash.values.steps import ApprovalRequested, WaitingTurnFired


class FiredTurns:
    """Watches one session at a time. Its own thread calls `show` with each turn that ends or asks something.

    The event loop only reads, so that a slow terminal does not block it.
    """

    def __init__(
        self,
        portal: BlockingPortal,
        service: AgentService,
        caller: Caller,
        show: Callable[[ContinuationShown], None],
    ) -> None:
        self._portal = portal
        self._service = service
        self._caller = caller
        self._show = show
        self._found: SimpleQueue[str | None] = SimpleQueue()
        self._reading: Future[None] | None = None
        self._thread = Thread(target=self._show_all, name="fired turns", daemon=True)

    def watch(self, session_id: str) -> None:
        """Watch a session instead of the one before. What has happened in it already is not shown."""
        self._stop_reading()
        self._reading = self._portal.start_task_soon(self._read, session_id)
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        self._stop_reading()
        self._found.put(None)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, session_id: str) -> None:
        last = await self._service.runtime.store.last_cursor(self._caller.owner, session_id)
        fired: set[str] = set()
        async for event in await self._service.events(self._caller, session_id, last):
            if isinstance(event, StepEvent) and isinstance(event.step.body, WaitingTurnFired):
                fired.add(event.continuation_id)
            elif event.continuation_id in fired and _is_worth_showing(event):
                self._found.put(event.continuation_id)

    def _show_all(self) -> None:
        while (turn_id := self._found.get()) is not None:
            try:
                turn = call(
                    self._portal, self._service.await_continuation(self._caller, turn_id, timeout_s=0)
                )
                self._show(ContinuationShown.of(turn))
            except (SashError, RuntimeError):
                continue  # It was deleted, or the chat ends.


def _is_worth_showing(event: Event) -> bool:
    """Return True if a turn ends or asks for an approval with this event."""
    is_question = isinstance(event, StepEvent) and isinstance(event.step.body, ApprovalRequested)
    return is_question or isinstance(event, FinalEvent)
