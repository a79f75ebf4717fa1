"""A waiting turn that fires in a process which kills itself at one of its commits.

    python -m tests.recovery.promise KIND FOLDER EFFECTS COMMIT before|after

registers a waiting turn, moves the clock to its time, fires it, and kills itself (SIGKILL) before or after that
commit of the firing.
"""

import asyncio
import sys
from pathlib import Path

from sash import Runtime
from sash.ports.tools import ToolSpec
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel, calling
from tests.recovery.house import WAIT_S, KillingStore

MINUTE_S = 60


def open_store(kind, folder, clock):
    if kind == "sqlite":
        return SqliteStore(Path(folder) / "sash.db", clock=clock)
    return FilesStore(Path(folder) / "data", clock=clock)


def make_runtime(store, effects, clock):
    """Return a runtime whose service is a line in a file. The line says whether the call was made."""

    async def invoke(arguments, context):
        with Path(effects).open("a") as file:
            file.write(f"{arguments['service']}\n")
        return {"service": arguments["service"]}

    async def verify(arguments, context):
        made = Path(effects).exists() and arguments["service"] in Path(effects).read_text().splitlines()
        return {"service": arguments["service"]} if made else None

    async def uses(arguments, context):
        return ()

    service = ToolSpec(
        "call_service",
        "Act.",
        {"type": "object"},
        invoke,
        safety="verify",
        action=True,
        verify=verify,
        uses=uses,
    )
    call = {"service": "light.turn_on"}
    model = ScriptedModel(calling("do_later", summary="light", in_s=MINUTE_S, calls=[call]), "I will.")
    return Runtime(store, model, [service], clock=clock)


class FiringStore(KillingStore):
    """Counts the commits of the firing only."""

    is_firing = False

    def before(self, verb):
        if self.is_firing:
            super().before(verb)

    def after(self, verb):
        if self.is_firing:
            super().after(verb)


async def main(kind, folder, effects, commit, when):
    clock = FakeClock()
    store = FiringStore(open_store(kind, folder, clock), int(commit), when)
    async with make_runtime(store, effects, clock) as sash, asyncio.timeout(WAIT_S):
        policy = {"allow_actuation": True, "allowlisted_services": ("*",)}
        session = await sash.start_session()
        await sash.update_session(session.id, policy=policy)
        sent = await sash.send_message(session.id, "do that in a minute")
        await sash.await_continuation(sent.id)
        store.is_firing = True
        clock.advance(MINUTE_S)
        await sash.fire_waiting_turns()
        await sash.wait_for_turns()
    sys.stdout.write(f"{store.count}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
