"""Twenty sentences to a house, and who plays the model: it knows what it is told, and no more."""

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from benchmarks._home_talk import STARTED_AT
from benchmarks.context import Message
from sash import Runtime
from sash.demo.simulated_home import SimulatedHome
from sash.home.briefing import MIN_CHANGE_RATIO
from sash.home.history import parse_number
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.intents.home_intents import HomeIntents
from sash.intents.memory_intents import MemoryIntents
from sash.ports.home import Entity, State
from sash.ports.intents import Utterance
from sash.ports.model import Answer, ModelRequest
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from sash.values.sessions import SessionPolicy
from tests.large_home import make_large_home

CHANGING, LEAST_CHANGING = 0.01, 2
# Home Assistant ends a conversation after five minutes of silence.
MAX_MINUTES = 4
MAX_SAID = 12
PERMISSIVE = SessionPolicy(
    allow_actuation=True,
    allowlisted_services=("*",),
    require_confirmation=(),
    max_actions_per_minute=None,
)
LOOKS_UP = frozenset({"search_index", "get_states"})


@dataclass(frozen=True)
class Ask:
    """A sentence, and what has to be known and done for it.

    It is about the entities whose ids fit `about`; `search` is how they are found by who does not know them.
    It `reads` their states, or even their attributes, and `then` these tools are called. Without an `answer`
    the states are said.
    """

    said: str
    about: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = True
    attributes: bool = False
    then: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    answer: str = ""

    def meant(self, index: HomeIndex) -> list[Entity]:
        """Return the entities that it is about."""
        return [e for e in index.entities.values() if any(fnmatchcase(e.id, glob) for glob in self.about)]


def command(said: str, entity_id: str, service: str, answer: str, **data: Any) -> Ask:
    """Tell one entity what to do."""
    arguments = {"service": service, "entity_ids": [entity_id]} | ({"data": data} if data else {})
    call = ("call_service", arguments)
    return Ask(said, (entity_id,), {"query": _words(entity_id)}, reads=False, then=(call,), answer=answer)


def question(said: str, entity_id: str, **more: Any) -> Ask:
    """Ask for the state of one entity."""
    return Ask(said, (entity_id,), {"query": _words(entity_id)}, **more)


def history(said: str, entity_id: str, hours: int, answer: str) -> Ask:
    """Ask how an entity was."""
    call = ("get_history", {"entity_ids": [entity_id], "hours": hours})
    return Ask(said, (entity_id,), {"query": _words(entity_id)}, reads=False, then=(call,), answer=answer)


def _words(entity_id: str) -> str:
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

THE_HOUSE = re.compile(r"The house \(.*?\) at \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)\.")
_WITH_MESSAGE = re.compile(r"<context>\n(.*?)\n</context>\n\n\[\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)\] ", re.S)
_TOLD = re.compile(r"\b([a-z_]+\.[a-z0-9_]+)(?: “[^”]*”)? ([^\s;]+)")


class Player:
    """Plays the model: it knows what it is told and what it was asked, and nothing else of the house.

    An id that stands anywhere in the prompt it need not search. A state it believes if it stands in what is
    told of the house, with the changes since then, or in a result of this turn; an older one is old.
    """

    def __init__(self, index: HomeIndex) -> None:
        self.ask = ASKS[0]
        self.unknown = self.wrong = 0
        self._index = index
        self._calls = 0

    def __call__(self, request: ModelRequest) -> Answer:
        ask, own = self.ask, _own(request.messages)
        done = [call["function"]["name"] for m in own for call in m.get("tool_calls", ())]
        meant = [entity.id for entity in ask.meant(self._index)]
        text = json.dumps(request.messages, ensure_ascii=False)
        known = [entity_id for entity_id in meant if entity_id in text]
        if len(known) < len(meant) and "search_index" not in done:
            return self._call("search_index", ask.search)
        states = _told(request.messages, own)
        asked = known if ask.attributes else [entity_id for entity_id in known if entity_id not in states]
        if ask.reads and asked and "get_states" not in done:
            return self._call("get_states", {"entity_ids": asked})
        if ask.then and ask.then[-1][0] not in done:
            return both(*(self._call(name, arguments) for name, arguments in ask.then))
        if ask.reads and not ask.then:
            self._check(states, meant)
        if ask.answer:
            return Answer(ask.answer)
        said = ", ".join(f"{_words(e)}: {states[e]}" for e in known[:MAX_SAID] if e in states)
        return Answer(f"{said[:1].upper()}{said[1:]}.")

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        self._calls += 1
        return calling(name, f"call_{self._calls:024x}", **arguments)

    def _check(self, states: Mapping[str, str], meant: Iterable[str]) -> None:
        """Count what is answered without all states, and what is answered with another one than is so."""
        told = {entity_id: states.get(entity_id) for entity_id in meant}
        self.unknown += None in told.values()
        self.wrong += any(
            state is not None and not _alike(state, self._index.get_state(entity_id))
            for entity_id, state in told.items()
        )


def _own(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of the turn under way, from the question on."""
    return messages[max(n for n, message in enumerate(messages) if message["role"] == "user") :]


def _told(messages: Sequence[Message], own: Sequence[Message]) -> dict[str, str]:
    """Read the states that a prompt tells."""
    states: dict[str, str] = {}
    since = ""
    for message in messages:
        text = message["content"]
        if message["role"] == "system" and (house := THE_HOUSE.match(text)):
            since, states = house[1], dict(_TOLD.findall(text))
        elif message["role"] == "user" and (news := _WITH_MESSAGE.match(text)) and news[2] > since:
            states |= dict(_TOLD.findall(news[1]))
    for message in own:
        if message["role"] == "tool" and message["name"] in LOOKS_UP and message["content"].startswith("{"):
            found = json.loads(message["content"]).get("entities", ())
            states |= {entity["entity_id"]: entity["state"] for entity in found}
    return states


def _alike(told: str, state: str) -> bool:
    """Whether a state is so; a number that has hardly moved is not told again."""
    one, other = parse_number(told), parse_number(state)
    if one is None or other is None:
        return told == state
    return abs(one - other) <= MIN_CHANGE_RATIO * max(abs(one), 1.0) * 1.001


@dataclass(frozen=True)
class Played:
    """A turn as it was played to Sash: its prompts, and what the others need to have the same one.

    `states` are those before the turn, `steps` each plan with its results.
    """

    ask: Ask
    states: dict[str, State]
    prompts: list[list[Message]]
    user: Message
    steps: list[list[Message]]
    answer: Message
    understood: bool


class Talk(NamedTuple):
    """All turns in a house, with its index, the schemas of Sash's tools, and what was answered wrongly."""

    turns: list[Played]
    index: HomeIndex
    tools: list[Message]
    unknown: int
    wrong: int


async def play_sash(size: int) -> Talk:
    """Say all sentences to a runtime with a house, in which something changes between them."""
    clock, rng = FakeClock(STARTED_AT), random.Random(5)
    home = make_large_home(size, clock)
    turns: list[Played] = []
    model = ScriptedModel(lambda request: player(request))
    store, intents = MemoryStore(clock=clock), [MemoryIntents()]
    async with Runtime(store, model, home=home, intents=intents, clock=clock, time_zone=UTC) as runtime:
        known: LiveHome = runtime.home  # type: ignore[assignment]
        index = await known.wait_until_ready()
        player, local = Player(index), HomeIntents(known, clock=clock)
        session = await runtime.start_session(policy=PERMISSIVE)
        tools = runtime._parts.tools  # noqa: SLF001
        for ask in ASKS:
            states, asked = dict(index.states), len(model.requests)
            understood = await local.understand(Utterance(ask.said, session, tools.names))
            player.ask = ask
            sent = await runtime.send_message(session.id, ask.said)
            result = await runtime.await_continuation(sent.id)
            if result.response is None or result.response.stopped_by or len(model.requests) == asked:
                raise SystemExit(f"{size}: {ask.said}: {result}")
            if any(action.outcome != "done" for action in result.response.actions):
                raise SystemExit(f"{size}: {ask.said}: {result.response.actions}")
            prompts = [request.messages for request in model.requests[asked:]]
            user, *own = _own(prompts[-1])
            user = user | {"content": user["content"].rpartition("</context>\n\n")[2]}
            answer = {"role": "assistant", "content": result.response.final_message}
            turns.append(Played(ask, states, prompts, user, _steps(own), answer, understood is not None))
            clock.advance(60 * rng.randint(1, MAX_MINUTES))
            change(home, index, rng, max(LEAST_CHANGING, round(size * CHANGING)))
        return Talk(turns, index, tools.schemas, player.unknown, player.wrong)


def _steps(own: Sequence[Message]) -> list[list[Message]]:
    """Split the messages of a turn into plans with their results."""
    steps: list[list[Message]] = []
    for message in own:
        if message["role"] == "assistant":
            steps.append([])
        steps[-1].append(message)
    return steps


def change(home: SimulatedHome, index: HomeIndex, rng: random.Random, count: int) -> None:
    """Let some entities have another state."""
    for entity_id in rng.sample(sorted(index.entities), count):
        home.set_state(entity_id, _other(entity_id.partition(".")[0], index.get_state(entity_id), rng))


def _other(domain: str, state: str, rng: random.Random) -> str:
    if (value := parse_number(state)) is not None:
        return f"{max(value, 1.0) * rng.uniform(0.85, 1.15):.1f}"
    states = {"cover": ("open", "closed"), "climate": ("heat", "off"), "media_player": ("playing", "paused")}
    return next(other for other in states.get(domain, ("on", "off")) if other != state)


# What Home Assistant's prompt has of an entity's attributes.
