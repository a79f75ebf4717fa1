"""Times sentences that need no model, in homes of several sizes and in a new process."""

import gc
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks._simulated_model import PERMISSIVE
from benchmarks._times import Times
from sash import Runtime
from sash.intents.home_intents import HomeIntents
from sash.ports.intents import Utterance
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel
from sash.values.clock import SystemClock
from sash.values.sessions import Session
from tests.large_home import make_large_home

ROOT = Path(__file__).resolve().parent.parent
COMPARED_SIZE = 300

# Each sentence, and True if it is understood without a model.
SENTENCES = {
    "a command, by name": ("turn on the Kitchen 1 ceiling light", True),
    "a command, by area": ("turn off all the lights in Kitchen 1", True),
    "a question, by name": ("is the Kitchen 1 floor lamp on?", True),
    "a question, by area": ("what is the temperature in Kitchen 1?", True),
    "not understood": ("why is my electricity bill so high this month?", False),
    "not understood, with entity names": (
        "has the Kitchen 1 floor lamp been on longer than the ceiling light?",
        False,
    ),
}
WHOLE_TURNS = {
    "a whole turn, command": ("turn on the Kitchen 1 ceiling light", "turn off the Kitchen 1 ceiling light"),
    "a whole turn, question": ("is the Kitchen 1 floor lamp on?", "what is the temperature in Kitchen 1?"),
}


class HomeOfSize:
    """A home of one size with its runtime. Times the local intents alone, and whole turns."""

    def __init__(self, runtime: Runtime, session: Session) -> None:
        self._runtime, self._session = runtime, session
        self._intents: HomeIntents = runtime._everyday  # type: ignore[assignment]  # noqa: SLF001
        self._tools = runtime._parts.tools.names  # noqa: SLF001

    @classmethod
    async def open(cls, stack: AsyncExitStack, size: int) -> "HomeOfSize":
        home = make_large_home(size, SystemClock())
        model = ScriptedModel(RuntimeError("the model was called"))
        runtime = await stack.enter_async_context(Runtime(MemoryStore(), model, home=home))
        await runtime.home.wait_until_ready()  # type: ignore[union-attr]
        home_of_size = cls(runtime, await runtime.start_session(policy=PERMISSIVE))
        await home_of_size._intents.warm_up()
        return home_of_size

    async def understand(self, sentence: str, is_understood: bool) -> float:
        """Return the seconds to understand a sentence; stop if the result is not the expected one."""
        utterance = Utterance(sentence, self._session, self._tools)
        started = time.perf_counter()
        answer = await self._intents.understand(utterance)
        took = time.perf_counter() - started
        if (answer is not None) != is_understood:
            raise SystemExit(f"{sentence}: {answer}")
        return took

    async def run_turn(self, sentence: str) -> float:
        """Return the seconds of a whole turn."""
        started = time.perf_counter()
        sent = await self._runtime.send_message(self._session.id, sentence)
        result = await self._runtime.await_continuation(sent.id)
        took = time.perf_counter() - started
        if result.status != "completed":
            raise SystemExit(f"{sentence}: {result}")
        return took


async def measure_sentences(sizes: Sequence[int], repeats: int) -> dict[tuple[str, int], Times]:
    """Time the sentences in homes of all sizes, in random order."""
    times: dict[tuple[str, int], list[float]] = {}
    async with AsyncExitStack() as stack:
        homes = {size: await HomeOfSize.open(stack, size) for size in sizes}
        order, rng = list(itertools.product([*SENTENCES, *WHOLE_TURNS], sizes)), random.Random(7)
        gc.collect()
        gc.disable()
        for n in range(repeats):
            rng.shuffle(order)
            for case, size in order:
                if case in SENTENCES:
                    took = await homes[size].understand(*SENTENCES[case])
                else:
                    took = await homes[size].run_turn(WHOLE_TURNS[case][n % 2])
                times.setdefault((case, size), []).append(took)
            gc.collect()
        gc.enable()
    return {key: Times.from_seconds(taken) for key, taken in times.items()}


# The program of a new process. Arguments: the number of entities, a sentence, "warm_up" or "at_once".
COLD_START = """
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
    live_home, clock = LiveHome(make_large_home(int(sys.argv[1]))), SystemClock()
    await live_home.open()
    await live_home.wait_until_ready()
    intents = HomeIntents(live_home, clock=clock)
    session = Session("s", "local", clock.now(), clock.now())
    utterance = Utterance(sys.argv[2], session, frozenset({"call_service"}))
    begun = time.perf_counter()
    if sys.argv[3] == "warm_up":
        await intents.warm_up()
    warmed = time.perf_counter()
    assert await intents.understand(utterance)
    ended = time.perf_counter()
    return {"imports": imported, "warm-up": warmed - begun, "first sentence": ended - warmed}

print(json.dumps(asyncio.run(main())))
"""


def measure_cold(processes: int) -> dict[str, Times]:
    """Time the first sentence of a new process, with and without a warm-up."""
    times: dict[str, list[float]] = {}
    sentence = SENTENCES["a command, by name"][0]
    for _, mode in itertools.product(range(processes), ("warm_up", "at_once")):
        command_line = [sys.executable, "-c", COLD_START, str(COMPARED_SIZE), sentence, mode]
        done = subprocess.run(command_line, capture_output=True, text=True, timeout=120, cwd=ROOT)
        if done.returncode:
            raise SystemExit(f"the first sentence failed:\n{done.stderr[-2000:]}")
        taken = json.loads(done.stdout)
        if mode == "warm_up":
            parts = {
                "imports": taken["imports"],
                "warm-up": taken["warm-up"],
                "first sentence after the warm-up": taken["first sentence"],
            }
        else:
            parts = {"first sentence without a warm-up": taken["imports"] + taken["first sentence"]}
        for part, took in parts.items():
            times.setdefault(part, []).append(took)
    return {part: Times.from_seconds(taken) for part, taken in times.items()}
