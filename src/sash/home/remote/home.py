"""A Home Assistant elsewhere, over its WebSocket API.

The states are those that Home Assistant sends by itself; all else is asked for. What is wrong is said in
words, and the token is in none of them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sash.errors import HomeError, HomeUnavailable, ServiceFailed
from sash.home.remote.connection import NO_ADMIN, Connection
from sash.home.remote.exposure import ASSISTANT
from sash.home.remote.link import Refused, Timing, check_address, check_token
from sash.home.remote.wire import (
    Registries,
    read_history,
    read_layout,
    read_log,
    read_logbook,
    read_services,
    read_state,
)
from sash.ports.home import ANY_ID, Layout, Listener, LogbookEntry, LogRecord, Point, Service, State

# What is asked in vain if an integration is missing.
_NOT_SET_UP = {
    "history": "Home Assistant's history is not set up: add history to its configuration",
    "logbook": "Home Assistant's logbook is not set up: add logbook to its configuration",
    "system_log": "Home Assistant's system log is not set up: add system_log to its configuration",
}


class RemoteHome:
    """The house of a Home Assistant at an address, with a long-lived access token."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timing: Timing | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = check_address(url)
        self._timing = timing or Timing()
        self._connection = Connection(self.name, self._address, check_token(token), self._timing, sleep)

    @property
    def name(self) -> str:
        return f"Home Assistant at {self._address}"

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._connection.subscribe(listener)

    async def layout(self) -> Layout:
        names = ("entity", "device", "area", "floor", "label")
        *lists, config, exposed = await asyncio.gather(
            *(self._ask(f"config/{name}_registry/list") for name in names),
            self._ask("get_config"),
            self._connection.exposed(),
        )
        listed, devices, areas, floors, labels = lists
        enabled = [entry["entity_id"] for entry in listed if not entry.get("disabled_by")]
        # Only here are an entity's aliases; a disabled entity has no use for them.
        full, configs = await asyncio.gather(
            self._ask("config/entity_registry/get_entries", entity_ids=enabled),
            self._configurations({*enabled, *self._connection.states}),
        )
        entities = [full.get(entry["entity_id"]) or entry for entry in listed]
        noted = exposed if ASSISTANT in config.get("components", ()) else None
        with self._understanding():
            registries = Registries(config, entities, devices, areas, floors, labels, noted, configs)
            return read_layout(registries, self._connection.states)

    async def states(self) -> list[State]:
        self._connection.linked()
        return list(self._connection.states.values())

    async def state(self, entity_id: str) -> State | None:
        self._connection.linked()
        if not ANY_ID.fullmatch(entity_id):
            return None
        text = await self._connection.get(f"/api/states/{entity_id}")
        with self._understanding():
            return None if text is None else read_state(json.loads(text))

    async def services(self) -> dict[str, Service]:
        raw, words = await asyncio.gather(
            self._ask("get_services"),
            self._ask_or("frontend/get_translations", {}, language="en", category="services"),
        )
        with self._understanding():
            return read_services(raw, words.get("resources") or {})

    async def call(self, service: str, data: dict[str, Any], entity_ids: Collection[str] = ()) -> None:
        link = self._connection.linked()
        domain, _, verb = service.partition(".")
        target = {"target": {"entity_id": list(entity_ids)}} if entity_ids else {}
        try:
            await link.ask(
                "call_service",
                within_s=self._timing.long_answer_s,
                domain=domain,
                service=verb,
                service_data=data,
                **target,
            )
        except Refused as error:
            raise ServiceFailed(str(error), service=service, reason=error.code) from error
        except HomeUnavailable as error:
            unsure = f"{self.name} was asked for {service}, and whether that was done is not known"
            raise HomeUnavailable(f"{unsure}: {error.reason}", reason=error.reason) from error

    async def history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[Point]]:
        if not entity_ids:
            return {}
        raw = await self._ask(
            "history/history_during_period",
            within_s=self._timing.long_answer_s,
            start_time=start.isoformat(),
            end_time=end.isoformat(),
            entity_ids=list(entity_ids),
            minimal_response=True,
            no_attributes=True,
            significant_changes_only=False,
        )
        with self._understanding():
            return {entity_id: read_history(raw.get(entity_id, ()), start) for entity_id in entity_ids}

    async def logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        some = {"entity_ids": list(entity_ids)} if entity_ids else {}
        raw = await self._ask(
            "logbook/get_events",
            within_s=self._timing.long_answer_s,
            start_time=start.isoformat(),
            end_time=end.isoformat(),
            **some,
        )
        with self._understanding():
            return read_logbook(raw, self._connection.states, self._users())

    async def log(self) -> list[LogRecord]:
        raw = await self._ask("system_log/list")
        with self._understanding():
            return read_log(raw)

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """Make it a clear error if Home Assistant writes something in another way than it is read."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise HomeError(f"what {self.name} said was not understood ({error!r:.200})") from error

    async def _ask(self, kind: str, *, within_s: float | None = None, **fields: Any) -> Any:
        try:
            return await self._connection.linked().ask(kind, within_s=within_s, **fields)
        except Refused as error:
            if error.code == "unknown_command" and (words := _NOT_SET_UP.get(kind.partition("/")[0])):
                raise HomeError(words) from error
            if error.code == "unauthorized":
                raise HomeError(f"{self.name} may not be asked ({kind}): {NO_ADMIN}") from error
            raise HomeError(f"{self.name} could not answer ({kind}): {error}", reason=error.code) from error

    async def _ask_or(self, kind: str, otherwise: Any, **fields: Any) -> Any:
        """Ask for what there may not be."""
        try:
            return await self._connection.linked().ask(kind, **fields)
        except Refused:
            return otherwise

    async def _configurations(self, entity_ids: set[str]) -> dict[str, Any]:
        """Return the configurations of automations and scripts; some have none."""
        if not self._connection.is_admin:
            return {}
        asked = [name for name in sorted(entity_ids) if name.startswith(("automation.", "script."))]
        answers = await asyncio.gather(
            *(self._ask_or(f"{name.partition('.')[0]}/config", None, entity_id=name) for name in asked)
        )
        return {name: answer["config"] for name, answer in zip(asked, answers, strict=True) if answer}

    def _users(self) -> dict[str, str]:
        """Return the names of the users that can be known: this one, and those who are persons."""
        user = self._connection.user
        users = {str(user.get("id")): str(user.get("name"))}
        for state in self._connection.states.values():
            if state.domain == "person" and state.attributes.get("user_id"):
                users[state.attributes["user_id"]] = str(
                    state.attributes.get("friendly_name") or state.entity_id
                )
        return users
