"""A small home for tests of sentences, with one or two entities of every controllable domain."""

import json
from datetime import UTC, datetime
from typing import Any

from sash.engine.turn.caller import find_place
from sash.errors import HomeUnavailable
from sash.home.index import HomeIndex
from sash.intents.home_intents import HomeIntents
from sash.intents.vocabulary import Vocabulary
from sash.ports.home import Area, Entity, Floor, Layout, State
from sash.ports.intents import LocalCallResult, Utterance
from sash.ports.model import Answer
from sash.testing import FakeClock
from sash.values.continuations import ContinuationRequest
from sash.values.sessions import Session

NOW = datetime(2026, 3, 5, 14, 7, tzinfo=UTC)
TOOLS = frozenset({"call_service", "get_states"})

AREAS = (
    Area("kitchen", "Kitchen", "ground", ("Küche", "cuisine", "cocina", "cucina")),
    Area("living_room", "Living Room", "ground", ("lounge",)),
    Area("hall", "Hall", "ground"),
    Area("bedroom", "Bedroom", "first"),
    Area("office", "Office", "first"),
    Area("garage", "Garage"),
)
FLOORS = (Floor("ground", "Ground Floor", ("downstairs",)), Floor("first", "First Floor", ("upstairs",)))

# Entity id, name, area, state, attributes; further names are aliases.
THINGS: tuple[tuple[str, str | tuple[str, ...], str | None, str, dict[str, Any]], ...] = (
    (
        "light.kitchen",
        (
            "Kitchen Light",
            "Küchenlicht",
            "lampe de cuisine",
            "luz de cocina",
            "luce cucina",
            "кухонный свет",
            "厨房灯",
        ),
        "kitchen",
        "on",
        {"supported_color_modes": ["hs", "color_temp"]},
    ),
    ("light.spots", ("Spots", "Kitchen Spots"), "kitchen", "off", {"supported_color_modes": ["brightness"]}),
    ("light.pantry", "Pantry", "kitchen", "unavailable", {}),
    ("light.bedside", "Lamp", "bedroom", "off", {"supported_color_modes": ["brightness"]}),
    ("light.desk", "Lamp", "office", "off", {"supported_color_modes": ["onoff"]}),
    ("fan.bedroom", "Bedroom Fan", "bedroom", "off", {"supported_features": 49}),
    ("switch.coffee", "Coffee Machine", "kitchen", "off", {}),
    ("switch.tv", "Telly", "bedroom", "off", {}),
    ("input_boolean.guests", "Guest Mode", None, "off", {}),
    ("cover.garage", "Garage Door", "garage", "closed", {"device_class": "garage", "supported_features": 3}),
    ("cover.left", "Left Blind", "bedroom", "open", {"device_class": "blind", "supported_features": 7}),
    ("cover.right", "Right Blind", "bedroom", "open", {"device_class": "blind", "supported_features": 0}),
    ("cover.curtain", "Curtain", "bedroom", "open", {"device_class": "curtain", "supported_features": 7}),
    ("valve.water", "Water Valve", "hall", "open", {"supported_features": 3}),
    ("lock.front", "Front Door", "hall", "unlocked", {}),
    (
        "media_player.tv",
        "TV",
        "living_room",
        "playing",
        {"supported_features": 1 | 4 | 8 | 16 | 32 | 128 | 256 | 1024 | 16384, "volume_level": 0.3},
    ),
    ("media_player.radio", "Radio", "living_room", "idle", {"supported_features": 4, "volume_level": 0.5}),
    (
        "climate.living_room",
        "Thermostat",
        "living_room",
        "heat",
        {
            "current_temperature": 21.5,
            "temperature": 20,
            "supported_features": 9,
            "fan_modes": ["low", "auto"],
        },
    ),
    (
        "sensor.outside",
        "Outside",
        None,
        "12.345678",
        {"device_class": "temperature", "unit_of_measurement": "°C"},
    ),
    (
        "sensor.kitchen",
        "Kitchen Thermometer",
        "kitchen",
        "20.1",
        {"device_class": "temperature", "unit_of_measurement": "°C"},
    ),
    ("binary_sensor.window", "Hall Window", "hall", "on", {"device_class": "window"}),
    ("person.anna", "Anna", None, "not_home", {}),
    ("weather.home", "Home", None, "sunny", {"temperature": 20, "temperature_unit": "°C"}),
    ("scene.movie", "Movie Time", None, "unknown", {}),
    ("script.night", "Good Night", None, "off", {}),
    ("automation.away", "Away Lights", None, "on", {}),
    ("button.bell", "Bell", "hall", "unknown", {}),
    ("todo.shopping_list", "Shopping List", None, "3", {"supported_features": 7}),
    ("todo.work", "Work", None, "1", {"supported_features": 7}),
    ("vacuum.robbie", "Robbie", "hall", "docked", {"supported_features": 8192 | 16}),
    ("lawn_mower.clippy", "Clippy", None, "docked", {"supported_features": 7}),
)


def make_index(*more: tuple[Entity, State], language: str = "en") -> HomeIndex:
    """Return the index of the home, with additional entities."""
    entities, states = [], []
    for entity_id, named, area_id, state, attributes in THINGS:
        name, *aliases = (named,) if isinstance(named, str) else named
        entities.append(Entity(entity_id, name, area_id, aliases=tuple(aliases)))
        states.append(make_state(entity_id, state, **attributes))
    entities += [entity for entity, _ in more]
    states += [state for _, state in more]
    return HomeIndex(Layout("house", tuple(entities), areas=AREAS, floors=FLOORS, language=language), states)


def make_state(entity_id: str, state: str, **attributes: Any) -> State:
    return State(entity_id, state, attributes, NOW, NOW)


class House:
    """A home that understands sentences. It is unavailable while `is_away` is True."""

    def __init__(
        self,
        index: HomeIndex | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        **said: Any,
    ) -> None:
        self._index = index or make_index()
        self.is_away = False
        self.language: str | None = said.get("language")
        self.area: str | None = said.get("area")
        self.intents = HomeIntents(self, vocabulary=vocabulary, clock=FakeClock(NOW), time_zone=UTC)

    @property
    def index(self) -> HomeIndex:
        if self.is_away:
            raise HomeUnavailable("the house is away")
        return self._index

    @index.setter
    def index(self, index: HomeIndex) -> None:
        self._index = index

    def session(self) -> Session:
        preferences = {"language": self.language} if self.language else {}
        return Session("s", "o", NOW, NOW, preferences=preferences, area=self.area)

    async def hear(
        self, text: str, *results: LocalCallResult, tools: frozenset[str] = TOOLS
    ) -> Answer | None:
        session = self.session()
        area, language = find_place(session, ContinuationRequest(text))
        return await self.intents.understand(Utterance(text, session, tools, results, area, language))

    async def calls(self, text: str) -> list[tuple[str, list[str], dict[str, Any]]] | None:
        """Return the service calls of a sentence; None if it is not understood."""
        answer = await self.hear(text)
        if answer is None:
            return None
        assert answer.local
        assert not answer.content, f"{text!r} is answered: {answer.content}"
        assert [call["id"] for call in answer.tool_calls] == [
            f"local-{n}" for n in range(1, len(answer.tool_calls) + 1)
        ]
        read = [json.loads(call["function"]["arguments"]) for call in answer.tool_calls]
        return [(call["service"], call["entity_ids"], call["data"]) for call in read]

    async def says(self, text: str) -> str | None:
        """Return the answer to a question; None if it is not understood."""
        answer = await self.hear(text)
        if answer is None:
            return None
        assert answer.local
        assert not answer.tool_calls, f"{text!r} calls {answer.tool_calls}"
        return answer.content

    async def does(self, text: str, after: str = "on", verified: bool | None = True) -> str | None:
        """Return the answer after the calls were made."""
        calls = await self.calls(text)
        assert calls, f"{text!r} calls nothing"
        results = [made(service, ids, after, self._index, verified) for service, ids, _ in calls]
        answer = await self.hear(text, *results)
        return answer.content if answer else None


def made(
    service: str, entity_ids: list[str], after: str, index: HomeIndex, verified: bool | None = True
) -> LocalCallResult:
    """Return a result of `call_service`."""
    entities = [
        {"entity_id": i, "name": index.entities[i].name, "before": index.get_state(i), "after": after}
        for i in entity_ids
    ]
    return LocalCallResult(
        "call_service", json.dumps({"service": service, "entities": entities, "verified": verified})
    )
