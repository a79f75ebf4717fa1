"""Questions in sessions of their own: a session ends with its answer, whoever has gone away by then."""

import asyncio
import logging
from contextlib import aclosing

from sash.access import Caller
from sash.desk import Desk
from sash.errors import SashError
from sash.shapes import Ask, SendMessage, StartSession

_logger = logging.getLogger(__name__)


class Asked:
    """The questions whose sessions are still to be ended, by the turn that answers them."""

    def __init__(self) -> None:
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def ask(self, desk: Desk, caller: Caller, question: Ask) -> str:
        """Put a question, and return the turn that answers it."""
        wanted = StartSession(model=question.model, budgets=question.budgets)
        session_id = (await desk.start_session(caller, wanted)).session_id
        message = SendMessage(message=question.message, allow_tools=question.allow_tools)
        try:
            turn = (await desk.send_message(caller, session_id, message)).continuation_id
        except SashError:
            await desk.end_session(caller, session_id)
            raise
        ending = asyncio.create_task(self._end(desk, caller, session_id, turn))
        self._ending[turn] = ending
        ending.add_done_callback(lambda _: self._ending.pop(turn, None))
        return turn

    async def ended(self, continuation_id: str) -> None:
        """Wait until the session of a question that is answered has ended."""
        if ending := self._ending.get(continuation_id):
            await asyncio.wait([ending])

    async def _end(self, desk: Desk, caller: Caller, session_id: str, continuation_id: str) -> None:
        """End a session when its turn is over; one that is only put down goes on later."""
        try:
            if await self._is_over(desk, caller, session_id, continuation_id):
                await desk.runtime.end_session(session_id, owner=caller.owner)
        except SashError as error:
            _logger.warning("session %s of a question was not ended: %s", session_id, error.message)

    async def _is_over(self, desk: Desk, caller: Caller, session_id: str, continuation_id: str) -> bool:
        """Wait for the end of a turn, also while it waits for a yes; False if nobody works here any more."""
        stands = await desk.runtime.await_continuation(continuation_id, owner=caller.owner)
        if stands.continuation.is_final:
            return True
        events = desk.runtime.events(session_id, owner=caller.owner)
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                if event.type == "final" and event.continuation_id == continuation_id:
                    return True
        return False
