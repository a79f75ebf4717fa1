"""Times the index of a large home: building, searching, events, and descriptions for a model."""

import gc
import itertools
import random
import string
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks._conversations import STARTED_AT
from benchmarks._home_dialogue import ASKS
from benchmarks._simulated_model import change_states
from benchmarks._times import Times
from sash.demo.simulated_home import SimulatedHome
from sash.home.briefing import describe_changes, write_briefing
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.memory.tokens import TokenCounter
from sash.ports.home import HomeEvent, Layout, State
from sash.testing import FakeClock
from tests.large_home import make_large_home

ENTITIES = 10_000
EVENTS = 1_000
OF_ALL_ENTITIES = "of all entities"


def add_device_names(layout: Layout) -> Layout:
    """Give every device a different name: a made-up word, or for every fifth device its address."""
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


def make_queries(index: HomeIndex) -> dict[str, Callable[[], str]]:
    """Return functions that make queries, by kind. Each call returns another query."""
    rng, entities, areas = random.Random(3), list(index.entities.values()), list(index.areas.values())
    kinds = itertools.cycle(("light", "temperature", "window", "floor lamp", "blind", "socket power"))

    def name() -> str:
        return rng.choice(entities).name

    def mistyped() -> str:
        words = name().split()
        longest_index = max(range(len(words)), key=lambda n: len(words[n]))
        word = words[longest_index]
        letter_index = rng.randrange(1, len(word) - 1)
        letter = rng.choice(string.ascii_lowercase)
        words[longest_index] = word[:letter_index] + letter + word[letter_index + 1 :]
        return " ".join(words)

    def unknown_word() -> str:
        return "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=rng.randint(5, 12)))

    return {
        "a name": name,
        "an area": lambda: rng.choice(areas).name,
        "a name with a typo": mistyped,
        "two unknown words": lambda: f"{unknown_word()} {unknown_word()}",
        "a kind with 800 or more entities": lambda: next(kinds),
        f"a word {OF_ALL_ENTITIES}": lambda: "acme",
        f"three words {OF_ALL_ENTITIES}": lambda: "Acme Multi 3",
        "a whole sentence": lambda: (
            f"could you make it somewhat darker near the {name()} before our {unknown_word()} guests arrive?"
        ),
    }


async def measure_index(
    layout: Layout, states: Sequence[State], builds: int, repeats: int
) -> dict[str, Times]:
    """Return the CPU times of the index of a home, by operation."""
    times: dict[str, list[float]] = {}

    def measure(operation: str, job: Callable[[], Any], count: int = 1) -> None:
        started = time.thread_time()
        job()
        times.setdefault(operation, []).append((time.thread_time() - started) / count)

    home = SimulatedHome(layout, states, clock=FakeClock(STARTED_AT))
    live_home = LiveHome(home)
    await live_home.open()
    index, counter, rng = await live_home.wait_until_ready(), TokenCounter(), random.Random(1)
    for _ in range(builds):
        gc.collect()
        measure("building the index", lambda: HomeIndex(layout, states))
    briefing = write_briefing(index, "", "now", counter.count_text)
    events: list[HomeEvent] = []
    unsubscribe = home.subscribe(events.append)
    change_states(home, index, rng, EVENTS)
    unsubscribe()
    queries = make_queries(index)
    gc.collect()
    gc.disable()
    for n in range(repeats):
        for kind, make_query in queries.items():
            measure(f"search: {kind}", partial(index.search, make_query()))
        measure("a state event", lambda: [live_home._on_event(event) for event in events], len(events))  # noqa: SLF001
        measure("describing the changes", lambda: describe_changes(index, briefing))
        if n % 10 == 0:
            measure(
                "describing the home",
                lambda: write_briefing(index, ASKS[0].sentence, "now", counter.count_text),
            )
            gc.collect()
    gc.enable()
    await live_home.close()
    return {operation: Times.from_seconds(taken) for operation, taken in times.items()}


async def measure_indexes(builds: int, repeats: int) -> dict[str, dict[str, Times]]:
    """Time the index of a home with few different words, and of one with a name for every device."""
    home = make_large_home(ENTITIES, FakeClock(STARTED_AT))
    await home.open()
    layout, states = await home.get_layout(), await home.get_states()
    return {
        "few names": await measure_index(layout, states, builds, repeats),
        "many names": await measure_index(add_device_names(layout), states, builds, repeats),
    }
