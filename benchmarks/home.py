"""What a house costs: tokens a turn by its size, the time to find things in it, sentences without a model.

Tokens. Twenty sentences are said to houses of 50, 500 and 5,000 entities; between two of them a hundredth of
the entities, and at least two, change. A provider serves what a prompt has in common with one of the last
eight from the beginning (tool schemas first), at least 1,024 tokens, in steps of 128.

* Sash: a real runtime with a session's defaults, but without local intents, so that the model is asked every
  time. The model is played: it answers from what it is told of the house, looks up what it is not, and acts.
* all states, CSV: a line for each entity in the system prompt, written anew for every turn; the tersest form.
* all states, YAML: the same as Home Assistant's LLM API writes it: names, domain, state, areas, attributes.
* names, YAML: Home Assistant's prompt since it has GetLiveContext, a tool that returns states by name, area
  or domain.

These three have the same sentences, actions, histories and answers, the same system prompt and tools but
those to look things up, the time with each message, and they keep the whole conversation.

Index. Of 10,000 entities, once with few words (all rooms and things are called alike) and once with a name of
its own for every device; what is searched for is another thing each time, because near words are kept. All
of it is CPU time.

Local intents. Cold is a process of its own, warm is every sentence after `warm_up`. The sizes and sentences
take turns; the best and the median are wall time.
"""

import asyncio
import csv
import gc
import io
import itertools
import json
import random
import statistics
import string
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks._home_talk import STARTED_AT
from benchmarks._house_talk import ASKS, LOOKS_UP, PERMISSIVE, THE_HOUSE, Played, Talk, change, play_sash
from benchmarks._report import Row, arguments, machine, write_json
from benchmarks.context import CACHE_STEP, CACHED_PRICES, CALLS_CACHED, LEAST_CACHED, Costs, Message
from sash import Runtime
from sash.demo.simulated_home import SimulatedHome
from sash.engine.context import SYSTEM_PROMPT
from sash.home.briefing import describe_changes, write_briefing
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.intents.home_intents import HomeIntents
from sash.memory.tokens import PER_REPLY, TokenCounter
from sash.ports.home import Entity, HomeEvent, Layout, State
from sash.ports.intents import Utterance
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.clock import SystemClock
from sash.values.sessions import Session
from tests.large_home import make_large_home

ROOT = Path(__file__).resolve().parent.parent

HOUSES = (50, 500, 5_000)
GROWS_AT_MOST = 2.0

INDEXED = 10_000
BUILT_IN_MS, FOUND_IN_MS, HEARD_IN_MS = 2_000.0, 5.0, 0.1
EVENTS = 1_000
ALL_HAVE = "that all have"

SPOKEN_TO = (10, 100, 300, 1_000, 3_000)
COMPARED_SIZE = 300
UNDERSTOOD_IN_MS = 10.0

SASH = "Sash"

INTERESTING = (
    "temperature",
    "current_temperature",
    "brightness",
    "humidity",
    "unit_of_measurement",
    "device_class",
    "current_position",
    "percentage",
    "volume_level",
    "media_title",
)
LIVE_CONTEXT = {
    "type": "function",
    "function": {
        "name": "GetLiveContext",
        "description": "Provides real-time information about the CURRENT state, value, or mode of devices, "
        "sensors, entities, or areas. You may filter by name, domain and area, also combined.",
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Filter entities by name or alias."},
                "domain": {"type": "string", "description": "Filter entities by domain, such as light."},
                "area": {"type": "string", "description": "Filter entities by area name or alias."},
            },
        },
    },
}


def _attributes(state: State) -> dict[str, Any]:
    return {name: state.attributes[name] for name in INTERESTING if name in state.attributes}


def _area(index: HomeIndex, entity: Entity) -> str:
    area = index.get_area(entity)
    return area.name if area else ""


def as_csv(index: HomeIndex, states: Mapping[str, State]) -> str:
    """Write all entities with their states, a line each."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("entity_id", "name", "state", "area", "attributes"))
    for entity in sorted(index.entities.values(), key=lambda e: e.name):
        state = states[entity.id]
        attributes = " ".join(f"{name}={value}" for name, value in _attributes(state).items())
        table.writerow((entity.id, entity.name, state.state, _area(index, entity), attributes))
    return f"The devices in this smart home:\n{out.getvalue()}"


def as_yaml(index: HomeIndex, states: Mapping[str, State], only: Iterable[Entity] | None = None) -> str:
    """Write entities as Home Assistant's LLM API does, with their states, if there are any."""
    listed = []
    for entity in sorted(index.entities.values() if only is None else only, key=lambda e: e.name):
        info: dict[str, Any] = {"names": entity.name, "domain": entity.domain}
        state = states.get(entity.id)
        if state is not None:
            info["state"] = state.state
        info["areas"] = _area(index, entity)
        if state is not None and (attributes := _attributes(state)):
            info["attributes"] = {k: str(v) if isinstance(v, int) else v for k, v in attributes.items()}
        listed.append(info)
    text: str = yaml.dump(listed, allow_unicode=True, sort_keys=False, Dumper=yaml.CSafeDumper)
    return f"An overview of the areas and the devices in this smart home:\n{text}"


def all_states(
    write: Callable[[HomeIndex, Mapping[str, State]], str],
) -> Callable[[Talk], list[list[Message]]]:
    """Return how prompts are made that have all states in the system prompt."""

    def prompts(talk: Talk) -> list[list[Message]]:
        return _prompts(talk, lambda turn: write(talk.index, turn.states), _acting)

    return prompts


def names_only(talk: Talk) -> list[list[Message]]:
    """Make the prompts that have only names in the system prompt; the states are asked for."""
    names = as_yaml(talk.index, {})

    def steps(turn: Played) -> list[list[Message]]:
        meant = turn.ask.meant(talk.index)
        if not turn.ask.reads or not meant:
            return _acting(turn)
        wanted = {kind: turn.ask.search[kind] for kind in ("area", "domain") if kind in turn.ask.search}
        if wanted:
            found = [
                entity
                for entity in talk.index.entities.values()
                if wanted.get("area") in (None, _area(talk.index, entity))
                and wanted.get("domain") in (None, entity.domain)
            ]
        else:
            wanted, found = {"name": meant[0].name}, meant
        call_id = f"call_{len(turn.user['content']):024x}"
        function = {"name": "GetLiveContext", "arguments": json.dumps(wanted)}
        call = {"id": call_id, "type": "function", "function": function}
        result = {"success": True, "result": f"Live Context: {as_yaml(talk.index, turn.states, found)}"}
        content = json.dumps(result, ensure_ascii=False)
        asked = {"role": "assistant", "content": "", "tool_calls": [call]}
        told = {"role": "tool", "content": content, "tool_call_id": call_id, "name": "GetLiveContext"}
        return [[asked, told], *_acting(turn)]

    return _prompts(talk, lambda _: names, steps)


def _acting(turn: Played) -> list[list[Message]]:
    """Return the steps of a turn but those that look something up."""
    return [step for step in turn.steps if step[-1]["name"] not in LOOKS_UP]


def _prompts(
    talk: Talk, head: Callable[[Played], str], steps: Callable[[Played], list[list[Message]]]
) -> list[list[Message]]:
    prompts, before = [], []
    for turn in talk.turns:
        system = {"role": "system", "content": f"{SYSTEM_PROMPT}\n\n{head(turn)}"}
        own = [turn.user]
        prompts.append([system, *before, *own])
        for step in steps(turn):
            own = own + step
            prompts.append([system, *before, *own])
        before = [*before, *own, turn.answer]
    return prompts


class Measured(NamedTuple):
    """What the prompts of a talk add up to."""

    turns: int
    calls: int
    tokens: int
    cached: int
    largest: int

    @property
    def a_turn(self) -> float:
        return self.tokens / self.turns

    @property
    def share(self) -> float:
        return self.cached / self.tokens

    def paid(self, cached_price: float) -> float:
        """Return what a turn costs, in tokens at the full price."""
        return (self.tokens - self.cached * (1 - cached_price)) / self.turns


def measure(prompts: Sequence[list[Message]], turns: int, costs: Costs) -> Measured:
    """Count prompts, and how much of each a provider has in its cache."""
    counted: dict[int, int] = {}
    counts = []
    for prompt in prompts:
        for message in prompt:
            if id(message) not in counted:
                counted[id(message)] = costs(message)
        counts.append([counted[id(message)] for message in prompt])
    cached = 0
    for n, prompt in enumerate(prompts):
        earlier = prompts[max(0, n - CALLS_CACHED) : n]
        same, other = max(((_same(prompt, o), k) for k, o in enumerate(earlier)), default=(0, 0))
        common = costs.tools + sum(counts[n][:same]) if earlier else 0
        if earlier and same < min(len(prompt), len(earlier[other])):
            common += costs.beginning(prompt[same], earlier[other][same])
        cached += common // CACHE_STEP * CACHE_STEP if common >= LEAST_CACHED else 0
    totals = [PER_REPLY + costs.tools + sum(each) for each in counts]
    return Measured(turns, len(prompts), sum(totals), cached, max(totals))


def _same(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Return how many messages two prompts have in common from the beginning."""
    differ = (n for n, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    return next(differ, min(len(one), len(other)))


OTHERS: dict[str, Callable[[Talk], list[list[Message]]]] = {
    "all states, CSV": all_states(as_csv),
    "all states, YAML": all_states(as_yaml),
    "names, YAML; states by a tool": names_only,
}


def compare(talk: Talk) -> dict[str, Measured]:
    """Measure Sash and the others in one house."""
    sash = [prompt for turn in talk.turns for prompt in turn.prompts]
    results = {SASH: measure(sash, len(talk.turns), Costs(talk.tools))}
    without = [tool for tool in talk.tools if tool["function"]["name"] not in LOOKS_UP]
    for name, make in OTHERS.items():
        tools = [*without, LIVE_CONTEXT] if make is names_only else without
        results[name] = measure(make(talk), len(talk.turns), Costs(tools))
    return results


PARTS = ("tools", "system", "the house", "digest, recalled", "looked up", "everything else said")
COUNTS: tuple[tuple[str, Callable[[Talk], int]], ...] = (
    ("turns that look up", lambda talk: sum(len(_acting(turn)) < len(turn.steps) for turn in talk.turns)),
    ("answered wrongly", lambda talk: talk.wrong),
    ("not wholly answered", lambda talk: talk.unknown),
    ("local, at no cost", lambda talk: sum(turn.understood for turn in talk.turns)),
)


def parts(talk: Talk) -> Counter[str]:
    """Say what the tokens of Sash's prompts are."""
    costs, made_of = Costs(talk.tools), Counter[str]()
    for prompt in itertools.chain.from_iterable(turn.prompts for turn in talk.turns):
        made_of["tools"] += costs.tools
        for n, message in enumerate(prompt):
            looked_up = message["role"] == "tool" and message["name"] in LOOKS_UP
            if message["role"] == "system":
                is_house = THE_HOUSE.match(message["content"])
                part = "system" if not n else "the house" if is_house else "digest, recalled"
            else:
                part = "looked up" if looked_up else "everything else said"
            made_of[part] += costs(message)
    return made_of


class Times(NamedTuple):
    """How long something took, in ms."""

    best: float
    median: float
    worst: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Times":
        return cls(min(seconds) * 1e3, statistics.median(seconds) * 1e3, max(seconds) * 1e3)


def with_names(layout: Layout) -> Layout:
    """Give every device a name of its own: a made-up word, or, to every fifth, its address."""
    rng = random.Random(2)
    syllables = [first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"]
    names = {
        device.id: f"0x{rng.getrandbits(64):016x}"
        if n % 5 == 0
        else "".join(rng.choices(syllables, k=rng.randint(2, 5))).capitalize()
        for n, device in enumerate(layout.devices)
    }
    return replace(
        layout,
        entities=tuple(replace(e, name=f"{e.name} {names[e.device_id or '']}") for e in layout.entities),
        devices=tuple(replace(device, name=names[device.id]) for device in layout.devices),
    )


def queries(index: HomeIndex) -> dict[str, Callable[[], str]]:
    """Return what somebody may look for, by kind; each call makes up another one."""
    rng, entities, areas = random.Random(3), list(index.entities.values()), list(index.areas.values())
    kinds = itertools.cycle(("light", "temperature", "window", "floor lamp", "blind", "socket power"))

    def name() -> str:
        return rng.choice(entities).name

    def mistyped() -> str:
        words = name().split()
        at = max(range(len(words)), key=lambda n: len(words[n]))
        word, letter = words[at], rng.randrange(1, len(words[at]) - 1)
        words[at] = word[:letter] + rng.choice(string.ascii_lowercase) + word[letter + 1 :]
        return " ".join(words)

    def unheard() -> str:
        return "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=rng.randint(5, 12)))

    return {
        "its name": name,
        "an area": lambda: rng.choice(areas).name,
        "a name with a typo": mistyped,
        "two words that nothing has": lambda: f"{unheard()} {unheard()}",
        "a kind, which 800 or more are of": lambda: next(kinds),
        f"a word {ALL_HAVE}": lambda: "acme",
        f"three words {ALL_HAVE}": lambda: "Acme Multi 3",
        "a whole sentence": lambda: (
            f"could you make it somewhat darker near the {name()} before our {unheard()} guests arrive?"
        ),
    }


async def measure_index(
    layout: Layout, states: Sequence[State], builds: int, repeats: int
) -> dict[str, Times]:
    """Time the index of a large house: building, searching, hearing, and telling a model of it."""
    times: dict[str, list[float]] = {}

    def take(what: str, job: Callable[[], Any], times_over: int = 1) -> None:
        started = time.thread_time()
        job()
        times.setdefault(what, []).append((time.thread_time() - started) / times_over)

    home = SimulatedHome(layout, states, clock=FakeClock(STARTED_AT))
    known = LiveHome(home)
    await known.open()
    index, counter, rng = await known.wait_until_ready(), TokenCounter(), random.Random(1)
    for _ in range(builds):
        gc.collect()
        take("building", lambda: HomeIndex(layout, states))
    told = write_briefing(index, "", "now", counter.count_text)
    heard: list[HomeEvent] = []
    unsubscribe = home.subscribe(heard.append)
    change(home, index, rng, EVENTS)
    unsubscribe()
    asked = queries(index)
    gc.collect()
    gc.disable()
    for n in range(repeats):
        for what, make_up in asked.items():
            take(f"searching: {what}", partial(index.search, make_up()))
        take("a state event", lambda: [known._on_event(event) for event in heard], len(heard))  # noqa: SLF001
        take("telling of what has changed", lambda: describe_changes(index, told))
        if n % 10 == 0:
            take(
                "telling of the house", lambda: write_briefing(index, ASKS[0].said, "now", counter.count_text)
            )
            gc.collect()
    gc.enable()
    await known.close()
    return {what: Times.of(taken) for what, taken in times.items()}


async def measure_indexes(builds: int, repeats: int) -> dict[str, dict[str, Times]]:
    """Time the index of a house with few words, and of one with a name for every device."""
    home = make_large_home(INDEXED, FakeClock(STARTED_AT))
    await home.open()
    layout, states = await home.get_layout(), await home.get_states()
    return {
        "few names": await measure_index(layout, states, builds, repeats),
        "many names": await measure_index(with_names(layout), states, builds, repeats),
    }


# Understood are a command and a question, each by name and by area; of the others one has names of the house.
SENTENCES = {
    "a command, by name": ("turn on the Kitchen 1 ceiling light", True),
    "a command, by area": ("turn off all the lights in Kitchen 1", True),
    "a question, by name": ("is the Kitchen 1 floor lamp on?", True),
    "a question, by area": ("what is the temperature in Kitchen 1?", True),
    "not understood": ("why is my electricity bill so high this month?", False),
    "not understood, with names": (
        "has the Kitchen 1 floor lamp been on longer than the ceiling light?",
        False,
    ),
}
WHOLE_TURNS = {
    "a whole turn, command": ("turn on the Kitchen 1 ceiling light", "turn off the Kitchen 1 ceiling light"),
    "a whole turn, question": ("is the Kitchen 1 floor lamp on?", "what is the temperature in Kitchen 1?"),
}


class Listener:
    """A house of one size that sentences are said to, with and without a runtime around it."""

    def __init__(self, runtime: Runtime, session: Session) -> None:
        self._runtime, self._session = runtime, session
        self._intents: HomeIntents = runtime._home_intents  # type: ignore[assignment]  # noqa: SLF001
        self._tools = runtime._parts.tools.names  # noqa: SLF001

    @classmethod
    async def open(cls, stack: AsyncExitStack, size: int) -> "Listener":
        home = make_large_home(size, SystemClock())
        model = ScriptedModel(RuntimeError("a model was asked"))
        runtime = await stack.enter_async_context(Runtime(MemoryStore(), model, home=home))
        await runtime.home.wait_until_ready()  # type: ignore[union-attr]
        listener = cls(runtime, await runtime.start_session(policy=PERMISSIVE))
        await listener._intents.warm_up()
        return listener

    async def understand(self, sentence: str, understood: bool) -> float:
        """Return how many seconds a sentence takes."""
        heard = Utterance(sentence, self._session, self._tools)
        started = time.perf_counter()
        answer = await self._intents.understand(heard)
        took = time.perf_counter() - started
        if (answer is not None) != understood:
            raise SystemExit(f"{sentence}: {answer}")
        return took

    async def turn(self, sentence: str) -> float:
        """Return how many seconds a whole turn takes."""
        started = time.perf_counter()
        sent = await self._runtime.send_message(self._session.id, sentence)
        result = await self._runtime.await_continuation(sent.id)
        took = time.perf_counter() - started
        if result.status != "completed":
            raise SystemExit(f"{sentence}: {result}")
        return took


async def measure_sentences(sizes: Sequence[int], repeats: int) -> dict[tuple[str, int], Times]:
    """Time sentences that are said to houses of all sizes, which take turns."""
    times: dict[tuple[str, int], list[float]] = {}
    async with AsyncExitStack() as stack:
        listeners = {size: await Listener.open(stack, size) for size in sizes}
        order, rng = list(itertools.product([*SENTENCES, *WHOLE_TURNS], sizes)), random.Random(7)
        gc.collect()
        gc.disable()
        for n in range(repeats):
            rng.shuffle(order)
            for what, size in order:
                if what in SENTENCES:
                    took = await listeners[size].understand(*SENTENCES[what])
                else:
                    took = await listeners[size].turn(WHOLE_TURNS[what][n % 2])
                times.setdefault((what, size), []).append(took)
            gc.collect()
        gc.enable()
    return {key: Times.of(taken) for key, taken in times.items()}


COLD = """
import asyncio, json, sys, time
started = time.perf_counter()
from sash.values.clock import SystemClock
from sash.home.live_home import LiveHome
from sash.ports.intents import Utterance
from sash.intents.home_intents import HomeIntents
from sash.values.sessions import Session
imported = time.perf_counter() - started
from tests.large_home import make_large_home

async def main():
    known, clock = LiveHome(make_large_home(int(sys.argv[1]))), SystemClock()
    await known.open()
    await known.wait_until_ready()
    intents = HomeIntents(known, clock=clock)
    session = Session("s", "local", clock.now(), clock.now())
    heard = Utterance(sys.argv[2], session, frozenset({"call_service"}))
    begun = time.perf_counter()
    if sys.argv[3] == "warm_up":
        await intents.warm_up()
    warmed = time.perf_counter()
    assert await intents.understand(heard)
    ended = time.perf_counter()
    return {"import": imported, "warming up": warmed - begun, "the first sentence": ended - warmed}

print(json.dumps(asyncio.run(main())))
"""


def measure_cold(processes: int) -> dict[str, Times]:
    """Time the first sentence of a fresh process: with all that has to be loaded, and after warming up."""
    times: dict[str, list[float]] = {}
    sentence = SENTENCES["a command, by name"][0]
    for _, how in itertools.product(range(processes), ("warm_up", "at_once")):
        command_line = [sys.executable, "-c", COLD, str(COMPARED_SIZE), sentence, how]
        done = subprocess.run(command_line, capture_output=True, text=True, timeout=120, cwd=ROOT)
        if done.returncode:
            raise SystemExit(f"the first sentence failed:\n{done.stderr[-2000:]}")
        taken = json.loads(done.stdout)
        if how == "warm_up":
            parts = {
                "importing": taken["import"],
                "warming up": taken["warming up"],
                "the first sentence after that": taken["the first sentence"],
            }
        else:
            parts = {"the first sentence with all of it": taken["import"] + taken["the first sentence"]}
        for what, took in parts.items():
            times.setdefault(what, []).append(took)
    return {what: Times.of(taken) for what, taken in times.items()}


def show_tokens(results: dict[int, dict[str, Measured]], talks: dict[int, Talk], console: Console) -> None:
    """Print what a turn costs in each house."""
    table = Table(title=f"{len(ASKS)} turns with a house, tokens of all prompts of a turn · {machine()}")
    table.add_column("entities", justify="right")
    table.add_column("", no_wrap=True)
    low = CACHED_PRICES[0]
    for column in ("calls a turn", "tokens a turn", "× Sash", "× smallest", "largest prompt", "cached"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column(f"paid at {low}", justify="right", no_wrap=True)
    smallest = results[min(results)]
    for size, at_size in results.items():
        for name, measured in at_size.items():
            table.add_row(
                f"{size:,}" if name == SASH else "",
                name,
                f"{measured.calls / measured.turns:.2f}",
                f"{measured.a_turn:,.0f}",
                f"{measured.a_turn / at_size[SASH].a_turn:.1f}",
                f"{measured.a_turn / smallest[name].a_turn:.2f}",
                f"{measured.largest:,}",
                f"{measured.share:.1%}",
                f"{measured.paid(low):,.0f}",
                style="bold green" if name == SASH else "",
                end_section=name == list(at_size)[-1],
            )
    console.print(table)
    table = Table(title=f"what the tokens of a turn of {SASH} are, and how its turns went")
    table.add_column("entities", justify="right")
    made_of = {size: parts(talk) for size, talk in talks.items()}
    for column in (*PARTS, *(column for column, _ in COUNTS)):
        table.add_column(column, justify="right")
    for size, talk in talks.items():
        tokens = [f"{made_of[size][part] / len(ASKS):,.0f}" for part in PARTS]
        table.add_row(f"{size:,}", *tokens, *(str(count(talk)) for _, count in COUNTS))
    console.print(table)


def show_index(index: dict[str, dict[str, Times]], console: Console) -> None:
    """Print the times of the index."""
    table = Table(title=f"the index of a house of {INDEXED:,} entities, CPU ms · {machine()}")
    table.add_column("", no_wrap=True)
    for house, column in itertools.product(index, Times._fields):
        table.add_column(f"{house}: {column}", justify="right")
    for what in next(iter(index.values())):
        values = itertools.chain.from_iterable(times[what] for times in index.values())
        table.add_row(what, *(f"{value:,.4f}" if value < 0.1 else f"{value:,.2f}" for value in values))
    console.print(table)


def show_sentences(
    times: dict[tuple[str, int], Times], cold: dict[str, Times], sizes: Sequence[int], console: Console
) -> None:
    """Print the times of sentences."""
    table = Table(title=f"sentences without a model, ms, median (best) · {machine()}")
    table.add_column("entities", no_wrap=True)
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for what in (*SENTENCES, *WHOLE_TURNS):
        cells = [f"{times[what, size].median:.2f} ({times[what, size].best:.2f})" for size in sizes]
        table.add_row(what, *cells)
    console.print(table)
    table = Table(title=f"the first sentence of a process, {COMPARED_SIZE} entities, ms")
    table.add_column("", no_wrap=True)
    for column in ("best", "median"):
        table.add_column(column, justify="right")
    for what, taken in cold.items():
        table.add_row(what, f"{taken.best:,.1f}", f"{taken.median:,.1f}")
    console.print(table)


def verdicts(
    results: dict[int, dict[str, Measured]],
    talks: dict[int, Talk],
    index: dict[str, dict[str, Times]],
    sentences: dict[tuple[str, int], Times],
) -> Iterator[tuple[str, str, str, bool]]:
    """Say which figures are reached."""
    small, large = min(results), max(results)
    grown = results[large][SASH].a_turn / results[small][SASH].a_turn
    text = f"tokens a turn at {large:,} entities against {small}"
    yield text, f"< {GROWS_AT_MOST:.0f} ×", f"{grown:.2f} ×", grown < GROWS_AT_MOST
    wrong = sum(talk.wrong for talk in talks.values())
    yield "answers with a state that is not so", "none", str(wrong), not wrong
    for house, times in index.items():
        built = times["building"].median
        text = f"building the index of {INDEXED:,} entities, {house}"
        yield text, f"< {BUILT_IN_MS / 1e3:.0f} s", f"{built / 1e3:.2f} s", built < BUILT_IN_MS
    for house, times in index.items():
        searches = {what: taken.median for what, taken in times.items() if what.startswith("searching")}
        for alike in (False, True):
            what, found = max(
                ((what, taken) for what, taken in searches.items() if what.endswith(ALL_HAVE) is alike),
                key=itemgetter(1),
            )
            text = f"{what}, {house}" if alike else f"searching for anything else, the slowest, {house}"
            yield text, f"< {FOUND_IN_MS:.0f} ms", f"{found:.2f} ms", found < FOUND_IN_MS
    heard = max(times["a state event"].median for times in index.values())
    yield "a state event", f"< {HEARD_IN_MS} ms", f"{heard:.4f} ms", heard < HEARD_IN_MS
    warm = max(sentences[what, COMPARED_SIZE].median for what in SENTENCES)
    text = f"a warm local intent at {COMPARED_SIZE} entities, the slowest sentence"
    yield text, f"< {UNDERSTOOD_IN_MS:.0f} ms", f"{warm:.2f} ms", warm < UNDERSTOOD_IN_MS


def rows_of_tokens(results: dict[int, dict[str, Measured]], talks: dict[int, Talk]) -> Iterator[Row]:
    """Return what turns cost, as rows."""
    for size, name in itertools.product(results, next(iter(results.values()))):
        measured, params = results[size][name], {"entities": size, "turns": len(ASKS)}
        values = {
            "calls a turn": (measured.calls / measured.turns, ""),
            "tokens a turn": (measured.a_turn, "tokens"),
            "largest prompt": (measured.largest, "tokens"),
            "cached share": (measured.share, ""),
            **{f"paid at {price}": (measured.paid(price), "tokens") for price in CACHED_PRICES},
        }
        for metric, (value, unit) in values.items():
            yield Row("home", name, metric, value, unit, params)
    for size, talk in talks.items():
        params = {"entities": size, "turns": len(ASKS)}
        for part, tokens in parts(talk).items():
            yield Row("home", SASH, f"tokens a turn, {part}", tokens / len(ASKS), "tokens", params)
        for what, count in COUNTS:
            yield Row("home", SASH, what, count(talk), "turns", params)


def rows_of_times(
    index: dict[str, dict[str, Times]], sentences: dict[tuple[str, int], Times], cold: dict[str, Times]
) -> Iterator[Row]:
    """Return what was timed, as rows."""
    timed = [
        (f"{what}, {house}", INDEXED, taken)
        for house, times in index.items()
        for what, taken in times.items()
    ]
    timed += [(what, size, taken) for (what, size), taken in sentences.items()]
    timed += [(what, COMPARED_SIZE, taken) for what, taken in cold.items()]
    for what, size, taken in timed:
        for metric, value in taken._asdict().items():
            yield Row("home", what, metric, value, "ms", {"entities": size})


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    builds, repeats, said, processes = (3, 30, 15, 2) if options.quick else (9, 200, 150, 9)
    talks: dict[int, Talk] = {}
    results: dict[int, dict[str, Measured]] = {}
    for size in HOUSES:
        with console.status(f"{size:,} entities …"):
            talks[size] = asyncio.run(play_sash(size))
            results[size] = compare(talks[size])
    show_tokens(results, talks, console)
    with console.status("the index …"):
        index = asyncio.run(measure_indexes(builds, repeats))
    show_index(index, console)
    with console.status("sentences …"):
        sentences = asyncio.run(measure_sentences(SPOKEN_TO, said))
        cold = measure_cold(processes)
    show_sentences(sentences, cold, SPOKEN_TO, console)
    table = Table(title="figures")
    table.add_column("", no_wrap=True)
    for column in ("to reach", "measured", "reached"):
        table.add_column(column, justify="right")
    for text, wanted, value, reached in verdicts(results, talks, index, sentences):
        table.add_row(text, wanted, f"[bold]{value}[/]", "[green]✓[/]" if reached else "[red]✗[/]")
    console.print(table)
    write_json([*rows_of_tokens(results, talks), *rows_of_times(index, sentences, cold)], options.json)


if __name__ == "__main__":
    main()
