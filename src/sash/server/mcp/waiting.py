"""Waiting for a turn, and telling meanwhile what it does; and for what must not stop half way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, TypeVar

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.errors import SashError
from sash.values.events import Event
from sash.values.steps import Step

LONGEST = 120
WRITES = "It writes its answer"

T = TypeVar("T")
Tell = Callable[[str], Awaitable[None]]

_EVENTS = {
    "approval_requested": "It waits for a yes: {name}",
    "interrupted": "It was interrupted",
    "sent_back": "It looks at its answer again",
}


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do something short that is done whole, also for who has gone away meanwhile."""
    return await asyncio.shield(asyncio.create_task(work))


async def wait(
    desk: AgentService, caller: Caller, continuation_id: str, *, wait_ms: int, tell: Tell | None = None
) -> ContinuationShown:
    """Return where a turn stands when it is over or waits for somebody, or when time is up."""
    if tell is None:
        return await desk.await_continuation(caller, continuation_id, wait_ms=wait_ms)
    turn = await desk.await_continuation(caller, continuation_id)
    after = await _begins_after(desk, caller, turn)
    telling = _Telling(continuation_id, after, tell)
    events = await desk.events(caller, turn.session_id, after)
    listening = asyncio.create_task(telling.listen(events))
    try:
        turn = await desk.await_continuation(caller, continuation_id, wait_ms=wait_ms)
        await telling.finish_sentence()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    await telling.catch_up(turn.steps)
    return turn


async def _begins_after(desk: AgentService, caller: Caller, turn: ContinuationShown) -> int:
    """Return a cursor in front of a turn; not far in front of it, for a session may be long."""
    if turn.steps:
        return turn.steps[0].cursor - 1
    newest = await desk.runtime.list_turns(turn.session_id, owner=caller.owner, limit=1)
    steps = (await desk.await_continuation(caller, newest[0].id)).steps if newest else ()
    return max((step.cursor for step in steps), default=0)


class _Telling:
    """What is told of a turn: what it says that it does, and each step of which it has not said so."""

    def __init__(self, continuation_id: str, after: int, tell: Tell) -> None:
        self._continuation_id = continuation_id
        self._told = after
        self._said: set[str] = set()
        self._talks = asyncio.Lock()
        self._tell = tell

    async def listen(self, events: AsyncIterator[Event]) -> None:
        """Tell of what happens, as it does."""
        try:
            async with aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    if event.continuation_id == self._continuation_id:
                        async with self._talks:
                            await self._tell_of(event)
        except SashError:
            pass  # who waits for the turn is told

    async def finish_sentence(self) -> None:
        """Let what is being told be told, and nothing more as it happens."""
        await self._talks.acquire()

    async def catch_up(self, steps: Iterable[Step]) -> None:
        """Tell of the steps that nobody was told of."""
        for step in steps:
            await self._step(step.cursor, step.type, step.detail)

    async def _tell_of(self, event: Event) -> None:
        if event.type == "progress":
            await self._say(event.payload["message"])
        elif event.type == "partial" and WRITES not in self._said:
            await self._say(WRITES)
        elif event.cursor is not None:
            step = event.payload["step"]
            await self._step(event.cursor, step["type"], step["detail"])

    async def _step(self, cursor: int, kind: str, detail: dict[str, Any]) -> None:
        if cursor > self._told:
            self._told = cursor
            words = in_words(kind, detail)
            if words and words not in self._said:
                await self._say(words)

    async def _say(self, words: str) -> None:
        self._said.add(words)
        await self._tell(words[:LONGEST])


def in_words(kind: str, detail: dict[str, Any]) -> str:
    """Say what a step is; nothing, if it is none of anybody's business."""
    match kind:
        case "tool_call":
            return f"Calling {detail.get('name')}"
        case "tool_result":
            return f"{detail.get('name')} has answered"
        case "retrieval":
            return "Recalled what was said before"
        case "observed_event":
            return _EVENTS.get(str(detail.get("event")), "").format(name=detail.get("name"))
    return ""
