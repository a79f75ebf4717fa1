"""A connection to a real Home Assistant that sees its service calls and its changes."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

from sash.home.home_assistant.home_assistant_json import read_state
from sash.home.remote.websocket import HomeAssistantSocket, Timing, make_session
from sash.ports.home import State
from tests.answers.judge import READING
from tests.ha.instance import House

NAME = "the house of the table"
# Without events for this long, all effects of a call have arrived, unless something moves.
QUIET_S = 0.05
MOVED_WITHIN_S = 4.0
MOVING = frozenset({"opening", "closing", "locking", "unlocking"})
# The domains that people change. The states of other domains are computed, or change by themselves.
CONTROLLED = frozenset(
    {
        *("alarm_control_panel", "automation", "button", "climate", "cover", "date", "datetime", "fan"),
        *("humidifier", "input_button", "light", "lock", "media_player", "number", "remote", "scene"),
        *("script", "select", "siren", "switch", "text", "time", "todo", "vacuum", "valve", "water_heater"),
    }
)
VOLATILE_ATTRIBUTES = frozenset(
    {"access_token", "entity_picture", "last_triggered", "media_position_updated_at"}
)


class Call(NamedTuple):
    """A call of a service. `parent_id` is the context of the cause, for a call of an automation."""

    service: str
    parent_id: str | None


class HouseConnection:
    """Reads and changes a house, beside the agents. `touched` are the entities that changed since it was emptied."""

    def __init__(self, socket: HomeAssistantSocket) -> None:
        self._socket = socket
        self._calls: list[Call] = []
        self._last_event_at = 0.0
        self.touched: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def connect(cls, house: House) -> AsyncIterator[Self]:
        async with make_session(NAME) as session:
            socket = await HomeAssistantSocket.connect(session, NAME, house.url, house.token, Timing())
            connection = cls(socket)
            reading = asyncio.create_task(socket.read())
            try:
                await socket.subscribe("subscribe_events", connection._on_call, event_type="call_service")
                await socket.subscribe("subscribe_events", connection._on_change, event_type="state_changed")
                yield connection
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                await socket.close()

    async def request(self, kind: str, **fields: Any) -> Any:
        """Send a request of Home Assistant's WebSocket API and return its result."""
        return await self._socket.request(kind, **fields)

    async def call(self, service: str, **data: Any) -> None:
        """Call a service, as a person in the house."""
        domain, _, verb = service.partition(".")
        await self.request("call_service", domain=domain, service=verb, service_data=data)

    async def read_states(self) -> dict[str, State]:
        """Return all states. The events of all earlier changes have arrived when this returns."""
        return {each["entity_id"]: read_state(each) for each in await self.request("get_states")}

    def count_calls(self) -> int:
        """Return the number of calls so far."""
        return len(self._calls)

    def list_calls(self, start: int) -> tuple[str, ...]:
        """Return what was called since `count_calls` returned `start`, without reading and automations."""
        return tuple(
            call.service
            for call in self._calls[start:]
            if call.parent_id is None and not call.service.endswith(READING)
        )

    async def settle(self, within_s: float = MOVED_WITHIN_S) -> dict[str, State]:
        """Wait until nothing changes and nothing moves, but not longer than `within_s`. Return all states."""
        deadline = time.monotonic() + within_s
        while True:
            states = await self.read_states()
            is_quiet = time.monotonic() - self._last_event_at > QUIET_S
            is_moving = any(states[each].state in MOVING for each in self.touched & states.keys())
            if (is_quiet and not is_moving) or time.monotonic() > deadline:
                return states
            await asyncio.sleep(QUIET_S)

    def _on_call(self, event: Any) -> None:
        data, context = event["data"], event["context"]
        self._calls.append(Call(f"{data['domain']}.{data['service']}", context["parent_id"]))
        self._last_event_at = time.monotonic()

    def _on_change(self, event: Any) -> None:
        entity_id = event["data"]["entity_id"]
        if entity_id.partition(".")[0] in CONTROLLED:
            self.touched.add(entity_id)
            self._last_event_at = time.monotonic()


def find_changed(before: Mapping[str, State], after: Mapping[str, State]) -> frozenset[str]:
    """Return the controlled entities whose state or attributes differ."""
    return frozenset(
        entity_id
        for entity_id, state in after.items()
        if state.domain in CONTROLLED
        and (entity_id not in before or _reduce(before[entity_id]) != _reduce(state))
    )


def _reduce(state: State) -> tuple[str, dict[str, Any]]:
    kept = {name: value for name, value in state.attributes.items() if name not in VOLATILE_ATTRIBUTES}
    return state.state, kept
