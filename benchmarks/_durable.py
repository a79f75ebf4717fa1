"""Runs the durable turns of one system in its own process, and prints the measurements as JSON.

    python -m benchmarks._durable SYSTEM FOLDER TURNS SESSIONS

A turn has three steps: the model plans a call, the tool runs, the model answers. Model and tool answer at
once, so the benchmark measures the engine. The turns of one session run on one core: otherwise the time to
wake another core would count. The turns of many sessions run on all cores.
"""

import asyncio
import json
import os
import resource
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

STARTED_AT = time.perf_counter()
# A figure for a turn is the mean of this many turns before it, itself, and this many after it.
NEIGHBOURS = 9


def count_written_bytes() -> int:
    """Return the number of bytes that this process has written so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


class Sash:
    """A runtime with a model that calls one tool."""

    def __init__(self, store: str, folder: Path, safety: Any = "idempotent") -> None:
        from sash import Runtime
        from sash.ports.model import Model, TextDelta, ToolCallDelta
        from sash.ports.tools import ToolSpec
        from sash.stores.files.store import FilesStore
        from sash.stores.sqlite.store import SqliteStore

        async def look(arguments: dict[str, Any], context: Any) -> str:
            return "21.5 °C"

        class ToolCallingModel(Model):
            async def stream(self, request: Any) -> Any:
                if request.messages[-1]["role"] == "tool":
                    yield TextDelta("It is 21.5 °C in the kitchen.")
                else:
                    yield ToolCallDelta(0, "call", "look", '{"room": "kitchen"}')

        stores = {
            "sqlite": lambda: SqliteStore(folder / "sash.db"),
            "sqlite NORMAL": lambda: SqliteStore(folder / "sash.db", synchronous="NORMAL"),
            "files": lambda: FilesStore(folder / "data"),
        }
        tool = ToolSpec("look", "Look.", {"type": "object"}, look, safety=safety)
        self.runtime = Runtime(stores[store](), ToolCallingModel(), [tool])

    async def open(self) -> None:
        await self.runtime.open()

    async def session(self) -> str:
        return (await self.runtime.start_session()).id

    async def turn(self, session: str) -> None:
        sent = await self.runtime.send_message(session, "How warm is it in the kitchen?")
        result = await self.runtime.await_continuation(sent.id)
        assert result.status == "completed"

    async def close(self) -> None:
        await self.runtime.close()


class LangGraph:
    """A graph of three nodes with a checkpoint after each."""

    def __init__(self, folder: Path) -> None:
        import sqlite3

        from langchain_core.messages import AIMessage, ToolMessage
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import END, START, MessagesState, StateGraph

        def plan(state: MessagesState) -> dict[str, Any]:
            call = {"name": "look", "args": {"room": "kitchen"}, "id": "call"}
            return {"messages": [AIMessage("", tool_calls=[call])]}

        def look(state: MessagesState) -> dict[str, Any]:
            return {"messages": [ToolMessage("21.5 °C", tool_call_id="call")]}

        def answer(state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage("It is 21.5 °C in the kitchen.")]}

        graph = StateGraph(MessagesState)
        steps = {"plan": plan, "look": look, "answer": answer}
        for name, step in steps.items():
            graph.add_node(name, step)
        for source, target in zip([START, *steps], [*steps, END], strict=True):
            graph.add_edge(source, target)
        db = sqlite3.connect(folder / "langgraph.db", check_same_thread=False)
        db.execute("PRAGMA synchronous = FULL")
        self.graph = graph.compile(checkpointer=SqliteSaver(db))

    async def open(self) -> None:
        pass

    async def session(self) -> str:
        return uuid.uuid4().hex

    async def turn(self, session: str) -> None:
        question = {"messages": [("user", "How warm is it in the kitchen?")]}
        config = {"configurable": {"thread_id": session}}
        await asyncio.to_thread(self.graph.invoke, question, config, durability="sync")

    async def close(self) -> None:
        pass


class Dbos:
    """A workflow of three steps."""

    def __init__(self, folder: Path) -> None:
        import logging

        from dbos import DBOS

        logging.disable(logging.INFO)
        DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.db"})

        @DBOS.step()
        async def plan(message: str) -> dict[str, Any]:
            return {"name": "look", "args": {"room": "kitchen"}}

        @DBOS.step()
        async def look(call: dict[str, Any]) -> str:
            return "21.5 °C"

        @DBOS.step()
        async def answer(result: str) -> str:
            return f"It is {result} in the kitchen."

        @DBOS.workflow()
        async def turn(message: str) -> str:
            return await answer(await look(await plan(message)))

        self.dbos, self.workflow = DBOS, turn

    async def open(self) -> None:
        self.dbos.launch()

    async def session(self) -> str:
        return ""

    async def turn(self, session: str) -> None:
        await self.workflow("How warm is it in the kitchen?")

    async def close(self) -> None:
        self.dbos.destroy()


SYSTEMS: dict[str, Callable[[Path], Any]] = {
    "Sash, sqlite FULL": lambda folder: Sash("sqlite", folder),
    "Sash, sqlite NORMAL": lambda folder: Sash("sqlite NORMAL", folder),
    "Sash, files": lambda folder: Sash("files", folder),
    "Sash, sqlite FULL, unsafe tool": lambda folder: Sash("sqlite", folder, "unsafe"),
    "LangGraph, SqliteSaver": LangGraph,
    "DBOS, SQLite": Dbos,
}


async def run_one_session(system: Any, turns: int) -> dict[str, float]:
    """Run turns one after the other; return times in ms, bytes and memory in MiB."""
    await system.open()
    session = await system.session()
    times, bytes_by_turn = [], {}
    for n in range(1, turns + 1):
        before, started = count_written_bytes(), time.perf_counter()
        await system.turn(session)
        times.append(time.perf_counter() - started)
        bytes_by_turn[n] = count_written_bytes() - before
    await system.close()
    return {
        "median": statistics.median(times) * 1e3,
        "p95": statistics.quantiles(times, n=20)[-1] * 1e3,
        "bytes at turn 10": _mean_around(bytes_by_turn, 10),
        "bytes at the end": _mean_around(bytes_by_turn, turns - NEIGHBOURS),
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def run_many_sessions(system: Any, turns: int, sessions: int) -> dict[str, float]:
    """Run turns in many sessions at once; return the turns per second."""
    await system.open()
    ids = [await system.session() for _ in range(sessions)]

    async def run_turns(session: str) -> None:
        for _ in range(turns):
            await system.turn(session)

    started = time.perf_counter()
    await asyncio.gather(*map(run_turns, ids))
    took = time.perf_counter() - started
    await system.close()
    return {"turns per second": sessions * turns / took}


def _mean_around(values: dict[int, int], n: int) -> float:
    nearby = [values[k] for k in range(max(1, n - NEIGHBOURS), n + NEIGHBOURS + 1) if k in values]
    return statistics.mean(nearby)


def main() -> None:
    name, folder, turns, sessions = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    if sessions == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    system = SYSTEMS[name](folder)
    imported = time.perf_counter() - STARTED_AT
    if sessions == 1:
        results = asyncio.run(run_one_session(system, turns)) | {"import": imported * 1e3}
    else:
        results = asyncio.run(run_many_sessions(system, turns, sessions))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
