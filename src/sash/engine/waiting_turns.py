"""Watches the clock and the home for the waiting turns of the store, and fires those that are due.

A waiting turn fires when the store turns it into a continuation, in one write. So it fires exactly once,
whatever crashes, and however many processes watch it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from sash.engine.parts import Parts
from sash.engine.turn.fired_turn import write_message
from sash.engine.worker import Worker
from sash.errors import SashError, SessionEnded, SessionNotFound, ShuttingDown, WaitingTurnNotFound
from sash.ports.home import State, StateChanged
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.waiting_turns import FiredTurn, StateCondition, WaitingTurn

# Seconds between two looks at the clock. It may be set, and the machine may sleep, so no timer runs longer.
TICK_S = 1.0
# A waiting turn that needs the home waits this long for it. Then it fires anyway, and reports the failure.
HOME_WAIT = timedelta(minutes=15)

_logger = logging.getLogger(__name__)


class WaitingTurns:
    """The waiting turns that this process watches.

    A short-lived process watches only those that it has added itself: another one continues the others.
    """

    def __init__(self, parts: Parts, worker: Worker) -> None:
        self._parts = parts
        self._worker = worker
        self._known: dict[str, WaitingTurn] = {}
        self._changed: set[str] = set()
        self._failed: set[str] = set()
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._opened_at = parts.clock.now()
        self._unwatch: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Start to watch the home."""
        self._opened_at = self._parts.clock.now()
        self._known.clear()
        self._changed.clear()
        self._wake.clear()
        if self._parts.home is not None:
            self._unwatch = self._parts.home.watch(self._on_state)

    def close(self) -> None:
        self._unwatch()

    async def add(self, turn: WaitingTurn) -> WaitingTurn:
        """Store a waiting turn, watch it, and return it: the stored one, if its call is repeated."""
        async with self._lock:
            added = await self._parts.store.add_waiting_turn(self._prepare(turn))
            self._known[added.id] = added
        self._wake.set()
        return added

    async def cancel(self, owner: str, turn_id: str) -> WaitingTurn:
        """Cancel a waiting turn and return it. Raise `WaitingTurnNotFound` if it has fired."""
        cancelled = await self._parts.store.cancel_waiting_turn(owner, turn_id)
        self._known.pop(turn_id, None)
        return cancelled

    async def reload(self) -> None:
        """Watch what the store has: other processes add, cancel and fire waiting turns, too."""
        async with self._lock:
            stored = {turn.id: turn for turn in await self._parts.store.waiting_turns()}
            self._known = {key: self._known.get(key, turn) for key, turn in stored.items()}
        self._wake.set()

    async def check(self) -> list[Continuation]:
        """Fire the waiting turns that are due, the oldest first, and return the continuations."""
        async with self._lock:
            self._look_at_home()
            await self._save_changes()
            now = self._parts.clock.now()
            due = sorted(
                (at, turn.id) for turn in self._known.values() if (at := turn.fires_at) and at <= now
            )
            fired = [await self._fire(self._known[turn_id], now) for _, turn_id in due]
        return [continuation for continuation in fired if continuation is not None]

    async def run(self) -> None:
        """Fire waiting turns when they are due, without end."""
        while True:
            try:
                await self.check()
            except Exception as error:
                _logger.warning("the waiting turns cannot be watched: %s", error)
            # Without any waiting turn there is nothing to look at until one is added.
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S if self._known else None):
                    await self._wake.wait()
            self._wake.clear()

    def _prepare(self, turn: WaitingTurn) -> WaitingTurn:
        """Return a new waiting turn, with the time at which it is due, or with the state as it is now."""
        if turn.when is None:
            return replace(turn, due_at=turn.at)
        state = self._find_state(turn.when)
        is_so = state is not None and turn.when.is_met(state.state)
        return replace(turn, status="already_so") if is_so else turn

    def _find_state(self, condition: StateCondition) -> State | None:
        index = self._parts.find_index()
        return None if index is None else index.states.get(condition.entity_id)

    def _on_state(self, event: StateChanged) -> None:
        """Note a change at once: a state may last shorter than the time between two looks."""
        state = event.state
        if state is None:
            return
        for turn in tuple(self._known.values()):
            if turn.when is not None and turn.when.entity_id == event.entity_id:
                self._follow(turn, state, self._parts.clock.now())

    def _look_at_home(self) -> None:
        """Compare the conditions with the states: there are no events while the home is not connected."""
        for turn in tuple(self._known.values()):
            if turn.when is not None and (state := self._find_state(turn.when)) is not None:
                # A state from before this process has begun to watch, or while the home was away.
                self._follow(turn, state, max(turn.created_at, state.changed_at))

    def _follow(self, turn: WaitingTurn, state: State, since: datetime) -> None:
        """Note that an entity has this state `since` then."""
        when, now = turn.when, self._parts.clock.now()
        if when is None or not when.is_known(state.state):
            return
        is_met, changed = when.is_met(state.state), turn
        if turn.status == "already_so":
            changed = turn if is_met else replace(turn, status="waiting")
        elif is_met and turn.due_at is None:
            changed = replace(turn, due_at=min(since, now) + timedelta(seconds=when.for_s))
        elif not is_met and turn.due_at is not None and turn.due_at > now:
            changed = replace(turn, due_at=None)
        if changed is not turn:
            self._known[turn.id] = changed
            self._changed.add(turn.id)
            self._wake.set()

    async def _save_changes(self) -> None:
        """Store the changes, so that the next process knows how long a condition is met."""
        for turn_id in tuple(self._changed):
            turn = self._known.get(turn_id)
            try:
                if turn is not None:
                    await self._parts.store.change_waiting_turn(turn)
            except WaitingTurnNotFound:
                self._known.pop(turn_id, None)
            self._changed.discard(turn_id)

    async def _fire(self, turn: WaitingTurn, now: datetime) -> Continuation | None:
        """Let a waiting turn become a continuation. Return None if it goes on waiting, or is gone."""
        is_home_missing = (
            turn.needs_home and self._parts.home is not None and self._parts.find_index() is None
        )
        due_at = turn.due_at or now
        if is_home_missing and now - max(due_at, self._opened_at) < HOME_WAIT:
            return None
        message = write_message(turn, turn.language)
        request = ContinuationRequest(
            message,
            idempotency_key=turn.key,
            area=turn.area,
            language=turn.language,
            caller=turn.caller,
            fired=FiredTurn(turn, was_down=due_at < self._opened_at),
        )
        new = Continuation(self._parts.new_id(), turn.session_id, turn.owner, "running", now, now, request)
        try:
            begun = await self._worker.begin(new, "enqueue")
        except (WaitingTurnNotFound, SessionNotFound):
            begun = None
        except SessionEnded:
            with suppress(WaitingTurnNotFound):
                await self._parts.store.cancel_waiting_turn(turn.owner, turn.id)
            begun = None
        except ShuttingDown:
            return None
        except SashError as error:  # The queue is full, or the store fails: try again at the next look.
            if turn.id not in self._failed:
                _logger.warning("waiting turn %s cannot fire now: %s", turn.id, error.message)
            self._failed.add(turn.id)
            return None
        self._known.pop(turn.id, None)
        self._failed.discard(turn.id)
        # Another process may have fired it before.
        return begun if begun is not None and begun.id == new.id else None
