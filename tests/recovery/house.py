"""The turn that is killed: an idempotent call, an unsafe call, an answer. Used by the process that dies and by the
one that takes over.

`run` is for a process that kills itself (SIGKILL) before or after a commit of the turn. A `slow` turn does nothing
before its last step is on the disk, a `fast` one does not wait unless it has to. The calls are made `in_turn` or
`at_once`.
"""

import asyncio
import os
import signal
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from sash import Runtime
from sash.ports.model import Model
from sash.ports.tools import ToolSpec
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel, both, calling

TURN_KEY = "the turn"
QUESTION = "Read the meter and ring the bell."
ANSWER = "I read the meter and rang the bell."
METER, BELL = calling("read_meter", "c1"), calling("ring_bell", "c2")
PLANS = {"in_turn": [METER, BELL], "at_once": [both(METER, BELL)]}


def open_store(kind, folder):
    return SqliteStore(Path(folder) / "sash.db") if kind == "sqlite" else FilesStore(Path(folder) / "data")


def script(calls):
    def line(request):
        last = max(n for n, m in enumerate(request.messages) if m["role"] == "user")
        plans = [m for m in request.messages[last:] if m["role"] == "assistant"]
        return [*PLANS[calls], ANSWER][len(plans)]

    return line


class PacedModel(Model):
    """A model that waits before it answers."""

    def __init__(self, model, wait):
        self._model, self._wait = model, wait

    async def stream(self, request):
        await self._wait()
        async for delta in self._model.stream(request):
            yield delta


async def at_once():
    """Do not wait."""


def runtime(store, effects, calls, wait=at_once):
    def tool(name, safety):
        async def invoke(arguments, context):
            await wait()
            with Path(effects).open("a") as file:
                file.write(f"{name}\n")
            return f"{name} done"

        return ToolSpec(name, name, {"type": "object"}, invoke, safety=safety)

    tools = [tool("read_meter", "idempotent"), tool("ring_bell", "unsafe")]
    return Runtime(store, PacedModel(ScriptedModel(script(calls)), wait), tools)


class Killing:
    """A store that kills its process at one of its commits, when those before it are on the disk."""

    def __init__(self, store, commit, when):
        self._store, self._commit, self._when, self.count = store, commit, when, 0
        self._one_at_a_time = asyncio.Lock()

    async def idle(self):
        """Wait until what was given to be written is on the disk."""
        for _ in range(3):
            await asyncio.sleep(0)
        async with self._one_at_a_time:
            return

    def __getattr__(self, verb):
        method = getattr(self._store, verb)
        if verb not in ("begin", "append", "finish"):
            return method

        async def counted(*args, **kwargs):
            async with self._one_at_a_time:
                self.count += 1
                if (self.count, self._when) == (self._commit, "before"):
                    os.kill(os.getpid(), signal.SIGKILL)
                result = await method(*args, **kwargs)
                if (self.count, self._when) == (self._commit, "after"):
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

        return counted


async def main(kind, folder, effects, pace, calls, commit, when):
    store = Killing(open_store(kind, folder), commit, when)
    wait = store.idle if pace == "slow" else at_once
    async with runtime(store, effects, calls, wait) as sash:
        session = await sash.start_session()
        sent = await sash.send_message(session.id, QUESTION, idempotency_key=TURN_KEY)
        await sash.await_continuation(sent.id, timeout_s=30)
    return store.count


def run(sender: Connection, *arguments):
    """Run the turn and send the number of its commits, or the traceback of an error."""
    try:
        sender.send(asyncio.run(main(*arguments)))
    except BaseException:
        sender.send(traceback.format_exc())
        raise
