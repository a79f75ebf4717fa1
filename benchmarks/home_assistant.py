"""Measures Sash inside a real Home Assistant, side by side with the same Home Assistant without Sash.

Both have Home Assistant's demo entities, a recorder and an assist pipeline. Sash is installed from its zip.
The model is simulated behind HTTP on loopback.

* start: from the start of the process to the state RUNNING, with warm bytecode; the median of the runs.
* memory: the resident memory of the process, after the first turns and a rest.
* idle: the CPU time of the process per second, without any request.
* set-up: the time of the config entry, as Home Assistant itself measures it.
* lag: the longest delay of a task that asks the event loop to wake it every 5 ms. "After start" is from
  RUNNING on, with the warm-up and 50 local turns. "While it is added" is the whole config flow, from its
  first page to the loaded agent; without Sash, it is the set-up of the rooms and devices alone.
* local turn: from the start of the pipeline to its answer, for sentences that need no model. The median is
  that of five sentences, ten times each: at once after the start, while Home Assistant is still busy, and a
  minute later. A new sentence is said for the first time.
* memory by part: how much more memory a Python process with Home Assistant's packages has after each part of
  Sash. Parts share packages, so the sum is not exactly the memory above.

`--quick` runs each start once and rests for five seconds instead of thirty.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from tests.ha.install import install
from tests.ha.instance import furnish
from tests.ha.model_server import ModelServer
from tests.ha.sash_house import SashHouse
from tests.ha.set_up import set_up

ROOT = Path(__file__).parents[1]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KEY = "sk-the-key-of-the-benchmark"
LOCAL_SENTENCES = (
    "turn on the bed light",
    "turn off the bed light",
    "is the front door locked?",
    "which lights are on?",
    "what time is it?",
)
NEW_SENTENCES = (
    "switch the kitchen lights on",
    "is the bed light on?",
    "are any lights on in the kitchen?",
    "turn the kitchen lights off",
    "how many lights are on?",
    "what is the date today?",
    "set the bed light to 40 percent",
    "are all the lights off?",
    "which lights are off?",
    "turn all the lights off",
)
# An agent acts at most 30 times a minute.
ACTION_LIMIT_S = 61.0
MODEL_SENTENCES = ("tell me a story about the sea", "make it cosy in here please")
MEMORY_BY_PART = """
import gc, json
import homeassistant.core, homeassistant.components.conversation, homeassistant.helpers.llm, httpx, pydantic

def read_mb():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

parts, before = {}, read_mb()

def note(part):
    global before
    now = read_mb()
    parts[part], before = now - before, now

import custom_components.sash
note("the core and the integration")
from custom_components.sash.core.memory.encodings import load_encoding
load_encoding("o200k_base")
note("the table of tokens")
from custom_components.sash.core.models.catalog import Catalog
Catalog().load()
note("prices of models (genai-prices)")
from custom_components.sash.core.models.openai.endpoint import Endpoint
Endpoint("m")._create_client()
note("the SDK of OpenAI")
from custom_components.sash.core.intents.grammar import load_grammar
load_grammar("en")
note("the grammar of one language")
print(json.dumps(parts))
"""
# The limits that the project has set itself, for the value with Sash or for the difference.
LIMITS = {
    "start_s": "+2",
    "memory_mb": "+170",
    "idle_cpu_percent": "+0",
    "lag_ms": "100",
    "added_lag_ms": "100",
    "model_lag_ms": "100",
    "set_up_s": "1.5",
    "local_turn_ms": "20",
}


TITLES = {
    "start_s": "start (s)",
    "memory_mb": "memory (MB)",
    "idle_cpu_percent": "idle CPU (%)",
    "lag_ms": "lag after start (ms)",
    "added_lag_ms": "lag while it is added (ms)",
    "model_lag_ms": "lag in turns with a model (ms)",
    "set_up_s": "set-up of the entry (s)",
    "first_turn_ms": "first local turn (ms)",
    "early_turn_ms": "local turn, just after the start (ms)",
    "new_sentence_ms": "local turn, new sentence (ms)",
    "local_turn_ms": "local turn, a minute later (ms)",
}


@dataclass(slots=True)
class Figures:
    """The figures of one Home Assistant."""

    start_s: float
    memory_mb: float
    idle_cpu_percent: float
    lag_ms: float = 0.0
    set_up_s: float = 0.0
    first_turn_ms: float = 0.0
    early_turn_ms: float = 0.0
    local_turn_ms: float = 0.0
    new_sentence_ms: float = 0.0
    model_lag_ms: float = 0.0
    added_lag_ms: float = 0.0


def read_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def read_memory_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


async def measure(house: SashHouse, runs: int, rest_s: float, *, has_sash: bool) -> Figures:
    starts = []
    for _ in range(runs):
        await house.stop()
        before = time.perf_counter()
        await house.start()
        starts.append(time.perf_counter() - before)
    figures = Figures(median(starts), 0.0, 0.0)
    await house.call("puck.lag")
    if has_sash:
        await house.wait_until_loaded()
        figures.first_turn_ms = (await house.speak("Kitchen", LOCAL_SENTENCES[0]))["took_ms"]
        figures.early_turn_ms = await measure_local_turn(house)
        figures.lag_ms = (await house.call("puck.lag"))["max_ms"]
        new = [(await house.speak("Kitchen", sentence))["took_ms"] for sentence in NEW_SENTENCES]
        figures.new_sentence_ms = median(new)
        await asyncio.sleep(ACTION_LIMIT_S)
        figures.local_turn_ms = await measure_local_turn(house)
        for sentence in MODEL_SENTENCES:
            await house.speak("Bedroom", sentence)
        figures.model_lag_ms = (await house.call("puck.lag"))["max_ms"]
        (timings,) = await house.ask({"type": "integration/setup_info"})
        figures.set_up_s = next(each["seconds"] for each in timings if each["domain"] == "sash")
    await asyncio.sleep(rest_s)
    cpu_s = read_cpu_s(house.pid)
    await asyncio.sleep(rest_s)
    figures.idle_cpu_percent = (read_cpu_s(house.pid) - cpu_s) / rest_s * 100
    figures.memory_mb = read_memory_mb(house.pid)
    if not has_sash:
        figures.lag_ms = (await house.call("puck.lag"))["max_ms"]
    return figures


async def measure_local_turn(house: SashHouse) -> float:
    sentences = LOCAL_SENTENCES * 10
    return median([(await house.speak("Kitchen", sentence))["took_ms"] for sentence in sentences])


def build_package(target: Path) -> None:
    command = [sys.executable, ROOT / "dev.py", "package", target]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure_memory(hass: Path, folder: Path) -> dict[str, float]:
    """Return the megabytes that each part of Sash adds to a process with Home Assistant's packages."""
    command = [hass.with_name("python"), "-c", MEMORY_BY_PART]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


async def run(runs: int, rest_s: float) -> tuple[Figures, Figures, dict[str, float]]:
    """Return the figures without and with Sash, and the memory of its parts."""
    hass = install()
    with tempfile.TemporaryDirectory() as folder, ModelServer(KEY) as model:
        package = Path(folder) / "sash.zip"
        await asyncio.to_thread(build_package, package)
        plain = SashHouse(hass, Path(folder) / "plain", package)
        await plain.start()
        try:
            await plain.call("puck.lag")
            await furnish(plain)
            added_lag_ms = (await plain.call("puck.lag"))["max_ms"]
            without = await measure(plain, runs, rest_s, has_sash=False)
            without.added_lag_ms = added_lag_ms
        finally:
            await plain.kill()
        house = SashHouse(hass, Path(folder) / "sash", package)
        await house.start()
        try:
            await house.call("puck.lag")
            await set_up(house, model)
            added_lag_ms = (await house.call("puck.lag"))["max_ms"]
            figures = await measure(house, runs, rest_s, has_sash=True)
            figures.added_lag_ms = added_lag_ms
            return without, figures, await asyncio.to_thread(measure_memory, hass, house.folder)
        finally:
            await house.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs, rest_s = (1, 5.0) if options.quick else (5, 30.0)
    without, with_sash, parts = asyncio.run(run(runs, rest_s))
    table = Table(title="Home Assistant without and with Sash")
    for column in ("", "without", "with", "difference", "limit"):
        table.add_column(column, justify="right" if column else "left")
    for name, title in TITLES.items():
        one, other = getattr(without, name), getattr(with_sash, name)
        compared = (f"{one:.1f}", f"{other:.1f}", f"{other - one:+.1f}") if one else ("", f"{other:.1f}", "")
        table.add_row(title, *compared, LIMITS.get(name, ""))
    Console().print(table)
    memory = Table("part of Sash", "memory (MB)")
    for part, size_mb in parts.items():
        memory.add_row(part, f"{size_mb:.0f}")
    Console().print(memory)
    if options.json:
        figures = {"without": asdict(without), "with": asdict(with_sash), "memory_by_part": parts}
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
