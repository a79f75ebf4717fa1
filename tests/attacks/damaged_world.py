"""A store with records of every kind, and the work that has to go on when one of them is damaged."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sash import Runtime
from sash.errors import SashError
from sash.ports.store import Artifact, Vector
from sash.stores.backend import StoreSettings
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.continuations import ArtifactRef
from sash.values.ids import new_id
from sash.values.sessions import SessionPolicy, WindowLimits
from tests.backends import BACKENDS
from tests.runtime.talk import WAIT_S
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR_S = 3600
DAY_S = 24 * HOUR_S
LOCKS = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), require_confirmation=("lock",))
UNLOCK = tool("lock.unlock", lambda arguments, context: "open", action=True)


@dataclass(frozen=True)
class World:
    """The ids of the sessions of two owners. Any of them may be damaged, except those in `sound`."""

    talk: str
    asks: str
    fork: str
    imported: str
    named: str
    sound: tuple[tuple[str, str], ...]

    @property
    def sessions(self):
        return {
            *(("ann", id) for id in (self.talk, self.asks, self.fork, self.imported, self.named)),
            *self.sound,
        }


def settings(backend, folder):
    return StoreSettings(backend, folder if backend == "sqlite" else folder / "data", FakeClock(START))


def check(backend, folder):
    """Return what `sash doctor` finds."""
    store = type(BACKENDS[backend](folder, FakeClock(START)))
    return store.check(settings(backend, folder))


def open_runtime(backend, folder, clock, model=None):
    return Runtime(BACKENDS[backend](folder, clock), model or ScriptedModel("ok"), [UNLOCK], clock=clock)


async def turn(runtime, owner, session_id, message="hello", **options):
    """Send a message and wait for the end of its turn."""
    sent = await runtime.send_message(session_id, message, owner=owner, **options)
    return await runtime.await_continuation(sent.id, owner=owner, timeout_s=WAIT_S)


async def make_world(backend, folder):
    """Fill a store: ended, running, queued and waiting turns, cuts, an artifact, a fork, an import, money."""
    clock = FakeClock(START)
    async with open_runtime(backend, folder, clock) as runtime:
        sound = []
        for owner in ("ann", "bob"):
            session = await runtime.start_session(owner=owner)
            await turn(runtime, owner, session.id, "a sound question")
            sound.append((owner, session.id))
        talk = await runtime.start_session(
            owner="ann", window=WindowLimits(max_tokens=60), preferences={"a": 1}
        )
        await runtime.remember("the key is under the mat", session_id=talk.id, owner="ann")
        for n in range(4):
            await turn(
                runtime, "ann", talk.id, f"question {n} about the damaged door", idempotency_key=f"k{n}"
            )
        await runtime.store.put_artifact(
            Artifact(ArtifactRef(new_id(), "text/plain", 4), talk.id, "ann", b"data")
        )
        await runtime.store.add_vectors("ann", talk.id, [Vector(1, "m", bytes(8))], keep=9)
        fork = await runtime.fork_session(talk.id, owner="ann")
        export = await runtime.export_session(talk.id, owner="ann")
        imported = await runtime.import_session(export | {"signature": ""}, owner="ann")
        named = await runtime.start_session(owner="ann", name="kitchen")
        await turn(runtime, "ann", named.id)
        await runtime.store.spend("ann", 0.5)
        await runtime.search("door", owner="ann")
    async with open_runtime(
        backend, folder, clock, ScriptedModel(calling("lock.unlock", "c1", door="front"))
    ) as runtime:
        asks = await runtime.start_session(owner="ann", policy=LOCKS)
        assert (await turn(runtime, "ann", asks.id)).status == "awaiting_approval"
    model = WaitingModel("never")
    async with open_runtime(backend, folder, clock, model) as runtime:
        await runtime.send_message(talk.id, "still running", owner="ann")
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        await runtime.send_message(talk.id, "queued", owner="ann", busy="enqueue")
        await runtime.abandon_turns()
    return World(talk.id, asks.id, fork.id, imported.id, named.id, tuple(sound))


async def use_others(world, backend, folder, damaged):
    """Open the store twice and use it. `damaged` is the id of the session that may not be readable, or None.

    Return a description of each thing that went wrong.
    """
    clock, wrong = FakeClock(START), []

    async def attempt(what, work):
        try:
            return await work
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {error}")

    for n in range(2):
        runtime = open_runtime(backend, folder, clock)
        if await attempt("open", open_or_close(runtime)) is None:
            return wrong
        try:
            await attempt("recover", runtime.recover())
            await attempt("turns", asyncio.wait_for(runtime.wait_for_turns(), WAIT_S))
            await use_sessions(runtime, world, damaged, attempt, wrong)
            clock.advance((2 if n == 0 else 9) * DAY_S)
            await attempt("sweep", runtime.sweep())
        finally:
            await runtime.close()
    runtime = open_runtime(backend, folder, clock)
    if await attempt("open again", open_or_close(runtime)):
        try:
            await attempt("delete a sound one", runtime.delete_session(world.sound[0][1], owner="ann"))
            if damaged:
                with suppress(SashError):
                    await runtime.delete_session(damaged, owner="ann")
            await attempt("erase", runtime.erase(owner="ann"))
            await attempt("use of bob", use_session(runtime, *world.sound[1]))
        finally:
            await runtime.close()
    return wrong


async def open_or_close(runtime):
    try:
        await runtime.open()
    except BaseException:
        await runtime.close()
        raise
    return runtime


async def use_sessions(runtime, world, damaged, attempt, wrong):
    for owner in ("ann", "bob"):
        page = await attempt(f"list {owner}", runtime.list_sessions(owner=owner, limit=100))
        expected = {id for of, id in world.sessions if of == owner} - {damaged}
        found = {session.id for session in page.items} if page else set()
        if page and not expected <= found:
            wrong.append(f"list {owner}: {len(expected - found)} missing")
        hits = await attempt(f"search {owner}", runtime.search("sound", owner=owner))
        if hits == []:
            wrong.append(f"search {owner}: nothing found")
        await attempt(f"search all {owner}", runtime.search("door", owner=owner))
        await attempt(f"statistics {owner}", runtime.statistics(owner=owner))
    for owner, session_id in sorted(world.sessions):
        if session_id != damaged:
            is_sound = (owner, session_id) in world.sound
            use = use_session if is_sound else read_session
            await attempt(f"session {session_id}", use(runtime, owner, session_id))
        else:
            try:
                await read_session(runtime, owner, session_id)
            except SashError:
                pass
            except Exception as error:
                wrong.append(f"damaged session: {type(error).__name__}: {error}")
    new = await attempt("start", runtime.start_session(owner="ann", name="again"))
    if new:
        await attempt("turn in a new session", use_session(runtime, "ann", new.id))
        await attempt("delete", runtime.delete_session(new.id, owner="ann"))
    await attempt("check", runtime.check())


async def read_session(runtime, owner, session_id):
    await runtime.get_session(session_id, owner=owner)
    await runtime.export_session(session_id, owner=owner)
    await runtime.context_report(session_id, owner=owner)
    await runtime.list_turns(session_id, owner=owner)


async def use_session(runtime, owner, session_id):
    session = await runtime.get_session(session_id, owner=owner)
    if session.status == "active":
        done = await turn(runtime, owner, session_id)
        assert done.status == "completed", done
    await read_session(runtime, owner, session_id)
