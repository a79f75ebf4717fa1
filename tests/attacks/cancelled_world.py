"""A runtime that is cancelled at every suspension of a scenario, and the checks after it."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from sash import Runtime
from sash.errors import ContinuationFinal, NotAwaitingApproval, SessionBusy
from sash.ports.prompt import split_time
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.continuations import FINAL
from tests.backends import BACKENDS
from tests.pausing_store import PausingStore
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import transcript
from tests.tools import tool

MAX_SUSPENSIONS = 400
WAIT_S = 30


def answer(request):
    """Answer a message that begins with "lock" or "hang" by a tool call, and any other message by a text."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return "Done."
    word = split_time(last["content"])[1].split()[0]
    return calling(word) if word in ("lock", "hang", "look") else "Fine."


@dataclass
class World:
    """A runtime and one of its sessions. `effects` counts the calls of the tool `lock`, by turn."""

    runtime: Runtime
    store: object
    session: object
    effects: Counter
    release: asyncio.Event
    clock: FakeClock

    async def send(self, message, **options):
        return await self.runtime.send_message(self.session.id, message, **options)

    async def settle(self, message, **options):
        sent = await self.send(message, **options)
        return await self.runtime.await_continuation(sent.id)

    async def hang(self):
        """Start a turn that hangs in its tool until `release` is set."""
        sent = await self.send("hang on")
        while not self.release.waiting:
            await asyncio.sleep(0)
        return sent


class Release(asyncio.Event):
    """An event that counts the tasks that have begun to wait for it."""

    waiting = 0

    async def wait(self):
        self.waiting += 1
        return await super().wait()


@asynccontextmanager
async def opened(kind, folder, *, suspends=True):
    """Open a runtime on a store. With `suspends`, the store in memory suspends like the other stores."""

    async def pause(verb):
        await asyncio.sleep(0)

    effects, state = Counter(), {}

    async def lock(arguments, context):
        effects[context.continuation_id] += 1
        await asyncio.sleep(0)
        return "locked"

    async def hang(arguments, context):
        await state["world"].release.wait()
        return "went on"

    clock = FakeClock()
    store = BACKENDS[kind](folder, clock)
    used = PausingStore(store, pause) if kind == "memory" and suspends else store
    tools = [
        tool("lock", lock, action=True),
        tool("hang", hang, safety="idempotent"),
        tool("look", lambda a, c: "fine", safety="idempotent"),
    ]
    async with Runtime(used, ScriptedModel(answer), tools, clock=clock, partial_interval_s=0) as runtime:

        async def make_world():
            session = await runtime.start_session(policy=CAREFUL)
            state["world"] = World(runtime, store, session, effects, Release(), clock)
            return state["world"]

        yield make_world


async def check_world(world, tasks):
    """Check that nothing hangs, is lost, doubled or stuck. `tasks` are the tasks from before the scenario."""
    runtime, session = world.runtime, world.session
    world.release.set()
    await runtime.wait_for_turns()
    for turn in await runtime.open_continuations(session.id):
        status = (await runtime.await_continuation(turn.id)).status
        assert status in FINAL | {"awaiting_approval"}
        if status == "awaiting_approval":
            await runtime.cancel(turn.id)
    assert runtime.running_turns == 0
    if (await runtime.get_session(session.id)).status == "active":
        assert (await world.settle("one more")).status == "completed"
    await runtime.wait_for_turns()
    turns = await world.store.list_continuations("local", session.id)
    assert {turn.status for turn in turns} <= FINAL
    asked = [text for role, text in await transcript(runtime, session) if role == "user"]
    assert sorted(asked) == sorted(t.request.message for t in turns if t.status == "completed")
    assert all(count == 1 for count in world.effects.values()), "an action was repeated"
    await pass_loop()
    assert asyncio.all_tasks() <= tasks, "a task is left"


async def pass_loop():
    """Let the tasks that have just ended leave the event loop."""
    for _ in range(10):
        await asyncio.sleep(0)


async def run_at_every_suspension(run):
    """Call `run(n)` for n = 0, 1, … until it returns False: the scenario ended before suspension n."""
    for n in range(MAX_SUSPENSIONS):
        try:
            async with asyncio.timeout(WAIT_S):
                is_reached = await run(n)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"cancelled at suspension {n}: {error!r}") from error
        if not is_reached:
            break
    assert 0 < n < MAX_SUSPENSIONS - 1


async def converse(world):
    """Run a turn that needs an approval, and a queued turn after it. A turn may be cancelled meanwhile."""
    first = await world.send("lock it")
    second = await world.send("look here", busy="enqueue")
    await world.runtime.await_continuation(first.id)
    with suppress(NotAwaitingApproval, ContinuationFinal, SessionBusy):
        await world.runtime.approve(first.id, "call")
    for turn in first, second:
        await world.runtime.await_continuation(turn.id)


@contextmanager
def watching_turns(point):
    """Count the suspensions of all tasks that run turns."""

    def make_task(loop, coroutine, **options):
        if coroutine.__qualname__ in ("Worker._execute", "Worker._begin_and_run"):
            coroutine = point.run_task(coroutine)
        return asyncio.Task(coroutine, loop=loop, **options)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(make_task)
    try:
        yield
    finally:
        loop.set_task_factory(None)
