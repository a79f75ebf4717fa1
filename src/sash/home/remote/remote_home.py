"""A home behind Home Assistant's WebSocket API.

Home Assistant sends all state changes by itself. Everything else is requested. No error contains the token.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sash.errors import HomeError, HomeUnavailable, ServiceFailed
from sash.home.home_assistant.exposure import ASSISTANT
from sash.home.home_assistant.home_assistant_json import (
    Registries,
    read_history,
    read_layout,
    read_log,
    read_logbook,
    read_services,
    read_state,
    read_statistics,
)
from sash.home.home_assistant.missing_integrations import MISSING_INTEGRATIONS
from sash.home.remote.connection import NO_ADMIN, HomeConnection
from sash.home.remote.websocket import RequestRefused, Timing, check_address, check_token
from sash.ports.home import (
    ID_PATTERN,
    HistoryPoint,
    HourlyStatistics,
    Layout,
    Listener,
    LogbookEntry,
    LogRecord,
    Service,
    State,
)
from sash.values.continuations import TurnCaller


class RemoteHome:
    """A home behind the address of a Home Assistant. `token` is a long-lived access token."""

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
        self._connection = HomeConnection(self.name, self._address, check_token(token), self._timing, sleep)

    @property
    def name(self) -> str:
        return f"Home Assistant at {self._address}"

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._connection.subscribe(listener)

    async def get_layout(self) -> Layout:
        names = ("entity", "device", "area", "floor", "label")
        *lists, config, exposed = await asyncio.gather(
            *(self._request(f"config/{name}_registry/list") for name in names),
            self._request("get_config"),
            self._connection.read_exposed_ids(),
        )
        listed, devices, areas, floors, labels = lists
        enabled = [entry["entity_id"] for entry in listed if not entry.get("disabled_by")]
        # Only this request returns the aliases.
        full, configs = await asyncio.gather(
            self._request("config/entity_registry/get_entries", entity_ids=enabled),
            self._read_configurations({*enabled, *self._connection.states}),
        )
        entities = [full.get(entry["entity_id"]) or entry for entry in listed]
        exposed_ids = exposed if ASSISTANT in config.get("components", ()) else None
        with self._report_unreadable():
            registries = Registries(config, entities, devices, areas, floors, labels, exposed_ids, configs)
            return read_layout(registries, self._connection.states)

    async def get_states(self) -> list[State]:
        _ = self._connection.socket
        return list(self._connection.states.values())

    async def get_state(self, entity_id: str) -> State | None:
        _ = self._connection.socket
        if not ID_PATTERN.fullmatch(entity_id):
            return None
        text = await self._connection.get(f"/api/states/{entity_id}")
        with self._report_unreadable():
            return None if text is None else read_state(json.loads(text))

    async def get_services(self) -> dict[str, Service]:
        raw, translations = await asyncio.gather(
            self._request("get_services"),
            self._request_or("frontend/get_translations", {}, language="en", category="services"),
        )
        with self._report_unreadable():
            return read_services(raw, translations.get("resources") or {})

    async def call_service(
        self,
        service: str,
        data: dict[str, Any],
        entity_ids: Collection[str] = (),
        *,
        caller: TurnCaller | None = None,  # Home Assistant records the user of the token.
        turn_id: str | None = None,
        return_response: bool = False,
    ) -> dict[str, Any] | None:
        socket = self._connection.socket
        domain, _, verb = service.partition(".")
        fields: dict[str, Any] = {"target": {"entity_id": list(entity_ids)}} if entity_ids else {}
        if return_response:
            fields["return_response"] = True
        try:
            answer = await socket.request(
                "call_service",
                timeout_s=self._timing.long_response_s,
                domain=domain,
                service=verb,
                service_data=data,
                **fields,
            )
        except RequestRefused as error:
            raise ServiceFailed(str(error)) from error
        except HomeUnavailable as error:
            message = f"{self.name} was asked for {service}, but the result is unknown: {error.reason}"
            raise HomeUnavailable(message, reason=error.reason) from error
        return (answer.get("response") or {}) if return_response else None

    async def get_history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HistoryPoint]]:
        if not entity_ids:
            return {}
        raw = await self._request(
            "history/history_during_period",
            timeout_s=self._timing.long_response_s,
            start_time=start.isoformat(),
            end_time=end.isoformat(),
            entity_ids=list(entity_ids),
            minimal_response=True,
            no_attributes=True,
            significant_changes_only=False,
        )
        with self._report_unreadable():
            return {entity_id: read_history(raw.get(entity_id, ()), start) for entity_id in entity_ids}

    async def get_statistics(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HourlyStatistics]]:
        if not entity_ids:
            return {}
        raw = await self._request(
            "recorder/statistics_during_period",
            timeout_s=self._timing.long_response_s,
            start_time=start.isoformat(),
            end_time=end.isoformat(),
            statistic_ids=list(entity_ids),
            period="hour",
            types=["mean", "min", "max", "sum", "change"],
        )
        with self._report_unreadable():
            return {entity_id: read_statistics(raw.get(entity_id, ())) for entity_id in entity_ids}

    async def get_logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        filters = {"entity_ids": list(entity_ids)} if entity_ids else {}
        raw = await self._request(
            "logbook/get_events",
            timeout_s=self._timing.long_response_s,
            start_time=start.isoformat(),
            end_time=end.isoformat(),
            **filters,
        )
        with self._report_unreadable():
            return read_logbook(raw, self._connection.states, self._list_users())

    async def get_log(self) -> list[LogRecord]:
        raw = await self._request("system_log/list")
        with self._report_unreadable():
            return read_log(raw)

    @contextmanager
    def _report_unreadable(self) -> Iterator[None]:
        """Raise `HomeError` in place of the exceptions that an unexpected response format causes."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise HomeError(f"the response of {self.name} was not understood ({error!r:.200})") from error

    async def _request(self, kind: str, *, timeout_s: float | None = None, **fields: Any) -> Any:
        try:
            return await self._connection.socket.request(kind, timeout_s=timeout_s, **fields)
        except RequestRefused as error:
            if error.code == "unknown_command" and (
                message := MISSING_INTEGRATIONS.get(kind.partition("/")[0])
            ):
                raise HomeError(message) from error
            if error.code == "unauthorized":
                raise HomeError(f"{self.name} denied the request ({kind}): {NO_ADMIN}") from error
            raise HomeError(f"{self.name} could not answer ({kind}): {error}") from error

    async def _request_or(self, kind: str, default: Any, **fields: Any) -> Any:
        """Send a request and return its result, or the default if Home Assistant refuses the request."""
        try:
            return await self._connection.socket.request(kind, **fields)
        except RequestRefused:
            return default

    async def _read_configurations(self, entity_ids: set[str]) -> dict[str, Any]:
        """Return the configurations of automations and scripts by entity id; empty without admin rights."""
        if not self._connection.is_admin:
            return {}
        wanted = [name for name in sorted(entity_ids) if name.startswith(("automation.", "script."))]
        configs = await asyncio.gather(*map(self._read_configuration, wanted))
        return dict(zip(wanted, configs, strict=True))

    async def _read_configuration(self, entity_id: str) -> Any:
        """Return the configuration of an automation or script, or None if Home Assistant does not give it.

        The blueprint of a configuration is filled in.
        """
        domain = entity_id.partition(".")[0]
        answer = await self._request_or(f"{domain}/config", None, entity_id=entity_id)
        config = answer["config"] if answer else None
        blueprint = config.get("use_blueprint") if isinstance(config, dict) else None
        if not isinstance(blueprint, dict):
            return config
        filled = await self._request_or(
            "blueprint/substitute",
            None,
            domain=domain,
            path=blueprint.get("path"),
            input=blueprint.get("input") or {},
        )
        return filled["substituted_config"] if filled else config

    def _list_users(self) -> dict[str, str]:
        """Return user names by user id: the user of the token, and users with a person entity."""
        user = self._connection.user
        users = {str(user.get("id")): str(user.get("name"))}
        for state in self._connection.states.values():
            if state.domain == "person" and state.attributes.get("user_id"):
                users[state.attributes["user_id"]] = str(
                    state.attributes.get("friendly_name") or state.entity_id
                )
        return users
