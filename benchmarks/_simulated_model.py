"""Runs the dialogue of the home benchmark with Sash and a simulated model that knows only its prompt."""

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, NamedTuple

from benchmarks._conversations import STARTED_AT
from benchmarks._home_dialogue import ASKS, Ask, to_words
from benchmarks._prompt_cache import Message
from sash import Runtime
from sash.demo.simulated_home import SimulatedHome
from sash.home.briefing import MIN_CHANGE_RATIO
from sash.home.history import parse_number
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.home.state_text import StateText, read_state_text
from sash.intents.home_intents import HomeIntents
from sash.intents.memory_intents import MemoryIntents
from sash.ports.home import State
from sash.ports.intents import Utterance
from sash.ports.model import Answer, ModelRequest
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from sash.values.sessions import SessionPolicy
from tests.large_home import make_large_home

# Between two sentences this share of the entities changes, and at least this many.
CHANGED_SHARE, MIN_CHANGED = 0.01, 2
# Home Assistant ends a conversation after five minutes without a message.
MAX_PAUSE_MINUTES = 4
MAX_STATES_IN_ANSWER = 12
PERMISSIVE = SessionPolicy(
    allow_actuation=True,
    allowlisted_services=("*",),
    require_confirmation=(),
    max_actions_per_minute=None,
)
LOOKUP_TOOLS = frozenset({"search_index", "get_states"})

HOME_OVERVIEW = re.compile(r"The home .*? at \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)\.")
_CHANGES = re.compile(r"<context>\n(.*?)\n</context>\n\n\[\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)\] ", re.S)
_STATE = re.compile(r"\b([a-z_]+\.[a-z0-9_]+)(?: “[^”]*”)?(?: ((?:[a-z_]+, )?[^;\n]+))?(?=;|$)", re.M)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class SimulatedModel:
    """A model that knows only its prompt.

    It does not search for an entity id that is anywhere in the prompt. It uses a state from the overview of
    the home, from the later changes, or from a result of this turn. It ignores older results.
    """

    def __init__(self, index: HomeIndex) -> None:
        self.ask = ASKS[0]
        self.incomplete_answers = self.wrong_answers = 0
        self._index = index
        self._calls = 0

    def __call__(self, request: ModelRequest) -> Answer:
        ask, own = self.ask, _own_messages(request.messages)
        called = [call["function"]["name"] for m in own for call in m.get("tool_calls", ())]
        entity_ids = [entity.id for entity in ask.find_entities(self._index)]
        text = json.dumps(request.messages, ensure_ascii=False)
        known_ids = [entity_id for entity_id in entity_ids if entity_id in text]
        if len(known_ids) < len(entity_ids) and "search_index" not in called:
            return self._call("search_index", ask.search)
        states = _read_states(request.messages, own)
        missing = [entity_id for entity_id in known_ids if ask.attributes or entity_id not in states]
        if ask.reads and missing and "get_states" not in called:
            return self._call("get_states", {"entity_ids": missing})
        if ask.then and ask.then[-1][0] not in called:
            return both(*(self._call(name, arguments) for name, arguments in ask.then))
        if ask.reads and not ask.then:
            self._check(states, entity_ids)
        if ask.answer:
            return Answer(ask.answer)
        answer = ", ".join(
            f"{to_words(e)}: {states[e]}" for e in known_ids[:MAX_STATES_IN_ANSWER] if e in states
        )
        return Answer(f"{answer[:1].upper()}{answer[1:]}.")

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        self._calls += 1
        return calling(name, f"call_{self._calls:024x}", **arguments)

    def _check(self, states: Mapping[str, str], entity_ids: Iterable[str]) -> None:
        """Count answers that lack a state, and answers with a wrong state."""
        believed = {entity_id: states.get(entity_id) for entity_id in entity_ids}
        self.incomplete_answers += None in believed.values()
        self.wrong_answers += any(
            state is not None and not _is_correct(state, read_state_text(self._index, entity_id))
            for entity_id, state in believed.items()
        )


def _own_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of the running turn, from the question on."""
    return messages[max(n for n, message in enumerate(messages) if message["role"] == "user") :]


def _read_states(messages: Sequence[Message], own: Sequence[Message]) -> dict[str, str]:
    """Return the current states in a prompt, by entity id."""
    states: dict[str, str] = {}
    written_at = ""
    for message in messages:
        text = message["content"]
        if message["role"] == "system" and (overview := HOME_OVERVIEW.match(text)):
            written_at, states = overview[1], dict(_STATE.findall(text))
        elif message["role"] == "user" and (changes := _CHANGES.match(text)) and changes[2] > written_at:
            states |= dict(_STATE.findall(changes[1]))
    for message in own:
        if (
            message["role"] == "tool"
            and message["name"] in LOOKUP_TOOLS
            and message["content"].startswith("{")
        ):
            found = json.loads(message["content"]).get("entities", ())
            states |= {entity["entity_id"]: entity.get("state", "") for entity in found}
    return states


def _is_correct(believed: str, state: StateText) -> bool:
    """Return True if a believed state is correct. Small changes of numbers are not part of the prompt."""
    believed = believed.removesuffix(f" {state.unit}")
    if believed == state.text:
        return True
    one, rest = _split_number(believed)
    if one is None or state.measured is None or rest != _split_number(state.text)[1]:
        return False
    return abs(one - state.measured) <= MIN_CHANGE_RATIO * max(abs(one), 1.0) * 1.001


def _split_number(text: str) -> tuple[float | None, str]:
    """Return the first number of a state, and the state without it."""
    found = _NUMBER.search(text)
    return (float(found[0]), text.replace(found[0], "", 1)) if found else (None, text)


@dataclass(frozen=True)
class PlayedTurn:
    """A turn of Sash: its prompts, and the data from which the other systems make the same turn.

    `states` are the states before the turn. `steps` are the plans, each with its results.
    """

    ask: Ask
    states: dict[str, State]
    prompts: list[list[Message]]
    user: Message
    steps: list[list[Message]]
    answer: Message
    understood_locally: bool


class Dialogue(NamedTuple):
    """All turns with one home, its index, the schemas of Sash's tools, and the numbers of bad answers."""

    turns: list[PlayedTurn]
    index: HomeIndex
    tools: list[Message]
    incomplete_answers: int
    wrong_answers: int


async def play_dialogue(size: int) -> Dialogue:
    """Send all sentences to a runtime with a home of `size` entities, some of which change in between."""
    clock, rng = FakeClock(STARTED_AT), random.Random(5)
    home = make_large_home(size, clock)
    turns: list[PlayedTurn] = []
    model = ScriptedModel(lambda request: simulated(request))
    store, intents = MemoryStore(clock=clock), [MemoryIntents()]
    async with Runtime(store, model, home=home, intents=intents, clock=clock, time_zone=UTC) as runtime:
        live_home: LiveHome = runtime.home  # type: ignore[assignment]
        index = await live_home.wait_until_ready()
        simulated, local = SimulatedModel(index), HomeIntents(live_home, clock=clock)
        session = await runtime.start_session(policy=PERMISSIVE)
        tools = runtime._parts.tools  # noqa: SLF001
        for ask in ASKS:
            states, requests_before = dict(index.states), len(model.requests)
            understood = await local.understand(Utterance(ask.sentence, session, tools.names))
            simulated.ask = ask
            sent = await runtime.send_message(session.id, ask.sentence)
            result = await runtime.await_continuation(sent.id)
            unasked = len(model.requests) == requests_before
            if result.response is None or result.response.stopped_by or unasked:
                raise SystemExit(f"{size}: {ask.sentence}: {result}")
            if any(action.outcome != "done" for action in result.response.actions):
                raise SystemExit(f"{size}: {ask.sentence}: {result.response.actions}")
            prompts = [request.messages for request in model.requests[requests_before:]]
            user, *own = _own_messages(prompts[-1])
            user = user | {"content": user["content"].rpartition("</context>\n\n")[2]}
            answer = {"role": "assistant", "content": result.response.final_message}
            turns.append(
                PlayedTurn(ask, states, prompts, user, _split_steps(own), answer, understood is not None)
            )
            clock.advance(60 * rng.randint(1, MAX_PAUSE_MINUTES))
            change_states(home, index, rng, max(MIN_CHANGED, round(size * CHANGED_SHARE)))
        return Dialogue(turns, index, tools.schemas, simulated.incomplete_answers, simulated.wrong_answers)


def _split_steps(own: Sequence[Message]) -> list[list[Message]]:
    """Split the messages of a turn into plans with their results."""
    steps: list[list[Message]] = []
    for message in own:
        if message["role"] == "assistant":
            steps.append([])
        steps[-1].append(message)
    return steps


def change_states(home: SimulatedHome, index: HomeIndex, rng: random.Random, count: int) -> None:
    """Change the states of some entities."""
    for entity_id in rng.sample(sorted(index.entities), count):
        home.set_state(
            entity_id, _choose_other_state(entity_id.partition(".")[0], index.get_state(entity_id), rng)
        )


def _choose_other_state(domain: str, state: str, rng: random.Random) -> str:
    if (value := parse_number(state)) is not None:
        return f"{max(value, 1.0) * rng.uniform(0.85, 1.15):.1f}"
    states = {"cover": ("open", "closed"), "climate": ("heat", "off"), "media_player": ("playing", "paused")}
    return next(other for other in states.get(domain, ("on", "off")) if other != state)
