"""The turn that is killed: an idempotent call, an unsafe call, an answer. Used by the process that dies and by the
one that takes over.

    python -m tests.recovery.house KIND FOLDER EFFECTS COMMIT before|after

runs the turn and kills itself (SIGKILL) before or after that commit.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from sash import Runtime
from sash.stores.files import FilesStore
from sash.stores.sqlite import SqliteStore
from sash.testing import ScriptedModel, calling
from sash.tools import ToolSpec

TURN_KEY = "the turn"
QUESTION = "Read the meter, then ring the bell."
COMMITS = ("begin", "plan", "result", "plan", "result", "finish")


def open_store(kind, folder):
    return SqliteStore(Path(folder) / "sash.db") if kind == "sqlite" else FilesStore(Path(folder) / "data")


def script(request):
    said = request.messages
    last = max(n for n, m in enumerate(said) if m["role"] == "user")
    results = [m for m in said[last:] if m["role"] == "tool"]
    lines = [calling("read_meter", "c1"), calling("ring_bell", "c2"), "I read the meter and rang the bell."]
    return lines[len(results)]


def tools(effects):
    def tool(name, safety):
        async def invoke(arguments, context):
            with Path(effects).open("a") as file:
                file.write(f"{name}\n")
            return f"{name} done"

        return ToolSpec(name, name, {"type": "object"}, invoke, safety=safety)

    return [tool("read_meter", "idempotent"), tool("ring_bell", "unsafe")]


def runtime(store, effects):
    return Runtime(store, ScriptedModel(script), tools(effects))


class Killing:
    """A store that kills its process at one of its commits, when those before it are on the disk."""

    def __init__(self, store, commit, when):
        self._store, self._commit, self._when, self._count = store, commit, when, 0
        self._one_at_a_time = asyncio.Lock()

    def __getattr__(self, verb):
        method = getattr(self._store, verb)
        if verb not in ("begin", "append", "finish"):
            return method

        async def counted(*args, **kwargs):
            async with self._one_at_a_time:
                self._count += 1
                if (self._count, self._when) == (self._commit, "before"):
                    os.kill(os.getpid(), signal.SIGKILL)
                result = await method(*args, **kwargs)
                if (self._count, self._when) == (self._commit, "after"):
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

        return counted


async def main(kind, folder, effects, commit, when):
    async with runtime(Killing(open_store(kind, folder), int(commit), when), effects) as sash:
        session = await sash.start_session()
        sent = await sash.send_message(session.id, QUESTION, idempotency_key=TURN_KEY)
        await sash.await_continuation(sent.id, timeout_s=30)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
