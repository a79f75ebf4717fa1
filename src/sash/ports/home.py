"""The home port: the entities of a home, their states, and the services it offers.

Every adapter keeps these promises:

* `open` returns at once, even if the home cannot be reached. The adapter connects by itself and retries.
  It emits `Connected` when the home answers requests, and from then on emits an event for every change.
  It emits `Disconnected` when the home stops answering.
* A request without a connection raises `HomeUnavailable`, or `HomeUnauthorized` if the token is refused.
  The error states the cause and the remedy.
* Listeners run in the order of the events, on the event loop, and must not block.
* An adapter does not apply policies. The caller checks the policy before it calls a service.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from sash.values.continuations import TurnCaller

UNAVAILABLE = "unavailable"
UNKNOWN = "unknown"
NO_STATE = frozenset({UNAVAILABLE, UNKNOWN})

# Stands for a service that cannot be told. `light.*` stands for any service of a domain.
ANY_SERVICE = "*"
# Matches the form of an entity id. Service names have the same form.
ID_PATTERN = re.compile(r"\b[a-z0-9_]+\.[a-z0-9_]+\b")
# Matches an entity id by its known domain, so that other words with a dot do not match.
ENTITY_ID_PATTERN = re.compile(
    r"\b(?:alarm_control_panel|assist_satellite|automation|binary_sensor|button|calendar|camera|climate|counter"
    r"|cover|date|datetime|device_tracker|event"
    r"|fan|group|humidifier|image|input_(?:boolean|button|datetime|number|select|text)|lawn_mower|light|lock"
    r"|media_player|number|person|remote|scene|schedule|script|select|sensor|siren|sun|switch|text|time|timer|todo|update"
    r"|vacuum|valve|water_heater|weather|zone)\.[a-z0-9_]+\b"
)


@dataclass(frozen=True, slots=True)
class State:
    """The state of an entity, held since `changed_at`. Its attributes changed last at `updated_at`."""

    entity_id: str
    state: str
    attributes: dict[str, Any]
    changed_at: datetime
    updated_at: datetime

    @property
    def domain(self) -> str:
        return self.entity_id.partition(".")[0]

    @property
    def unit(self) -> str:
        return str(self.attributes.get("unit_of_measurement") or "")


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity of the registry. `area_id` is its own area, or else the area of its device.

    `labels` are its own and those of its device and its area: Home Assistant applies a label to all of them.
    The agent sees only `exposed` entities. `platform` names the integration that provides the entity.
    """

    id: str
    name: str
    area_id: str | None = None
    device_id: str | None = None
    aliases: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    exposed: bool = True
    platform: str = ""

    @property
    def domain(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Device:
    """A device with its entities. `via_id` is the hub or bridge that connects it."""

    id: str
    name: str
    area_id: str | None = None
    manufacturer: str = ""
    model: str = ""
    via_id: str | None = None


@dataclass(frozen=True, slots=True)
class Area:
    id: str
    name: str
    floor_id: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Floor:
    id: str
    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dependent:
    """An automation, script, scene, group or template that uses other entities.

    `uses` holds the ids of those entities. `services` holds the services that an automation, a script or the
    actions of a template call, and `ANY_SERVICE` if they cannot be told. `acts_on` holds the entities that
    the actions of a template use: it may only read the others.
    """

    entity_id: str
    name: str
    kind: Literal["automation", "script", "scene", "group", "template"]
    uses: frozenset[str]
    services: frozenset[str] = frozenset()
    acts_on: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Layout:
    """The registries of a home. Every entity that has a state also has an `Entity` here.

    `labels` maps label ids to names. `language` is the language of the home, such as "en" or "de".
    `time_zone` is its time zone, such as "Europe/Berlin", or None if unknown. `temperature_unit` is the unit
    of the thermostats, which have none of their own.
    """

    name: str
    entities: tuple[Entity, ...] = ()
    devices: tuple[Device, ...] = ()
    areas: tuple[Area, ...] = ()
    floors: tuple[Floor, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    dependents: tuple[Dependent, ...] = ()
    language: str = "en"
    time_zone: str | None = None
    temperature_unit: str = "°C"


@dataclass(frozen=True, slots=True)
class ServiceField:
    """An argument of a service. `selector` describes valid values in Home Assistant's own format."""

    description: str = ""
    required: bool = False
    selector: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """A service such as `light.turn_on`. `target` describes the entities that it accepts, or is None.

    `response` says whether it returns data. A service with the response `only` changes nothing, for example
    `weather.get_forecasts`.
    """

    name: str
    description: str = ""
    fields: dict[str, ServiceField] = field(default_factory=dict)
    target: dict[str, Any] | None = None
    response: Literal["none", "optional", "only"] = "none"

    @property
    def domain(self) -> str:
        return self.name.partition(".")[0]

    @property
    def target_domains(self) -> frozenset[str]:
        """The entity domains that the service accepts. Empty if it accepts every domain."""
        filters = _as_list((self.target or {}).get("entity"))
        return frozenset(domain for entry in filters for domain in _as_list(entry.get("domain")))


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A state that an entity took at a point in time."""

    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class HourlyStatistics:
    """The long-term statistics of an entity for one hour, from `start`.

    A measurement has `mean`, `min` and `max`. A meter has `sum`, its total at the end of the hour, and
    `change`, the consumption within the hour. The other fields are None.
    """

    start: datetime
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    sum: float | None = None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class LogbookEntry:
    """An event in the home, described in words.

    `cause` describes the trigger in words; it is empty if the trigger is unknown. `cause_id` is the id of the
    entity that triggered the event, or None. `user` is the name of the user who caused the event, if known.
    """

    at: datetime
    name: str
    message: str
    entity_id: str | None = None
    cause: str = ""
    cause_id: str | None = None
    user: str = ""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of the system log. Repeated lines form one record with a `count`."""

    at: datetime
    first_at: datetime
    level: Literal["warning", "error", "critical"]
    source: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Connected:
    """The home answers requests now."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The home does not answer requests. `reason` is a sentence for users."""

    reason: str
    is_token_refused: bool = False


@dataclass(frozen=True, slots=True)
class StateChanged:
    """An entity has a new state. `state` is None if the entity was removed."""

    entity_id: str
    state: State | None


@dataclass(frozen=True, slots=True)
class LayoutChanged:
    """The registries or the exposure of entities changed. The layout must be read again."""


HomeEvent = Connected | Disconnected | StateChanged | LayoutChanged
Listener = Callable[[HomeEvent], None]


class Home(Protocol):
    """A home. The module docstring lists the promises of every adapter."""

    @property
    def name(self) -> str:
        """The name shown to users: "the demo house", "Home Assistant at http://…"."""

    async def open(self) -> None:
        """Start to connect in the background."""

    async def close(self) -> None:
        """Disconnect and release all resources."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Send every event to the listener. Return a function that ends the subscription.

        The listener receives `Connected` at once if the home is connected.
        """

    async def get_layout(self) -> Layout: ...

    async def get_states(self) -> list[State]: ...

    async def get_state(self, entity_id: str) -> State | None:
        """Read one state from the home, not from a cache. Return None if there is no such entity."""

    async def get_services(self) -> dict[str, Service]:
        """Return the services by name."""

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
        """Call a service and wait until it has finished. Return its response if it is asked for.

        `caller` is the user who asked for the call, and `turn_id` the turn in which it is made. A home that
        records them shows the caller in its logbook, and finds the turn of a change. Raises `ServiceFailed`
        with the home's own message, or `HomeUnavailable`. If the caller of this method is cancelled, the call
        may run on in the home.
        """

    async def get_history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HistoryPoint]]:
        """Return the states over time, by entity id. The first point is the state at `start`, if known."""

    async def get_statistics(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HourlyStatistics]]:
        """Return the long-term statistics by entity id, for each hour that begins in the span, oldest first.

        An entity without statistics has an empty list.
        """

    async def get_logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        """Return the logbook of these entities, or of the whole home without ids, oldest entry first."""

    async def get_log(self) -> list[LogRecord]:
        """Return the system log that the home still holds, oldest record first."""


def _as_list(value: Any) -> list[Any]:
    """Return a list. Home Assistant writes a list of one as the value itself, and may omit an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
