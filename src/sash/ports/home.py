"""The home port: what a house has, what it says, and what can be asked of it.

Promises, for every adapter:

* `open` returns at once, whether the house can be reached or not. The adapter connects by itself, again and
  again, and says so by events: `Connected` when it can be asked (from then on every change is an event),
  `Disconnected` when it cannot.
* What is asked while there is no connection raises `HomeUnavailable` (for a wrong token `HomeUnauthorized`):
  the error says what is wrong and what to do.
* Listeners are called in the order of the events, from the event loop, and must not wait.
* An adapter knows nothing of policies: who calls a service has asked before whether it may.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

UNAVAILABLE = "unavailable"
UNKNOWN = "unknown"
NO_STATE = frozenset({UNAVAILABLE, UNKNOWN})

# Whatever is shaped like an entity's id; services are, too.
ANY_ID = re.compile(r"\b[a-z0-9_]+\.[a-z0-9_]+\b")
# An entity's id, as far as it can be told from other words with a dot.
ENTITY_ID = re.compile(
    r"\b(?:alarm_control_panel|assist_satellite|automation|binary_sensor|button|calendar|camera|climate|counter"
    r"|cover|date|datetime|device_tracker|event"
    r"|fan|group|humidifier|image|input_(?:boolean|button|datetime|number|select|text)|lawn_mower|light|lock"
    r"|media_player|number|person|remote|scene|schedule|script|select|sensor|siren|sun|switch|text|time|timer|todo|update"
    r"|vacuum|valve|water_heater|weather|zone)\.[a-z0-9_]+\b"
)


@dataclass(frozen=True, slots=True)
class State:
    """What an entity says of itself: `state` since `changed_at`, its attributes since `updated_at`."""

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
    """An entity as the house registers it. `area_id` is its own, or else that of its device.

    Only an `exposed` entity exists for the agent. `platform` is the integration that it comes from.
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
    """A thing with some entities. `via_id` is the device that it is reached by: a hub, a bridge."""

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
class Dependant:
    """What works with other entities: an automation, a script, a scene, a group, a template.

    `services` are those that an automation or a script calls.
    """

    entity_id: str
    name: str
    kind: Literal["automation", "script", "scene", "group", "template"]
    uses: frozenset[str]
    services: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Layout:
    """What the house is made of. It has an `Entity` for every entity that has a state.

    `labels` are names by label id. `language` is that of the house, such as "en" or "de".
    """

    name: str
    entities: tuple[Entity, ...] = ()
    devices: tuple[Device, ...] = ()
    areas: tuple[Area, ...] = ()
    floors: tuple[Floor, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    dependants: tuple[Dependant, ...] = ()
    language: str = "en"


@dataclass(frozen=True, slots=True)
class ServiceField:
    """An argument of a service. `selector` says what it takes, as Home Assistant writes it."""

    description: str = ""
    required: bool = False
    selector: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """What can be done: `light.turn_on`. `target` says which entities it takes; None if it takes none."""

    name: str
    description: str = ""
    fields: dict[str, ServiceField] = field(default_factory=dict)
    target: dict[str, Any] | None = None

    @property
    def domain(self) -> str:
        return self.name.partition(".")[0]

    @property
    def takes(self) -> frozenset[str]:
        """The domains of the entities that it can be done to; of all, if there are none."""
        filters = _listed((self.target or {}).get("entity"))
        return frozenset(domain for wanted in filters for domain in _listed(wanted.get("domain")))


@dataclass(frozen=True, slots=True)
class Point:
    """What an entity's state was from a moment on."""

    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class LogbookEntry:
    """Something that happened in the house, in words.

    `cause` is what made it happen, if that is known; if that was an entity, `cause_id` is which.
    """

    at: datetime
    name: str
    message: str
    entity_id: str | None = None
    cause: str = ""
    cause_id: str | None = None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of the house's system log; the same line is there once, with how often it came."""

    at: datetime
    first_at: datetime
    level: Literal["warning", "error", "critical"]
    source: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Connected:
    """The house can be asked."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The house cannot be asked, and why: it cannot be reached, or it has `refused` the token."""

    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class StateChanged:
    """An entity has a new state, or is gone (None)."""

    entity_id: str
    state: State | None


@dataclass(frozen=True, slots=True)
class LayoutChanged:
    """Something was added, named, moved, exposed or removed: the layout has to be read again."""


HomeEvent = Connected | Disconnected | StateChanged | LayoutChanged
Listener = Callable[[HomeEvent], None]


class Home(Protocol):
    """A house. See the module's docstring for what every adapter promises."""

    @property
    def name(self) -> str:
        """Which house this is, for people: "the demo house", "Home Assistant at http://…"."""

    async def open(self) -> None:
        """Begin to connect."""

    async def close(self) -> None:
        """Let go."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener what happens, until the function that is returned is called.

        If the house can be asked already, it is told so at once.
        """

    async def layout(self) -> Layout: ...

    async def states(self) -> list[State]: ...

    async def state(self, entity_id: str) -> State | None:
        """Ask for one state anew; None if there is no such entity."""

    async def services(self) -> dict[str, Service]:
        """Return the services by name."""

    async def call(self, service: str, data: dict[str, Any], entity_ids: Collection[str] = ()) -> None:
        """Call a service and wait until it is done; `ServiceFailed` with the house's own words."""

    async def history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[Point]]:
        """Return the states of entities over time; the first point is the state at `start`, if known."""

    async def logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        """Return what happened, oldest first: in the whole house, or to some entities."""

    async def log(self) -> list[LogRecord]:
        """Return the lines of the system log that the house still has, oldest first."""


def _listed(value: Any) -> list[Any]:
    """Home Assistant writes one for a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
