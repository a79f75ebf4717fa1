"""Events that are not stored come in the order of the journal, for early, late and slow subscribers.

The whole text of a model call comes before the step that the call produced. The progress of a tool comes between its
call and its result. The interleavings are random, from a fixed seed.
"""

import asyncio
import random
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import pytest

from sash import Runtime
from sash.errors import ContinuationFinal
from sash.ports.model import Model, Stop, TextDelta, ToolCallDelta
from sash.testing import FakeClock
from sash.values.events import FinalEvent, PartialEvent, ProgressEvent, StepEvent
from sash.values.steps import Cancelled, Finished, Plan, ToolCall, ToolResult
from tests.backends import BACKENDS
from tests.pausing_store import PausingStore
from tests.runtime.talk import WAIT_S, subscribed
from tests.tools import tool

SECRET = "password=hunter2hunter2"
SEEDS = {"memory": 150, "sqlite": 20, "files": 20}
TURNS = 3


class Chance:
    """Random decisions of one run."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def of(self, share):
        return self._random.random() < share

    def number(self, low, high):
        return self._random.randint(low, high)

    async def pause(self, *_):
        """Let other tasks run for a random number of passes of the event loop."""
        for _ in range(self._random.choice((0, 0, 1, 2, 5, 20))):
            await asyncio.sleep(0)


class TalkingModel(Model):
    """Writes text before most of its tool calls, with pauses, and sometimes a secret in pieces."""

    def __init__(self, chance):
        self._chance, self._calls = chance, 0

    async def stream(self, request):
        chance = self._chance
        self._calls += 1
        call, last = self._calls, request.messages[-5:]
        acts = chance.of(0.7) and any(message["role"] == "user" for message in last)
        for n in range(chance.number(0, 5) if acts else chance.number(1, 5)):
            words = SECRET if chance.of(0.2) else f"call{call}word{n}"
            half = chance.number(1, len(words) - 1)
            yield TextDelta(words[:half])
            await chance.pause()
            yield TextDelta(words[half:] + chance.number(0, 1) * " ")
            await chance.pause()
        for index in range(chance.number(1, 2) if acts else 0):
            name = "act" if chance.of(0.3) else "look"
            yield ToolCallDelta(index, f"c{call}-{index}", name, "{}")
        yield Stop("tool_calls" if acts else "stop")


def make_tools(chance):
    async def invoke(arguments, context):
        for _ in range(chance.number(0, 3)):
            context.progress(context.call_id)
            await chance.pause()
        return "fine"

    return [tool("look", invoke, safety="idempotent"), tool("act", invoke, safety="unsafe")]


@dataclass
class Reader:
    """A subscriber that reads with pauses. `is_early` is True if it reads from before the first turn."""

    is_early: bool
    after: int = 0
    events: list = field(default_factory=list)

    async def read(self, runtime, session, chance):
        async with aclosing(runtime.events(session.id, after=self.after)) as events:
            async for event in events:
                self.events.append(event)
                await chance.pause()

    def check(self, stored):
        """Check the order of everything that this subscriber read."""
        steps = [event for event in self.events if isinstance(event, StepEvent | FinalEvent)]
        assert [event.cursor for event in steps] == [c for c in stored if c > self.after]
        for turn in dict.fromkeys(event.continuation_id for event in self.events):
            self._check_turn([event for event in self.events if event.continuation_id == turn])
        # A queued turn may be cancelled while another turn runs.
        order = [event.continuation_id for event in self.events if not _is_cancel(event)]
        runs = [turn for turn, before in zip(order, [None, *order], strict=False) if turn != before]
        assert len(runs) == len(set(runs)), "events of two turns are mixed"

    def _check_turn(self, events):
        text, begun, ended = "", set(), set()
        for event in events:
            match event:
                case PartialEvent(text=new):
                    assert SECRET not in new
                    text += new
                    continue
                case ProgressEvent(message=message):
                    if not message.startswith("Calling"):
                        is_open = message in begun or not self.is_early
                        assert is_open and message not in ended, "progress outside of its call"
                    continue
            match event.step.body:
                case Plan(content=content) | Finished(final_message=content):
                    assert text == content or (text == "" and not self.is_early)
                case Cancelled():
                    pass
                case body:
                    assert text == "", "text before a step that no model call produced"
                    if isinstance(body, ToolCall):
                        begun.add(body.call_id)
                    elif isinstance(body, ToolResult):
                        ended.add(body.call_id)
            text = ""
        if isinstance(events[-1], PartialEvent | ProgressEvent):
            raise AssertionError("an event after the end of its turn")


def _is_cancel(event):
    return isinstance(event, FinalEvent) and isinstance(event.step.body, Cancelled)


async def run_turns(runtime, session, chance, join):
    """Run turns one after the other or queued, cancel some, and let readers join at random moments."""
    for n in range(TURNS):
        turn = await runtime.send_message(session.id, f"message {n}", busy="enqueue")
        await chance.pause()
        for _ in range(chance.number(0, 2)):
            await join()
            await chance.pause()
        if chance.of(0.2):
            with suppress(ContinuationFinal):
                await runtime.cancel(turn.id)
        if chance.of(0.5):
            await runtime.await_continuation(turn.id)
    for turn in await runtime.open_continuations(session.id):
        await runtime.await_continuation(turn.id)


async def listen_at_random(store, clock, seed):
    chance = Chance(seed)
    runtime = Runtime(
        PausingStore(store, chance.pause),
        TalkingModel(chance),
        make_tools(chance),
        clock=clock,
        partial_interval_s=0,
    )
    readers, reading = [], []

    def start(reader):
        readers.append(reader)
        reading.append(asyncio.create_task(reader.read(runtime, session, chance)))

    async def join():
        cursor = await store.last_cursor("local", session.id)
        start(Reader(False, cursor if chance.of(0.5) else 0))

    async with asyncio.timeout(WAIT_S), runtime:
        session = await runtime.start_session()
        for _ in range(2):
            start(Reader(True))
        await subscribed(runtime, session, 2)
        await run_turns(runtime, session, chance, join)
        await runtime.end_session(session.id)
        await asyncio.gather(*reading)
        stored = [item.step.cursor for item in await store.events("local", session.id, limit=1000)]
    for reader in readers:
        reader.check(stored)


@pytest.mark.parametrize("kind", BACKENDS)
async def test_events_come_in_journal_order_in_every_interleaving(kind, tmp_path):
    for seed in range(SEEDS[kind]):
        clock, folder = FakeClock(), tmp_path / str(seed)
        folder.mkdir()
        try:
            await listen_at_random(BACKENDS[kind](folder, clock), clock, seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
