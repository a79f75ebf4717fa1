"""Archives of stores that the current version wrote, for the tests of later versions.

    python -m tests.recovery.old

writes one archive per backend to `tests/data/`, with the store and an export of it. Run it whenever the schema or
the layout gets a new version.
"""

import asyncio
import io
import json
import tarfile
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sash import Runtime
from sash.ports.tools import ToolSpec
from sash.stores.files.records import LAYOUT_VERSION
from sash.stores.sqlite.database import SCHEMA_VERSION
from sash.testing import ScriptedModel, both, calling
from sash.values.ids import new_id
from sash.values.sessions import Fact, Pin, SessionPolicy, WindowLimits
from sash.values.waiting_turns import DeferredCall, StateCondition, WaitingTurn
from tests.recovery.house import open_store

DATA = Path(__file__).parents[1] / "data"
WAIT_S = 30


def archive(kind):
    version = SCHEMA_VERSION if kind == "sqlite" else LAYOUT_VERSION
    return DATA / f"{kind}_{version}.tar.gz"


def runtime(kind, folder, *lines):
    async def look(arguments, context):
        return "x" * 9000 if arguments.get("far") else {"lamp": "on"}

    schema = {"type": "object"}
    tools = [
        ToolSpec("look", "Look.", schema, look, safety="idempotent"),
        ToolSpec("lock.unlock", "Unlock.", schema, look, action=True),
    ]
    return Runtime(open_store(kind, folder), ScriptedModel(*lines), tools)


async def fill(kind, folder):
    """Write a cut, an artifact, memory, a turn that awaits approval, a queued turn, and a waiting turn."""
    lines = (
        "hello",
        both(calling("look", "a"), calling("look", "b", far=True)),
        "I looked around.",
        "bye",
        calling("lock.unlock"),
    )
    async with runtime(kind, folder, *lines) as sash:
        session = await sash.start_session(
            owner="ann",
            preferences={"language": "de"},
            window=WindowLimits(max_turns=2),
            policy=SessionPolicy(
                allow_actuation=True, allowlisted_services=("lock",), require_confirmation=("lock",)
            ),
        )
        now = session.created_at
        memory = replace(
            session.memory, facts=(Fact("f", "likes tea", now),), pins=(Pin("p", "be kind", now),)
        )
        await sash.store.save_session(replace(session, memory=memory))
        for message in ("error 500 at /api/users/123", "look around", "good night", "unlock"):
            sent = await sash.send_message(session.id, message, owner="ann", idempotency_key=message)
            await sash.await_continuation(sent.id, owner="ann", timeout_s=WAIT_S)
        await sash.send_message(session.id, "and then?", owner="ann", busy="enqueue")
        await sash.remember("likes 21 degrees", owner="ann")
        later = datetime(2999, 1, 1, tzinfo=UTC)
        call = DeferredCall("light.turn_off", ("light.hall",))
        condition = StateCondition("person.ann", not_states=("home",))
        await sash.store.add_waiting_turn(
            WaitingTurn(
                new_id(),
                session.id,
                "ann",
                "turn off the hall",
                now,
                at=later,
                due_at=later,
                calls=(call,),
                only_if=(condition,),
            )
        )
        return await sash.export_session(session.id, owner="ann")


def main():
    DATA.mkdir(exist_ok=True)
    for kind in ("sqlite", "files"):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive(kind), "w:gz") as tar:
            said = json.dumps(asyncio.run(fill(kind, folder)), indent=1).encode()
            tar.add(folder, arcname="store")
            about = tarfile.TarInfo("export.json")
            about.size = len(said)
            tar.addfile(about, io.BytesIO(said))


if __name__ == "__main__":
    main()
