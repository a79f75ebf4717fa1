"""Talks with Sash without a model, and measures how long its turns take."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Any

from sash.app.approval_question import write_question
from sash.engine.runtime import Runtime
from sash.models.offline import OfflineModel
from sash.ports.intents import Dialogue, Intents, Utterance
from sash.ports.model import Answer
from sash.stores.memory import MemoryStore
from sash.values.continuations import Continuation
from sash.values.requests import SendMessage
from sash.values.sessions import SessionPolicy
from sash.values.waiting_turns import WaitingTurn
from tests.answers.table import Case

FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), max_actions_per_minute=None)
WAIT_S = 30
Wrap = Callable[[Intents], Intents]


@dataclass
class TurnTimes:
    """The times of local turns in milliseconds, and the part of each in which the sentence was understood."""

    turns_ms: list[float] = field(default_factory=list)
    understanding_ms: list[float] = field(default_factory=list)
    spent_ms: float = 0.0

    def end_turn(self, took_ms: float, *, is_local: bool) -> None:
        """Record the time of a turn if no model was asked."""
        if is_local:
            self.turns_ms.append(took_ms)
            self.understanding_ms.append(self.spent_ms)
        self.spent_ms = 0.0

    @property
    def median_turn_ms(self) -> float | None:
        return median(self.turns_ms) if self.turns_ms else None

    @property
    def median_understanding_ms(self) -> float | None:
        return median(self.understanding_ms) if self.understanding_ms else None

    def describe(self) -> str:
        """Return the medians in a few words."""
        if not self.turns_ms:
            return "no turn was measured"
        return (
            f"median time of a local turn {self.median_turn_ms:.1f} ms,"
            f" of which {self.median_understanding_ms:.1f} ms to understand the sentence"
        )


class TimedIntents:
    """Intents that add the time of their work to `TurnTimes`."""

    def __init__(self, intents: Intents, times: TurnTimes) -> None:
        self._intents = intents
        self._times = times

    async def understand(self, utterance: Utterance) -> Answer | None:
        started = time.perf_counter()
        try:
            return await self._intents.understand(utterance)
        finally:
            self._times.spent_ms += (time.perf_counter() - started) * 1000


class WithoutFollowUps:
    """Intents that do not learn what earlier answers were about. They show which answers need it."""

    def __init__(self, intents: Intents) -> None:
        self._intents = intents

    async def understand(self, utterance: Utterance) -> Answer | None:
        return await self._intents.understand(replace(utterance, dialogue=_WithoutTopics(utterance.dialogue)))


class _WithoutTopics:
    """A dialogue whose turns have lost their topics. Everything else about it is as it was."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialogue, name)

    async def list_recent(self, limit: int) -> list[Continuation]:
        turns = await self._dialogue.list_recent(limit)
        return [
            replace(turn, response=turn.response and replace(turn.response, topic=None)) for turn in turns
        ]


class TalkRuntime(Runtime):
    """A runtime with the offline model. It measures its turns, and `wrap` is put around its intents."""

    def __init__(self, times: TurnTimes, wrap: Wrap | None = None, **options: Any) -> None:
        self.times = times
        self._wrap = wrap
        store = MemoryStore(clock=options["clock"]) if "clock" in options else MemoryStore()
        super().__init__(store, OfflineModel(), **options)

    def _default_intents(self) -> tuple[Intents, ...]:
        found = super()._default_intents()
        wrapped = found if self._wrap is None else tuple(map(self._wrap, found))
        return tuple(TimedIntents(each, self.times) for each in wrapped)


class SashTalk:
    """One conversation with Sash. Its session is new, and belongs to an owner of its own."""

    def __init__(self, runtime: TalkRuntime, case: Case) -> None:
        self._runtime = runtime
        self._case = case
        self._owner = f"person-{case.id}"
        self._session_id: str | None = None

    async def say(self, text: str) -> str:
        """Say a sentence, and return the answer or the question for an approval."""
        owner = self._owner
        if self._session_id is None:
            self._session_id = (await self._runtime.start_session(owner=owner, policy=FREE)).id
        sent = SendMessage(message=text, language=self._case.language, area=self._case.area)
        started = time.perf_counter()
        turn = await self._runtime.reply(self._session_id, sent, owner=owner)
        result = await self._runtime.await_continuation(turn.id, owner=owner, timeout_s=WAIT_S)
        took_ms, stats = (time.perf_counter() - started) * 1000, result.continuation.stats
        self._runtime.times.end_turn(took_ms, is_local=stats is None or stats.local_turns > 0)
        if result.status == "awaiting_approval":
            return write_question(result.waiting_calls, self._case.language)
        return (result.response.final_message if result.response else "") or ""

    async def fire(self) -> None:
        """Let the turns that are due now run, and wait until they have ended."""
        await self._runtime.fire_waiting_turns()
        await self._runtime.wait_for_turns()

    async def list_waiting(self) -> tuple[str, ...]:
        """Return a description of each turn that waits."""
        found = await self._list_waiting_turns()
        return tuple(" ".join(_describe(self._runtime.describe_waiting(turn))) for turn in found)

    async def list_due_times(self) -> list[datetime]:
        """Return the times at which turns that wait are due, as far as they are known."""
        return [turn.due_at for turn in await self._list_waiting_turns() if turn.due_at is not None]

    async def _list_waiting_turns(self) -> list[WaitingTurn]:
        if self._session_id is None:
            return []
        return await self._runtime.list_waiting(self._session_id, owner=self._owner)

    async def end(self) -> None:
        """End the session, with everything that it still waits for."""
        for turn in await self._list_waiting_turns():
            await self._runtime.cancel_waiting(turn.id, owner=self._owner)
        if self._session_id is not None:
            await self._runtime.end_session(self._session_id, owner=self._owner)


def _describe(waiting: dict[str, Any]) -> Iterator[str]:
    """Yield what a waiting turn does, the time or the state that it waits for, and its conditions."""
    yield waiting["summary"]
    yield from (waiting[name] for name in ("at", "when") if name in waiting)
    yield from waiting.get("only_if", ())
