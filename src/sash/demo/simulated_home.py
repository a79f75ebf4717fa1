"""A home in memory, with working services, a past, and faults on request.

If its history is a function, the states follow it as the clock advances, and every change is an event. After
`set_state` or a service call, an entity keeps its state.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sash.demo.home_recorder import Change, DerivedState, HomeRecorder, RecordedPast
from sash.demo.hourly_statistics import HOUR, compute_statistics
from sash.demo.service_answers import list_items, make_forecast
from sash.demo.service_catalog import list_services
from sash.demo.service_effects import EFFECTS, ServiceEffect, check_data, filter_attributes
from sash.errors import HomeUnavailable, ServiceFailed
from sash.ports.home import (
    UNAVAILABLE,
    Connected,
    Disconnected,
    Entity,
    HistoryPoint,
    HomeEvent,
    HourlyStatistics,
    Layout,
    LayoutChanged,
    Listener,
    LogbookEntry,
    LogRecord,
    Service,
    State,
    StateChanged,
)
from sash.values.clock import Clock, SystemClock
from sash.values.continuations import TurnCaller

# Seconds between two checks for changes of the history.
UPDATE_INTERVAL_S = 30.0


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """A service call. Scenes, scripts and automations consist of them."""

    service: str
    data: dict[str, Any] = field(default_factory=dict)
    entity_ids: tuple[str, ...] = ()
    caller: TurnCaller | None = None
    turn_id: str | None = None


class SimulatedHome:
    """A `Home` without devices.

    `past` holds the history, the logbook and the log. `services` defaults to the services of the layout's
    domains. `actions` are the calls of scenes, scripts and automations, and `items` the items of to-do lists.
    Tests read `calls` and `notifications`, which record the calls and the notifications of the home.
    """

    def __init__(
        self,
        layout: Layout,
        states: Collection[State] = (),
        services: Mapping[str, Service] | None = None,
        *,
        past: RecordedPast | None = None,
        derived: Sequence[DerivedState] = (),
        actions: Mapping[str, Sequence[SimulatedCall]] | None = None,
        items: Mapping[str, Sequence[str]] | None = None,
        clock: Clock | None = None,
        name: str = "the simulated house",
    ) -> None:
        self.calls: list[SimulatedCall] = []
        self.notifications: list[dict[str, Any]] = []
        self.items = {
            list_id: dict.fromkeys(names, "needs_action") for list_id, names in (items or {}).items()
        }
        self._name = name
        self._clock = clock or SystemClock()
        self._layout = layout
        self._services = dict(
            list_services(e.domain for e in layout.entities) if services is None else services
        )
        self._actions = dict(actions or {})
        past = past or RecordedPast()
        self._recorder = HomeRecorder(states, derived, past)
        self._changes_by_itself = past.continues
        self._derived_from: dict[str, list[DerivedState]] = defaultdict(list)
        for each in derived:
            for used in each.uses:
                self._derived_from[used].append(each)
        self._failing: dict[str, list[Exception]] = defaultdict(list)
        self._ignored: dict[str, int] = defaultdict(int)
        self._listeners: list[Listener] = []
        self._is_open = False
        self._fault: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._updated_at = self._clock.now()
        self._states: dict[str, State] = {}
        self._attributes = {state.entity_id: dict(state.attributes) for state in states}
        for state in states:
            point = self._recorder.find_latest(state.entity_id, self._updated_at)
            updated_at = max(point.at, state.updated_at)
            reported = filter_attributes(state.domain, point.state, state.attributes)
            self._states[state.entity_id] = State(
                state.entity_id, point.state, reported, point.at, updated_at
            )
        for each in derived:
            self._update_derived(each, self._updated_at)

    @property
    def name(self) -> str:
        return self._name

    @property
    def _is_connected(self) -> bool:
        return self._is_open and self._fault is None

    async def open(self) -> None:
        if self._is_open:
            return
        self._update_at_intervals()
        self._is_open = True
        if self._is_connected:
            self._emit(Connected())

    async def close(self) -> None:
        was_connected = self._is_connected
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
        if was_connected:
            self._emit(Disconnected(f"{self._name} is closed"))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        if self._is_connected:
            listener(Connected())

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    async def get_layout(self) -> Layout:
        self._require_connection()
        return self._layout

    async def get_states(self) -> list[State]:
        self._require_connection()
        return list(self._states.values())

    async def get_state(self, entity_id: str) -> State | None:
        self._require_connection()
        return self._states.get(entity_id)

    async def get_services(self) -> dict[str, Service]:
        self._require_connection()
        return dict(self._services)

    async def call_service(
        self,
        service: str,
        data: dict[str, Any],
        entity_ids: Collection[str] = (),
        *,
        caller: TurnCaller | None = None,
        turn_id: str | None = None,
        return_response: bool = False,
    ) -> dict[str, Any] | None:
        self._require_connection()
        named = data.get("entity_id", ())
        targets = (*entity_ids, *([named] if isinstance(named, str) else named))
        data = {name: value for name, value in data.items() if name != "entity_id"}
        action = SimulatedCall(service, data, targets, caller, turn_id)
        self.calls.append(action)
        response = self._execute(action, f"action {service}")
        return (response or {}) if return_response else None

    async def get_history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HistoryPoint]]:
        end = min(end, self._require_connection())
        found = {entity_id: self._recorder.list_changes(entity_id, start, end) for entity_id in entity_ids}
        return {
            key: [HistoryPoint(c.at, c.state) for c in changes] for key, changes in found.items() if changes
        }

    async def get_statistics(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HourlyStatistics]]:
        now = self._require_connection()
        found: dict[str, list[HourlyStatistics]] = {}
        for entity_id in entity_ids:
            kind = str(self._attributes.get(entity_id, {}).get("state_class", ""))
            points = await self.get_history([entity_id], start, end + HOUR) if kind else {}
            hours = compute_statistics(
                points.get(entity_id, []), start, min(end + HOUR, now), is_meter=kind.startswith("total")
            )
            found[entity_id] = [hour for hour in hours if hour.start < end]
        return found

    async def get_logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        end = min(end, self._require_connection())
        wanted = set(entity_ids or self._states)
        states = [state for state in self._states.values() if state.entity_id in wanted]
        entries = self._recorder.read_logbook(states, start, end)
        return [entry for entry in entries if not entity_ids or entry.entity_id in wanted]

    async def get_log(self) -> list[LogRecord]:
        return self._recorder.read_log(self._require_connection())

    def set_state(self, entity_id: str, state: str, /, **attributes: Any) -> None:
        """Set the state and some attributes of an entity. A new entity is added to the layout."""
        self._update()
        if entity_id not in self._attributes and all(e.id != entity_id for e in self._layout.entities):
            name = str(attributes.get("friendly_name", entity_id))
            self._layout = replace(self._layout, entities=(*self._layout.entities, Entity(entity_id, name)))
            self._emit(LayoutChanged())
        self._override(entity_id, state, attributes, "")

    def remove(self, entity_id: str) -> None:
        """Remove an entity from the states and from the layout."""
        entities = tuple(entity for entity in self._layout.entities if entity.id != entity_id)
        self.change_layout(replace(self._layout, entities=entities))

    def change_layout(self, layout: Layout) -> None:
        """Replace the layout. Entities that it does not contain lose their states."""
        self._update()
        self._layout = layout
        remaining = {entity.id for entity in layout.entities}
        for entity_id in [entity_id for entity_id in self._states if entity_id not in remaining]:
            self._recorder.override(entity_id, Change(self._updated_at, UNAVAILABLE))
            del self._states[entity_id], self._attributes[entity_id]
            self._emit(StateChanged(entity_id, None))
        self._emit(LayoutChanged())

    def disconnect(self, reason: str) -> None:
        """Make the home unavailable until `connect` is called."""
        was_connected = self._is_connected
        self._fault = reason
        if was_connected:
            self._emit(Disconnected(reason))

    def connect(self) -> None:
        """Make the home available again."""
        if self._fault is not None:
            self._update()
            self._fault = None
            if self._is_open:
                self._emit(Connected())

    def fail_next(self, service: str, error: Exception) -> None:
        """Make the next call of a service raise this error."""
        self._failing[service].append(error)

    def ignore_next(self, service: str) -> None:
        """Make the next call of a service return without changing anything."""
        self._ignored[service] += 1

    def _emit(self, event: HomeEvent) -> None:
        """Call the listeners with an event. Without a connection only `Disconnected` is emitted."""
        if not self._is_connected and not isinstance(event, Disconnected):
            return
        for listener in tuple(self._listeners):
            listener(event)

    def _require_connection(self) -> datetime:
        """Update the states and return the current time. Raise `HomeUnavailable` without a connection."""
        if not self._is_connected:
            reason = self._fault or "it is not open"
            raise HomeUnavailable(f"{self._name} cannot be reached: {reason}. Try again later.")
        return self._update()

    def _update_at_intervals(self) -> None:
        if self._changes_by_itself:
            self._update()
            self._timer = asyncio.get_running_loop().call_later(UPDATE_INTERVAL_S, self._update_at_intervals)

    def _update(self) -> datetime:
        """Apply the changes of the history since the last update. Return the current time."""
        now, before = self._clock.now(), self._updated_at
        if now <= before:
            return now
        self._updated_at = now
        if self._changes_by_itself:
            coming = [
                (point.at, entity_id, point.state)
                for entity_id in self._states
                for point in self._recorder.list_own_changes(entity_id, before, now)
            ]
            for at, entity_id, state in sorted(coming):
                self._set(entity_id, state, {}, at)
        return now

    def _set(self, entity_id: str, state: str, attributes: dict[str, Any], at: datetime) -> None:
        before = self._states.get(entity_id)
        stored = self._attributes.setdefault(entity_id, {})
        stored.update(attributes)
        reported = filter_attributes(entity_id.partition(".")[0], state, stored)
        if before is not None and (before.state, before.attributes) == (state, reported):
            return
        changed_at = before.changed_at if before is not None and before.state == state else at
        self._states[entity_id] = now = State(entity_id, state, reported, changed_at, at)
        self._emit(StateChanged(entity_id, now))
        for derived in self._derived_from[entity_id]:
            self._update_derived(derived, at)

    def _override(self, entity_id: str, state: str, attributes: dict[str, Any], cause: str) -> None:
        at = self._clock.now()
        self._recorder.override(entity_id, Change(at, state, cause))
        self._set(entity_id, state, attributes, at)

    def _update_derived(self, derived: DerivedState, at: datetime) -> None:
        entity_id, attribute = derived.entity_id, derived.attribute
        if entity_id not in self._states or any(used not in self._states for used in derived.uses):
            return
        states = [self._states[used].state for used in derived.uses]
        before = self._states[entity_id].state
        if attribute is not None:
            value = derived.compute(states, self._attributes[entity_id].get(attribute))
            self._set(entity_id, before, {attribute: value}, at)
        elif not self._recorder.is_overridden(entity_id):
            self._set(entity_id, derived.compute(states, before), {}, at)

    def _execute(self, action: SimulatedCall, cause: str) -> dict[str, Any] | None:
        service = self._services.get(action.service)
        if service is None:
            raise ServiceFailed(f"Action {action.service} not found.")
        check_data(service, action.data)
        targets = [] if service.target is None else self._find_targets(service, action.entity_ids)
        if self._failing[action.service]:
            raise self._failing[action.service].pop(0)
        if self._ignored[action.service]:
            self._ignored[action.service] -= 1
            return None
        if service.response == "only":
            return {target: self._answer(action, target) for target in targets}
        self._perform(action, targets, cause)
        return None

    def _answer(self, action: SimulatedCall, entity_id: str) -> dict[str, Any]:
        if action.service == "todo.get_items":
            return list_items(self.items.get(entity_id, {}), action.data.get("status", ()))
        return make_forecast(self._states[entity_id], action.data["type"], self._clock.now())

    def _perform(self, action: SimulatedCall, targets: list[str], cause: str) -> None:
        match action.service.split("."):
            case ["homeassistant", "restart"]:
                self.disconnect("Home Assistant is restarting")
                self.connect()
            case ["homeassistant", verb]:
                self._call_own_service(verb, targets, cause)
            case ["notify", _]:
                self.notifications.append(action.data)
            case ["todo", verb]:
                for target in targets:
                    self._change_items(verb, target, action.data, cause)
            case ["scene" | "script", "turn_on"] | ["automation", "trigger"] | ["button", "press"]:
                for target in targets:
                    self._run_actions(target, cause)
            case _ if action.service in EFFECTS:
                self._apply_effect(EFFECTS[action.service], targets, action.data, cause)

    def _find_targets(self, service: Service, entity_ids: Collection[str]) -> list[str]:
        """Return the ids of the available entities, with groups replaced by their members.

        Raise `ServiceFailed` if no entity is available.
        """
        if not entity_ids:
            raise ServiceFailed(
                "must contain at least one of entity_id, device_id, area_id, floor_id, label_id."
            )
        groups = {d.entity_id: sorted(d.uses) for d in self._layout.dependents if d.kind == "group"}
        wanted = [m for entity_id in entity_ids for m in groups.get(entity_id, [entity_id])]
        available: list[str] = []
        missing: list[str] = []
        for entity_id in dict.fromkeys(wanted):
            state = self._states.get(entity_id)
            able = state is not None and state.state != UNAVAILABLE
            able = able and (
                not service.target_domains or entity_id.partition(".")[0] in service.target_domains
            )
            (available if able else missing).append(entity_id)
        if missing:
            message = f"Referenced entities {', '.join(missing)} are missing or not currently available"
            if not available:
                raise ServiceFailed(message)
            self._recorder.add_log_record(
                self._clock.now(), "warning", "homeassistant.helpers.service", message
            )
        return available

    def _call_own_service(self, verb: str, targets: list[str], cause: str) -> None:
        """Call the service of this name in the domain of each entity: `light.turn_on` for a light."""
        by_domain: dict[str, list[str]] = defaultdict(list)
        for target in targets:
            by_domain[target.partition(".")[0]].append(target)
        unable = [
            e for domain in by_domain if f"{domain}.{verb}" not in self._services for e in by_domain[domain]
        ]
        if unable:
            name = f"homeassistant.{verb}"
            raise ServiceFailed(f"The service {name} does not support entities {', '.join(unable)}")
        for domain, entity_ids in by_domain.items():
            self._execute(SimulatedCall(f"{domain}.{verb}", {}, tuple(entity_ids)), cause)

    def _apply_effect(
        self, effect: ServiceEffect, targets: list[str], data: dict[str, Any], cause: str
    ) -> None:
        """Apply the effect to all targets, or to none if it raises `ServiceFailed` for one of them."""
        stored = [replace(self._states[key], attributes=self._attributes[key]) for key in targets]
        for target, (new_state, attributes) in [(state.entity_id, effect(state, data)) for state in stored]:
            self._override(target, new_state, attributes, cause)

    def _run_actions(self, entity_id: str, cause: str) -> None:
        """Make the calls of a scene, script or automation. As in Home Assistant, failures go to the log."""
        now = self._clock.now()
        state = self._states[entity_id]
        name = str(state.attributes.get("friendly_name", entity_id))
        if state.domain in ("scene", "button"):
            self._override(entity_id, now.isoformat(), {}, cause)
        else:
            self._override(entity_id, state.state, {"last_triggered": now.isoformat()}, cause)
        for position, action in enumerate(self._actions.get(entity_id, ()), 1):
            try:
                self._execute(action, f"{state.domain} {name}")
            except ServiceFailed as error:
                kind = "Error" if action.service in self._services else "Service not found"
                where = f"{kind} for call_service at pos {position}"
                lines = [f"{name}: Error executing script. {where}: {error}"]
                if state.domain == "automation":
                    lines.append(f"Error while executing automation {entity_id}: {error}")
                for line in lines:
                    self._recorder.add_log_record(now, "error", f"homeassistant.components.{entity_id}", line)
                return

    def _change_items(self, verb: str, entity_id: str, data: dict[str, Any], cause: str) -> None:
        items = self.items.setdefault(entity_id, {})
        name = data["item"]
        if verb != "add_item" and name not in items:
            raise ServiceFailed(f"Unable to find to-do list item: {name}")
        status = items.pop(name, "needs_action")
        if verb != "remove_item":
            items[data.get("rename", name)] = data.get("status", status)
        count = sum(status == "needs_action" for status in items.values())
        self._override(entity_id, str(count), {}, cause)
