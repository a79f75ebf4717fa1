"""Brings a real Home Assistant into the states of a case, and restores it afterwards."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sash.home.remote.websocket import RequestRefused
from sash.ports.home import NO_STATE, State
from tests.answers.house_connection import HouseConnection, find_changed

ATTEMPTS = 4
# A cover of the house needs ten seconds from one end to the other.
MOVED_BACK_WITHIN_S = 15.0
# They hold the time of their last use, which nothing brings back and nothing depends on.
TIMESTAMPS = frozenset({"automation", "button", "input_button", "scene", "script"})
# Home Assistant reproduces the states of all other domains. The alarm of the house has a code.
SERVICES: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("valve", "open"): ("valve.open_valve", {}),
    ("valve", "closed"): ("valve.close_valve", {}),
    ("alarm_control_panel", "disarmed"): ("alarm_control_panel.alarm_disarm", {"code": "1234"}),
}


class HouseStates:
    """Sets states through services, so that the entities themselves have them.

    `unrestored` are the entities that did not come back to their state from the start.
    """

    def __init__(self, connection: HouseConnection) -> None:
        self._connection = connection
        self._at_start: dict[str, State] = {}
        self._lit: dict[str, State] = {}
        self.unrestored: set[str] = set()

    async def remember(self) -> None:
        """Remember the present states as those that `restore` brings back.

        A light that is off does not tell its colour, so each is turned on for a moment.
        """
        self._at_start = await self._connection.settle()
        dark = [s for s in self._at_start.values() if s.domain == "light" and s.state == "off"]
        await asyncio.gather(*(self._apply(replace(state, state="on", attributes={})) for state in dark))
        now = await self._connection.settle()
        self._lit = {entity_id: state for entity_id, state in now.items() if state.domain == "light"}
        await asyncio.gather(*(self._apply(state) for state in dark))
        await self._connection.settle()
        self._connection.touched.clear()

    async def set(self, wanted: Mapping[str, str]) -> None:
        """Bring entities into these states. Raise `RuntimeError` if the house does not follow."""
        for _ in range(ATTEMPTS):
            states = await self._connection.settle()
            # An automation may have changed one of them again.
            missing = [
                State(each, state, {}, states[each].changed_at, states[each].updated_at)
                for each, state in wanted.items()
                if states[each].state != state
            ]
            if not missing:
                return
            await asyncio.gather(*(self._apply(state) for state in missing))
        raise RuntimeError(f"the house does not follow: {', '.join(each.entity_id for each in missing)}")

    async def restore(self) -> None:
        """Bring back everything that was touched. Attributes are tried once: a house cannot reproduce all."""
        for attempt in range(ATTEMPTS):
            touched = {each for each in self._connection.touched if each.partition(".")[0] not in TIMESTAMPS}
            lights = [state for each in touched if (state := self._lit.get(each)) is not None]
            await asyncio.gather(*(self._apply(state) for state in lights))
            states = await self._connection.settle(MOVED_BACK_WITHIN_S)
            changed = find_changed(self._at_start, states) & touched
            if attempt:
                changed = frozenset(e for e in changed if states[e].state != self._at_start[e].state)
            if not changed:
                break
            await asyncio.gather(*(self._apply(self._at_start[each]) for each in changed))
        else:
            states = await self._connection.settle(MOVED_BACK_WITHIN_S)
            self.unrestored |= {each for each in changed if states[each].state != self._at_start[each].state}
        self._connection.touched.clear()

    async def _apply(self, wanted: State) -> None:
        """Ask the house for a state. What it refuses shows in the next comparison."""
        if wanted.state in NO_STATE:
            return
        with suppress(RequestRefused):
            if service := SERVICES.get((wanted.domain, wanted.state)):
                await self._connection.call(service[0], entity_id=wanted.entity_id, **service[1])
            else:
                entity = {**wanted.attributes, "state": wanted.state}
                await self._connection.call("scene.apply", entities={wanted.entity_id: entity})
