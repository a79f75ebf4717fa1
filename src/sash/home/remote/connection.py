"""A connection to Home Assistant that is made anew whenever it is lost, and the states that come by it."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import aiohttp

from sash.errors import HomeUnauthorized, HomeUnavailable
from sash.home.remote.exposure import ASSISTANT
from sash.home.remote.link import Link, Refused, Timing, explain, make_session, unauthorized, unavailable
from sash.home.remote.wire import apply_changes, changes_layout
from sash.ports.home import Connected, Disconnected, HomeEvent, LayoutChanged, Listener, State

NO_ADMIN = "the token's user is no administrator of Home Assistant: make the token as one"

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
# Who is no administrator may not hear these.
_ADMIN_LAYOUT_EVENTS = ("automation_reloaded", "scene_reloaded")
_NOT_OPENED = "it was not opened"
_CONNECTING = "it is still being connected to"
_CLOSED = "it was closed"
_STARTING = "Home Assistant is starting: try again in a moment"
_STOPPING = "Home Assistant is stopping"
_STATES_BEFORE_RUNNING = ("NOT_RUNNING", "STARTING")
_logger = logging.getLogger(__name__)


def retry_delay(failures: int, timing: Timing) -> float:
    """Return how long to wait after so many failures in a row: longer each time, and never all at once."""
    longest = min(timing.retry_s * 2 ** min(failures, 32), timing.longest_retry_s)
    return random.uniform(longest / 2, longest)


class Connection:
    """Connects, subscribes, and tells listeners; `states` are those of now while there is a link."""

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
        self._listeners: list[Listener] = []
        self._trouble = unavailable(name, _NOT_OPENED)
        self._reported = ""
        self._failures = 0
        self._exposed: frozenset[str] | None = None
        self._link: Link | None = None
        self._session: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        if self._task is None:
            self._trouble = unavailable(self._name, _CONNECTING)
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
        self._trouble = unavailable(self._name, _CLOSED)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        if self._link is not None:
            self._call(listener, Connected())

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def linked(self) -> Link:
        """Return the link; while there is none, raise the error that says why."""
        if self._link is None:
            raise replace(self._trouble)
        return self._link

    async def get(self, path: str) -> str | None:
        """Get something by REST; None if there is no such thing."""
        if self._session is None:
            raise unavailable(self._name, _CLOSED)
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with (
                asyncio.timeout(self._timing.answer_s),
                self._session.get(f"{self._address}{path}", headers=headers) as answer,
            ):
                status, text = answer.status, await answer.text()
        except (aiohttp.ClientError, OSError) as error:
            raise unavailable(self._name, explain(error)) from error
        if status == 401:
            raise unauthorized(self._name)
        if status not in (200, 404):
            raise unavailable(self._name, f"it answered HTTP {status}: try again in a moment")
        return text if status == 200 else None

    async def exposed(self) -> frozenset[str] | None:
        """Ask which entities are noted as exposed; None if there is no such note, or it may not be read."""
        if not self.is_admin:
            return None
        try:
            noted = (await self.linked().ask("homeassistant/expose_entity/list"))["exposed_entities"]
        except Refused:
            return None
        self._exposed = frozenset(name for name, shown in noted.items() if shown.get(ASSISTANT))
        return self._exposed

    @property
    def is_admin(self) -> bool:
        """Whether the token is that of an administrator, who may ask for everything."""
        return bool(self.user.get("is_admin"))

    async def _stay_connected(self, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                await self._live(session)
            except HomeUnavailable as error:
                trouble = error
            except Exception as error:
                _logger.exception("what %s sent was not understood", self._name)
                trouble = unavailable(self._name, explain(error))
            self._report(trouble)
            refused = isinstance(trouble, HomeUnauthorized)
            await self._sleep(
                self._timing.refused_retry_s if refused else retry_delay(self._failures, self._timing)
            )
            self._failures += 1

    async def _live(self, session: aiohttp.ClientSession) -> None:
        """Connect, and stay connected until the connection is lost, which raises."""
        link = await Link.connect(session, self._name, self._address, self._token, self._timing)
        tasks: list[asyncio.Task[None]] = [asyncio.create_task(link.read())]
        try:
            await self._begin(link)
            self._link, self._reported = link, ""
            _logger.info("connected to %s", self._name)
            self._tell(Connected())
            tasks += [
                asyncio.create_task(self._watch_exposure()),
                asyncio.create_task(self._trust_after_a_while()),
            ]
            await tasks[0]
        finally:
            self._link = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await link.close()

    async def _begin(self, link: Link) -> None:
        """Wait until Home Assistant runs, and subscribe to what happens in it."""
        try:
            await link.ask("supported_features", features={"coalesce_messages": 1})
            while (state := (await link.ask("get_config"))["state"]) != "RUNNING":
                starting = state in _STATES_BEFORE_RUNNING
                self._report(unavailable(self._name, _STARTING if starting else _STOPPING))
                await self._sleep(self._timing.starting_s)
            self._know(await link.ask("auth/current_user"))
            events = _LAYOUT_EVENTS + (_ADMIN_LAYOUT_EVENTS if self.is_admin else ())
            await asyncio.gather(
                *(link.subscribe("subscribe_events", self._hear_layout, event_type=name) for name in events)
            )
            self.states = {}
            await link.first("subscribe_entities", self._hear_states)
        except Refused as error:
            raise unavailable(self._name, f"it refuses what is needed: {error}") from error

    async def _trust_after_a_while(self) -> None:
        """A connection that holds is good; one that is lost at once is tried again ever more slowly."""
        await asyncio.sleep(self._timing.trusted_s)
        self._failures = 0

    async def _watch_exposure(self) -> None:
        """Look now and then: no event tells that an entity which is in no registry was shown or hidden."""
        while True:
            await asyncio.sleep(self._timing.exposure_s)
            before = self._exposed
            with suppress(HomeUnavailable):
                if before is not None and await self.exposed() != before:
                    self._tell_if_connected(LayoutChanged())

    def _know(self, user: dict[str, Any]) -> None:
        """Keep whose token this is, and say once what that user may not do."""
        if not self.user and not user.get("is_admin"):
            _logger.warning(
                "%s: what is exposed may be guessed, and no automation is seen: %s", self._name, NO_ADMIN
            )
        self.user = user

    def _hear_layout(self, event: Any) -> None:
        self._tell_if_connected(LayoutChanged())

    def _hear_states(self, event: Any) -> None:
        layout_changed = False
        for old, change in apply_changes(self.states, event):
            layout_changed |= changes_layout(old, change.state)
            self._tell_if_connected(change)
        if layout_changed:
            self._tell_if_connected(LayoutChanged())

    def _report(self, trouble: HomeUnavailable) -> None:
        """Say that the house cannot be asked; the same reason is said once."""
        self._trouble = trouble
        if trouble.reason != self._reported:
            self._reported = trouble.reason
            _logger.warning("%s", trouble.message)
            self._tell(Disconnected(trouble.reason, isinstance(trouble, HomeUnauthorized)))

    def _tell_if_connected(self, event: HomeEvent) -> None:
        """What happens before `Connected` is in the states that are read then."""
        if self._link is not None:
            self._tell(event)

    def _tell(self, event: HomeEvent) -> None:
        for listener in tuple(self._listeners):
            self._call(listener, event)

    @staticmethod
    def _call(listener: Listener, event: HomeEvent) -> None:
        try:
            listener(event)
        except Exception:
            _logger.exception("a listener failed")
