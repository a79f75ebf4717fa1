"""A house in memory: any layout, with services that work, a past that can be asked for, and faults on order.

Its history may also tell how the house goes on by itself: as the clock moves, the states follow, and every
change is an event. An entity that was called or set stays as it was put.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sash.demo.past import Change, Derived, History, Log, Logbook, Past
from sash.demo.service_effects import EFFECTS, Effect, check, shown
from sash.demo.services import services_of
from sash.errors import HomeUnavailable, ServiceFailed
from sash.ports.home import (
    UNAVAILABLE,
    Connected,
    Disconnected,
    Entity,
    HomeEvent,
    Layout,
    LayoutChanged,
    Listener,
    LogbookEntry,
    LogRecord,
    Point,
    Service,
    State,
    StateChanged,
)
from sash.values.clock import Clock, SystemClock

# How often a house that is open looks at what has changed by itself.
PULSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a service; scenes, scripts and automations are made of them."""

    service: str
    data: dict[str, Any] = field(default_factory=dict)
    entity_ids: tuple[str, ...] = ()


class SimulatedHome:
    """A `Home` with nothing behind it.

    `history` is stored points by entity, or a function (see `Past`). `logbook` and `log` are entries, or
    functions of the time; changes of states are in the logbook anyway. `services` are by default those of the
    layout's domains. `actions` is what scenes, scripts and automations do, `items` what is on to-do lists.
    For tests, `calls` and `notifications` are what the house was asked to do and to tell.
    """

    def __init__(
        self,
        layout: Layout,
        states: Collection[State] = (),
        services: Mapping[str, Service] | None = None,
        *,
        history: History | Mapping[str, Sequence[Point]] | None = None,
        logbook: Logbook | Sequence[LogbookEntry] = (),
        log: Log | Sequence[LogRecord] = (),
        derived: Sequence[Derived] = (),
        actions: Mapping[str, Sequence[Action]] | None = None,
        items: Mapping[str, Sequence[str]] | None = None,
        clock: Clock | None = None,
        name: str = "the simulated house",
    ) -> None:
        self.calls: list[Action] = []
        self.notifications: list[dict[str, Any]] = []
        self.items = {
            list_id: dict.fromkeys(names, "needs_action") for list_id, names in (items or {}).items()
        }
        self._name = name
        self._clock = clock or SystemClock()
        self._layout = layout
        self._services = dict(
            services_of(e.domain for e in layout.entities) if services is None else services
        )
        self._actions = dict(actions or {})
        self._past = Past(states, derived, history, logbook, log)
        self._lives = callable(history)
        self._followers: dict[str, list[Derived]] = defaultdict(list)
        for one in derived:
            for used in one.uses:
                self._followers[used].append(one)
        self._failing: dict[str, list[Exception]] = defaultdict(list)
        self._ignored: dict[str, int] = defaultdict(int)
        self._listeners: list[Listener] = []
        self._is_open = False
        self._fault: str | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._seen_at = self._clock.now()
        self._states: dict[str, State] = {}
        self._memory = {state.entity_id: dict(state.attributes) for state in states}
        for state in states:
            point = self._past.latest(state.entity_id, self._seen_at)
            updated_at = max(point.at, state.updated_at)
            shows = shown(state.domain, point.state, state.attributes)
            self._states[state.entity_id] = State(state.entity_id, point.state, shows, point.at, updated_at)
        for one in derived:
            self._follow(one, self._seen_at)

    @property
    def name(self) -> str:
        return self._name

    @property
    def _is_connected(self) -> bool:
        return self._is_open and self._fault is None

    async def open(self) -> None:
        if self._is_open:
            return
        self._beat()
        self._is_open = True
        if self._is_connected:
            self._emit(Connected())

    async def close(self) -> None:
        was_connected = self._is_connected
        self._is_open = False
        if self._pulse is not None:
            self._pulse.cancel()
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

    async def layout(self) -> Layout:
        self._look()
        return self._layout

    async def states(self) -> list[State]:
        self._look()
        return list(self._states.values())

    async def state(self, entity_id: str) -> State | None:
        self._look()
        return self._states.get(entity_id)

    async def services(self) -> dict[str, Service]:
        self._look()
        return dict(self._services)

    async def call(self, service: str, data: dict[str, Any], entity_ids: Collection[str] = ()) -> None:
        self._look()
        named = data.get("entity_id", ())
        targets = (*entity_ids, *([named] if isinstance(named, str) else named))
        action = Action(service, {k: v for k, v in data.items() if k != "entity_id"}, targets)
        self.calls.append(action)
        self._do(action, f"action {service}")

    async def history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[Point]]:
        end = min(end, self._look())
        found = {entity_id: self._past.changes(entity_id, start, end) for entity_id in entity_ids}
        return {key: [Point(c.at, c.state) for c in changes] for key, changes in found.items() if changes}

    async def logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        end = min(end, self._look())
        wanted = set(entity_ids or self._states)
        states = [state for state in self._states.values() if state.entity_id in wanted]
        entries = self._past.logbook(states, start, end)
        return [entry for entry in entries if not entity_ids or entry.entity_id in wanted]

    async def log(self) -> list[LogRecord]:
        return self._past.log(self._look())

    def set_state(self, entity_id: str, state: str, /, **attributes: Any) -> None:
        """Let an entity have a state; one that was not there is added."""
        self._live()
        if entity_id not in self._memory and all(e.id != entity_id for e in self._layout.entities):
            name = str(attributes.get("friendly_name", entity_id))
            self._layout = replace(self._layout, entities=(*self._layout.entities, Entity(entity_id, name)))
            self._emit(LayoutChanged())
        self._touch(entity_id, state, attributes, "")

    def remove(self, entity_id: str) -> None:
        """Take an entity away, with its place in the layout."""
        entities = tuple(entity for entity in self._layout.entities if entity.id != entity_id)
        self.change_layout(replace(self._layout, entities=entities))

    def change_layout(self, layout: Layout) -> None:
        """Let the house be made of something else; what is not in it any more has no state."""
        self._live()
        self._layout = layout
        there = {entity.id for entity in layout.entities}
        for entity_id in [entity_id for entity_id in self._states if entity_id not in there]:
            self._past.touch(entity_id, Change(self._seen_at, UNAVAILABLE))
            del self._states[entity_id], self._memory[entity_id]
            self._emit(StateChanged(entity_id, None))
        self._emit(LayoutChanged())

    def disconnect(self, reason: str) -> None:
        """Let the house be out of reach until `connect`."""
        was_connected = self._is_connected
        self._fault = reason
        if was_connected:
            self._emit(Disconnected(reason))

    def connect(self) -> None:
        """Let the house be in reach again."""
        if self._fault is not None:
            self._live()
            self._fault = None
            if self._is_open:
                self._emit(Connected())

    def fail_next(self, service: str, error: Exception) -> None:
        """Let the next call of a service fail."""
        self._failing[service].append(error)

    def ignore_next(self, service: str) -> None:
        """Let the next call of a service return as if all were well, and change nothing."""
        self._ignored[service] += 1

    def _emit(self, event: HomeEvent) -> None:
        """Tell the listeners; what changes while there is no connection is not heard."""
        if not self._is_connected and not isinstance(event, Disconnected):
            return
        for listener in tuple(self._listeners):
            listener(event)

    def _look(self) -> datetime:
        """Bring the house up to the present, if it can be asked, and return the time."""
        if not self._is_connected:
            reason = self._fault or "it is not open"
            raise HomeUnavailable(f"{self._name} cannot be asked: {reason}. Try again when it is back.")
        return self._live()

    def _beat(self) -> None:
        if self._lives:
            self._live()
            self._pulse = asyncio.get_running_loop().call_later(PULSE_S, self._beat)

    def _live(self) -> datetime:
        """Let everything happen that the history tells of the time since the last look."""
        now, before = self._clock.now(), self._seen_at
        if now <= before:
            return now
        self._seen_at = now
        if self._lives:
            coming = [
                (point.at, entity_id, point.state)
                for entity_id in self._states
                for point in self._past.coming(entity_id, before, now)
            ]
            for at, entity_id, state in sorted(coming):
                self._put(entity_id, state, {}, at)
        return now

    def _put(self, entity_id: str, state: str, attributes: dict[str, Any], at: datetime) -> None:
        before = self._states.get(entity_id)
        memory = self._memory.setdefault(entity_id, {})
        memory.update(attributes)
        shows = shown(entity_id.partition(".")[0], state, memory)
        if before is not None and (before.state, before.attributes) == (state, shows):
            return
        changed_at = before.changed_at if before is not None and before.state == state else at
        self._states[entity_id] = now = State(entity_id, state, shows, changed_at, at)
        self._emit(StateChanged(entity_id, now))
        for follower in self._followers[entity_id]:
            self._follow(follower, at)

    def _touch(self, entity_id: str, state: str, attributes: dict[str, Any], cause: str) -> None:
        at = self._clock.now()
        self._past.touch(entity_id, Change(at, state, cause))
        self._put(entity_id, state, attributes, at)

    def _follow(self, derived: Derived, at: datetime) -> None:
        entity_id, attribute = derived.entity_id, derived.attribute
        if entity_id not in self._states or any(used not in self._states for used in derived.uses):
            return
        states = [self._states[used].state for used in derived.uses]
        before = self._states[entity_id].state
        if attribute is not None:
            value = derived.value(states, self._memory[entity_id].get(attribute))
            self._put(entity_id, before, {attribute: value}, at)
        elif not self._past.is_touched(entity_id):
            self._put(entity_id, derived.value(states, before), {}, at)

    def _do(self, action: Action, cause: str) -> None:
        service = self._services.get(action.service)
        if service is None:
            raise ServiceFailed(f"Action {action.service} not found.", service=action.service)
        check(service, action.data)
        targets = [] if service.target is None else self._reachable(service, action.entity_ids)
        if self._failing[action.service]:
            raise self._failing[action.service].pop(0)
        if self._ignored[action.service]:
            self._ignored[action.service] -= 1
            return
        self._perform(action, targets, cause)

    def _perform(self, action: Action, targets: list[str], cause: str) -> None:
        match action.service.split("."):
            case ["homeassistant", "restart"]:
                self.disconnect("Home Assistant is restarting")
                self.connect()
            case ["homeassistant", verb]:
                self._turn(verb, targets, cause)
            case ["notify", _]:
                self.notifications.append(action.data)
            case ["todo", verb]:
                for target in targets:
                    self._change_items(verb, target, action.data, cause)
            case ["scene" | "script", "turn_on"] | ["automation", "trigger"] | ["button", "press"]:
                for target in targets:
                    self._run(target, cause)
            case _ if action.service in EFFECTS:
                self._apply(EFFECTS[action.service], targets, action.data, cause)

    def _reachable(self, service: Service, entity_ids: Collection[str]) -> list[str]:
        """Return the entities that can be called, groups as their members; refuse if there are none."""
        if not entity_ids:
            raise ServiceFailed(
                "must contain at least one of entity_id, device_id, area_id, floor_id, label_id.",
                service=service.name,
            )
        groups = {d.entity_id: sorted(d.uses) for d in self._layout.dependants if d.kind == "group"}
        wanted = [m for entity_id in entity_ids for m in groups.get(entity_id, [entity_id])]
        there: list[str] = []
        missing: list[str] = []
        for entity_id in dict.fromkeys(wanted):
            state = self._states.get(entity_id)
            able = state is not None and state.state != UNAVAILABLE
            able = able and (not service.takes or entity_id.partition(".")[0] in service.takes)
            (there if able else missing).append(entity_id)
        if missing:
            message = f"Referenced entities {', '.join(missing)} are missing or not currently available"
            if not there:
                raise ServiceFailed(message, service=service.name)
            self._past.add_log(self._clock.now(), "warning", "homeassistant.helpers.service", message)
        return there

    def _turn(self, verb: str, targets: list[str], cause: str) -> None:
        """Call the service of that name of each entity's own domain."""
        by_domain: dict[str, list[str]] = defaultdict(list)
        for target in targets:
            by_domain[target.partition(".")[0]].append(target)
        unable = [
            e for domain in by_domain if f"{domain}.{verb}" not in self._services for e in by_domain[domain]
        ]
        if unable:
            name = f"homeassistant.{verb}"
            raise ServiceFailed(
                f"The service {name} does not support entities {', '.join(unable)}", service=name
            )
        for domain, entity_ids in by_domain.items():
            self._do(Action(f"{domain}.{verb}", {}, tuple(entity_ids)), cause)

    def _apply(self, effect: Effect, targets: list[str], data: dict[str, Any], cause: str) -> None:
        """Change all entities, or none if one of them refuses."""
        remembering = [replace(self._states[one], attributes=self._memory[one]) for one in targets]
        for target, (state, attributes) in [(one.entity_id, effect(one, data)) for one in remembering]:
            self._touch(target, state, attributes, cause)

    def _run(self, entity_id: str, cause: str) -> None:
        """Do what a scene, a script, an automation does; what fails is in the log, as in Home Assistant."""
        now = self._clock.now()
        state = self._states[entity_id]
        name = str(state.attributes.get("friendly_name", entity_id))
        if state.domain in ("scene", "button"):
            self._touch(entity_id, now.isoformat(), {}, cause)
        else:
            self._touch(entity_id, state.state, {"last_triggered": now.isoformat()}, cause)
        for position, action in enumerate(self._actions.get(entity_id, ()), 1):
            try:
                self._do(action, f"{state.domain} {name}")
            except ServiceFailed as error:
                kind = "Error" if action.service in self._services else "Service not found"
                where = f"{kind} for call_service at pos {position}"
                lines = [f"{name}: Error executing script. {where}: {error}"]
                if state.domain == "automation":
                    lines.append(f"Error while executing automation {entity_id}: {error}")
                for line in lines:
                    self._past.add_log(now, "error", f"homeassistant.components.{entity_id}", line)
                return

    def _change_items(self, verb: str, entity_id: str, data: dict[str, Any], cause: str) -> None:
        items = self.items.setdefault(entity_id, {})
        name = data["item"]
        if verb != "add_item" and name not in items:
            raise ServiceFailed(f"Unable to find to-do list item: {name}", service=f"todo.{verb}")
        status = items.pop(name, "needs_action")
        if verb != "remove_item":
            items[data.get("rename", name)] = data.get("status", status)
        count = sum(status == "needs_action" for status in items.values())
        self._touch(entity_id, str(count), {}, cause)
