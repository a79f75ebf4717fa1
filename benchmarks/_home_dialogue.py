"""The twenty sentences of the home benchmark, with the entities, tools and answers that belong to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from sash.home.index import HomeIndex
from sash.ports.home import Entity


@dataclass(frozen=True)
class Ask:
    """A sentence, and the information and the tool calls that its answer needs.

    `about` are patterns of entity ids. `search` are the arguments of `search_index` that find these entities.
    With `reads`, the answer needs their states; with `attributes`, also their attributes. `then` are the
    tools that are called last. Without an `answer`, the answer lists the states.
    """

    sentence: str
    about: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = True
    attributes: bool = False
    then: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    answer: str = ""

    def find_entities(self, index: HomeIndex) -> list[Entity]:
        """Return the entities that the sentence is about."""
        return [
            e for e in index.entities.values() if any(fnmatchcase(e.id, pattern) for pattern in self.about)
        ]


def command(sentence: str, entity_id: str, service: str, answer: str, **data: Any) -> Ask:
    """Return a command to one entity."""
    arguments = {"service": service, "entity_ids": [entity_id]} | ({"data": data} if data else {})
    call = ("call_service", arguments)
    search = {"query": to_words(entity_id)}
    return Ask(sentence, (entity_id,), search, reads=False, then=(call,), answer=answer)


def question(sentence: str, entity_id: str, **options: Any) -> Ask:
    """Return a question about the state of one entity."""
    return Ask(sentence, (entity_id,), {"query": to_words(entity_id)}, **options)


def history(sentence: str, entity_id: str, hours: int, answer: str) -> Ask:
    """Return a question about the past of one entity."""
    call = ("get_history", {"entity_ids": [entity_id], "hours": hours})
    search = {"query": to_words(entity_id)}
    return Ask(sentence, (entity_id,), search, reads=False, then=(call,), answer=answer)


def to_words(entity_id: str) -> str:
    """Return the words of an entity id, without its domain."""
    return entity_id.partition(".")[2].replace("_", " ")


ASKS = (
    command(
        "Turn on the Kitchen 1 ceiling light.",
        "light.kitchen_1_ceiling_light",
        "light.turn_on",
        "The ceiling light in kitchen 1 is on now.",
    ),
    question("Is the Bathroom 1 window open?", "binary_sensor.bathroom_1_window"),
    question("What is the temperature in Bedroom 1?", "sensor.bedroom_1_temperature"),
    command(
        "It is too bright in Living room 1: dim the floor lamp to about a third.",
        "light.living_room_1_floor_lamp",
        "light.turn_on",
        "I have dimmed the floor lamp in living room 1 to 33 %.",
        brightness_pct=33,
    ),
    Ask(
        "Which lights are on in Kitchen 1?",
        ("light.kitchen_1_*",),
        {"area": "Kitchen 1", "domain": "light"},
    ),
    command(
        "Close the Bedroom 1 blind.",
        "cover.bedroom_1_blind",
        "cover.close_cover",
        "The blind in bedroom 1 is closed now.",
    ),
    history(
        "When was somebody in Kitchen 1 last?",
        "binary_sensor.kitchen_1_motion",
        12,
        "There was no movement in kitchen 1 that I could see in the last twelve hours.",
    ),
    question("How humid is it in Bathroom 1, and does that matter?", "sensor.bathroom_1_humidity"),
    command(
        "Set the Living room 1 thermostat to 22 degrees.",
        "climate.living_room_1_thermostat",
        "climate.set_temperature",
        "I have set the thermostat in living room 1 to 22 degrees.",
        temperature=22,
    ),
    Ask(
        "Thanks. What have you changed so far today?",
        answer="The ceiling light in kitchen 1 went on, the floor lamp in living room 1 was dimmed to 33 %,"
        " the blind in bedroom 1 closed, and the thermostat in living room 1 set to 22 degrees.",
    ),
    question("Is much power drawn at the socket in Living room 1?", "sensor.living_room_1_socket_power"),
    Ask(
        "I am leaving Bathroom 1, turn off whatever is still on there.",
        ("light.bathroom_1_*", "switch.bathroom_1_*"),
        {"area": "Bathroom 1", "limit": 20},
        then=(
            ("call_service", {"service": "light.turn_off", "areas": ["Bathroom 1"]}),
            ("call_service", {"service": "switch.turn_off", "areas": ["Bathroom 1"]}),
        ),
        answer="I have turned off the lights and the socket in bathroom 1.",
    ),
    history(
        "How did the temperature in Bedroom 1 develop since this morning?",
        "sensor.bedroom_1_temperature",
        6,
        "It was quite even in bedroom 1: between 21 and 22 degrees since this morning.",
    ),
    Ask(
        "Which windows are open?",
        ("binary_sensor.*_window",),
        {"query": "window", "domain": "binary_sensor", "limit": 50},
    ),
    command(
        "Make the Bedroom 1 speaker quieter, ten percent or so.",
        "media_player.bedroom_1_speaker",
        "media_player.volume_set",
        "The speaker in bedroom 1 is at ten percent now.",
        volume_level=0.1,
    ),
    question("How warm is it in Office 1?", "sensor.office_1_temperature"),
    question(
        "How bright is the Living room 1 floor lamp, and how warm is its light?",
        "light.living_room_1_floor_lamp",
        attributes=True,
    ),
    Ask(
        "Is everything off in Kitchen 1?",
        ("light.kitchen_1_*", "switch.kitchen_1_*", "media_player.kitchen_1_*"),
        {"area": "Kitchen 1", "limit": 20},
    ),
    command(
        "Turn the Kitchen 1 ceiling light off again, please.",
        "light.kitchen_1_ceiling_light",
        "light.turn_off",
        "The ceiling light in kitchen 1 is off now.",
    ),
    Ask(
        "Good night. Is anything still on in Living room 1?",
        ("light.living_room_1_*", "switch.living_room_1_*", "media_player.living_room_1_*"),
        {"area": "Living room 1", "limit": 20},
    ),
)
