"""A connection to Home Assistant that reconnects by itself and keeps the current states."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NoReturn

import aiohttp

from sash.errors import HomeUnauthorized, HomeUnavailable
from sash.home.home_assistant.exposure import ASSISTANT
from sash.home.home_assistant.home_assistant_json import apply_changes, changes_layout
from sash.home.home_assistant.home_listeners import HomeListeners
from sash.home.remote.websocket import (
    HomeAssistantSocket,
    RequestRefused,
    Timing,
    explain_failure,
    make_session,
    raise_unauthorized,
    raise_unavailable,
)
from sash.ports.home import Connected, Disconnected, HomeEvent, LayoutChanged, Listener, State

NO_ADMIN = "the token's user is not an administrator of Home Assistant: make the token as an administrator"

_LAYOUT_EVENTS = (
    "entity_registry_updated",
    "device_registry_updated",
    "area_registry_updated",
    "floor_registry_updated",
    "label_registry_updated",
    "core_config_updated",
    "service_registered",
    "service_removed",
)
# Only administrators may subscribe to these events.
_ADMIN_LAYOUT_EVENTS = ("automation_reloaded", "scene_reloaded")
_NOT_OPENED = "it was not opened"
_CONNECTING = "it is still connecting"
_CLOSED = "it was closed"
_STARTING = "Home Assistant is starting: try again in a moment"
_STOPPING = "Home Assistant is stopping"
_STATES_BEFORE_RUNNING = ("NOT_RUNNING", "STARTING")
_logger = logging.getLogger(__name__)


def compute_retry_delay(failures: int, timing: Timing) -> float:
    """Return the random delay in seconds before the next attempt. It grows with the failures in a row."""
    max_delay_s = min(timing.retry_s * 2 ** min(failures, 32), timing.max_retry_s)
    return random.uniform(max_delay_s / 2, max_delay_s)


class HomeConnection:
    """Connects, subscribes, and passes events to listeners. `states` is current while connected."""

    def __init__(
        self, name: str, address: str, token: str, timing: Timing, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self.states: dict[str, State] = {}
        self.user: dict[str, Any] = {}
        self._name = name
        self._address = address
        self._token = token
        self._timing = timing
        self._sleep = sleep
        self._listeners = HomeListeners()
        self._problem = Disconnected(_NOT_OPENED)
        self._reported_reason = ""
        self._failures = 0
        self._exposed: frozenset[str] | None = None
        self._socket: HomeAssistantSocket | None = None
        self._session: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        if self._task is None:
            self._problem = Disconnected(_CONNECTING)
            self._session = make_session(self._name)
            self._task = asyncio.create_task(self._stay_connected(self._session))

    async def close(self) -> None:
        task, self._task = self._task, None
        session, self._session = self._session, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if session is not None:
            await session.close()
        self._problem = Disconnected(_CLOSED)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._listeners.add(listener, is_connected=self._socket is not None)

    @property
    def socket(self) -> HomeAssistantSocket:
        """The open socket. Raise `HomeUnavailable` or `HomeUnauthorized` if the home is not connected."""
        if self._socket is None:
            reason = self._problem.reason
            if self._problem.is_token_refused:
                raise HomeUnauthorized(f"{self._name} cannot be used: {reason}", reason=reason)
            raise_unavailable(self._name, reason)
        return self._socket

    async def get(self, path: str) -> str | None:
        """Return the response of the REST API as text; None if the path does not exist (404)."""
        if self._session is None:
            raise_unavailable(self._name, _CLOSED)
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with (
                asyncio.timeout(self._timing.response_s),
                self._session.get(f"{self._address}{path}", headers=headers) as response,
            ):
                status, text = response.status, await response.text()
        except (aiohttp.ClientError, OSError) as error:
            raise_unavailable(self._name, explain_failure(error), error)
        if status == 401:
            raise_unauthorized(self._name)
        if status not in (200, 404):
            raise_unavailable(self._name, f"it answered HTTP {status}: try again in a moment")
        return text if status == 200 else None

    async def read_exposed_ids(self) -> frozenset[str] | None:
        """Return the ids of the entities that Home Assistant lists as exposed.

        None if there is no such list, or the user of the token may not read it.
        """
        if not self.is_admin:
            return None
        try:
            entries = (await self.socket.request("homeassistant/expose_entity/list"))["exposed_entities"]
        except RequestRefused:
            return None
        self._exposed = frozenset(name for name, assistants in entries.items() if assistants.get(ASSISTANT))
        return self._exposed

    @property
    def is_admin(self) -> bool:
        """Whether the user of the token is an administrator."""
        return bool(self.user.get("is_admin"))

    async def _stay_connected(self, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                await self._run_connection(session)
            except HomeUnavailable as error:
                problem = Disconnected(error.reason, isinstance(error, HomeUnauthorized))
            except Exception as error:
                _logger.exception("could not read a message of %s", self._name)
                problem = Disconnected(explain_failure(error))
            self._report(problem)
            await self._sleep(
                self._timing.refused_retry_s
                if problem.is_token_refused
                else compute_retry_delay(self._failures, self._timing)
            )
            self._failures += 1

    async def _run_connection(self, session: aiohttp.ClientSession) -> NoReturn:
        """Connect and stay connected. Raise `HomeUnavailable` when the connection is lost."""
        socket = await HomeAssistantSocket.connect(
            session, self._name, self._address, self._token, self._timing
        )
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(socket.read())]
        try:
            await self._start(socket)
            self._socket, self._reported_reason = socket, ""
            _logger.info("connected to %s", self._name)
            self._listeners.emit(Connected())
            tasks += [
                asyncio.create_task(self._watch_exposure()),
                asyncio.create_task(self._reset_failures_when_stable()),
            ]
            await tasks[0]
            raise AssertionError("socket.read() always raises")
        finally:
            self._socket = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await socket.close()

    async def _start(self, socket: HomeAssistantSocket) -> None:
        """Wait until Home Assistant has started, then subscribe to its events."""
        try:
            await socket.request("supported_features", features={"coalesce_messages": 1})
            while (state := (await socket.request("get_config"))["state"]) != "RUNNING":
                is_starting = state in _STATES_BEFORE_RUNNING
                self._report(Disconnected(_STARTING if is_starting else _STOPPING))
                await self._sleep(self._timing.starting_s)
            self._set_user(await socket.request("auth/current_user"))
            events = _LAYOUT_EVENTS + (_ADMIN_LAYOUT_EVENTS if self.is_admin else ())
            await asyncio.gather(
                *(
                    socket.subscribe("subscribe_events", self._on_layout_event, event_type=name)
                    for name in events
                )
            )
            self.states = {}
            await socket.subscribe_and_wait("subscribe_entities", self._on_states_event)
        except RequestRefused as error:
            raise_unavailable(self._name, f"it refuses a required request: {error}", error)

    async def _reset_failures_when_stable(self) -> None:
        await asyncio.sleep(self._timing.stable_s)
        self._failures = 0

    async def _watch_exposure(self) -> None:
        """Read the exposed entities at intervals, because some changes of the exposure cause no event."""
        while True:
            await asyncio.sleep(self._timing.exposure_s)
            before = self._exposed
            with suppress(HomeUnavailable):
                if before is not None and await self.read_exposed_ids() != before:
                    self._emit_if_connected(LayoutChanged())

    def _set_user(self, user: dict[str, Any]) -> None:
        """Store the user of the token. The first time, log the limits of a user without admin rights."""
        if not self.user and not user.get("is_admin"):
            _logger.warning(
                "%s: the exposed entities may be guessed, and automations cannot be read: %s",
                self._name,
                NO_ADMIN,
            )
        self.user = user

    def _on_layout_event(self, event: Any) -> None:
        self._emit_if_connected(LayoutChanged())

    def _on_states_event(self, event: Any) -> None:
        is_layout_changed = False
        for old, change in apply_changes(self.states, event):
            is_layout_changed |= changes_layout(
                old.attributes if old else None, change.state.attributes if change.state else None
            )
            self._emit_if_connected(change)
        if is_layout_changed:
            self._emit_if_connected(LayoutChanged())

    def _report(self, problem: Disconnected) -> None:
        """Log and emit that the home is not connected. The same reason is reported only once in a row."""
        self._problem = problem
        if problem.reason != self._reported_reason:
            self._reported_reason = problem.reason
            _logger.warning("%s cannot be reached: %s", self._name, problem.reason)
            self._listeners.emit(problem)

    def _emit_if_connected(self, event: HomeEvent) -> None:
        """Emit an event if the socket is open. Earlier events are dropped: the first read includes them."""
        if self._socket is not None:
            self._listeners.emit(event)
