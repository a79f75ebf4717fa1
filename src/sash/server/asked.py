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
        turn = (await desk.send_message(caller, session_id, message)).continuation_id
        ending = asyncio.create_task(self._end(desk, caller, session_id, turn))
        self._ending[turn] = ending
        ending.add_done_callback(lambda _: self._ending.pop(turn, None))
        return turn

    async def ended(self, continuation_id: str) -> None:
        """Wait until the session of a question that is answered has ended."""
        if ending := self._ending.get(continuation_id):
            await asyncio.wait([ending])

    async def _end(self, desk: Desk, caller: Caller, session_id: str, continuation_id: str) -> None:
        """End a session when its turn is over; one that is put down, as at the end of the server, goes on later."""
        try:
            async with aclosing(desk.runtime.events(session_id, owner=caller.owner)) as events:  # type: ignore[type-var]
                async for event in events:
                    if event.type == "final":
                        break
                else:
                    return
            await desk.runtime.end_session(session_id, owner=caller.owner)
        except SashError as error:
            _logger.warning("session %s of a question was not ended: %s", session_id, error.message)
