"""A turn with an idempotent call, an unsafe call and an answer, in a process that kills itself during the turn.

    python -m tests.recovery.house KIND FOLDER EFFECTS PACE CALLS COMMIT before|after

runs the turn and kills itself (SIGKILL) before or after that commit. A `slow` turn waits after every step until it
is on the disk. A `fast` turn waits only where Sash waits. The calls are made `in_turn` or `at_once`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from sash import Runtime
from sash.ports.tools import ToolSpec
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel, both, calling

TURN_KEY = "the turn"
QUESTION = "Read the meter and ring the bell."
WAIT_S = 30
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


class PacedModel:
    """A model that waits before it answers."""

    def __init__(self, model, wait):
        self.model, self.wait = model, wait

    async def stream(self, request):
        await self.wait()
        async for delta in self.model.stream(request):
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


async def ask(sash):
    """Act as a user, perhaps after a crash: resume interrupted turns, and send the message, again if need be.

    Return the session and the result.
    """
    sessions = (await sash.list_sessions()).items
    session = sessions[0] if sessions else await sash.start_session()
    for continuation in await sash.store.list_continuations("local", session.id):
        if continuation.status == "interrupted":
            await sash.resume(continuation.id)
    sent = await sash.send_message(session.id, QUESTION, idempotency_key=TURN_KEY, busy="enqueue")
    return session, await sash.await_continuation(sent.id, timeout_s=WAIT_S)


class SerialStore:
    """A store that makes one write at a time. Subclasses act before and after each of its `writes`."""

    writes = frozenset({"begin", "append", "finish"})

    def __init__(self, store):
        self.store = store
        self._one_at_a_time = asyncio.Lock()

    async def idle(self):
        """Wait until all pending writes are on the disk."""
        for _ in range(3):
            await asyncio.sleep(0)
        async with self._one_at_a_time:
            return

    def __getattr__(self, verb):
        method = getattr(self.store, verb)
        if verb not in self.writes:
            return method

        async def write(*args, **kwargs):
            async with self._one_at_a_time:
                self.before(verb)
                result = await method(*args, **kwargs)
                self.after(verb)
                return result

        return write


class KillingStore(SerialStore):
    """A store that kills its process at one of its commits. All earlier commits are on the disk."""

    def __init__(self, store, commit, when):
        super().__init__(store)
        self.commit, self.when, self.count = commit, when, 0

    def before(self, verb):
        self.count += 1
        self._kill("before")

    def after(self, verb):
        self._kill("after")

    def _kill(self, moment):
        if (self.count, self.when) == (self.commit, moment):
            os.kill(os.getpid(), signal.SIGKILL)


async def main(kind, folder, effects, pace, calls, commit, when):
    store = KillingStore(open_store(kind, folder), int(commit), when)
    wait = store.idle if pace == "slow" else at_once
    async with runtime(store, effects, calls, wait) as sash:
        await ask(sash)
    sys.stdout.write(f"{store.count}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
