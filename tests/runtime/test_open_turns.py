"""Several open turns of one session: `max_open_turns`."""

import asyncio
import random

import pytest

from sash import Runtime, SqliteStore, WindowLimits
from sash.errors import SessionBusy, StoreUnavailable
from sash.ports.model import Stop, TextDelta
from sash.testing import FaultyStore
from sash.values.clock import SystemClock
from tests.backends import BACKENDS
from tests.runtime.talk import WAIT_S

OPEN = 3


class GatedModel:
    """A model that answers each message when the test lets it, and notes what it read."""

    def __init__(self):
        self.gates, self.read = {}, {}
        self.reached = asyncio.Condition()

    async def stream(self, request):
        said = [m["content"] for m in request.messages if m["role"] in ("user", "assistant")]
        message = said[-1].split()[-1]
        gate = self.gates.setdefault(message, asyncio.Event())
        async with self.reached:
            self.read[message] = [text.split()[-1] for text in said[:-1]]
            self.reached.notify_all()
        await gate.wait()
        yield TextDelta(f"answer {message}")
        yield Stop("stop")

    async def wait_for(self, message):
        async with asyncio.timeout(WAIT_S), self.reached:
            await self.reached.wait_for(lambda: message in self.read)

    def open(self, message):
        self.gates.setdefault(message, asyncio.Event()).set()


@pytest.fixture(params=BACKENDS)
async def store(request, tmp_path):
    return BACKENDS[request.param](tmp_path, SystemClock())


async def settle(runtime, *turns):
    for turn in turns:
        await runtime.await_continuation(turn.id, timeout_s=WAIT_S)


async def transcript(runtime, session_id):
    """Return the user messages in their order. Fail if a turn's messages are not contiguous."""
    stored = await runtime.list_messages(session_id, limit=1000)
    texts = [item.message.text.split()[-1] for item in stored]
    assert len(texts) == len({item.message.id for item in stored})
    assert texts[::2] == texts[1::2], "each question stands before its own answer"
    return texts[::2]


async def test_turns_run_at_the_same_time_and_are_appended_as_they_end(store):
    model = GatedModel()
    async with Runtime(store, model, max_open_turns=2) as runtime:
        session = await runtime.start_session()
        model.open("zero")
        await settle(runtime, await runtime.send_message(session.id, "zero"))
        one, two = [await runtime.send_message(session.id, text) for text in ("one", "two")]
        await model.wait_for("one")
        await model.wait_for("two")
        assert model.read["one"] == model.read["two"] == ["zero", "zero"], "the window at their start"
        with pytest.raises(SessionBusy) as busy:
            await runtime.send_message(session.id, "three")
        assert busy.value.continuation_id == one.id
        three = await runtime.send_message(session.id, "three", busy="enqueue")
        assert three.status == "pending"
        model.open("two")
        await settle(runtime, two)
        await model.wait_for("three")
        assert model.read["three"] == ["zero", "zero", "two", "two"]
        model.open("one")
        await settle(runtime, one)
        model.open("three")
        await settle(runtime, three)
        assert await transcript(runtime, session.id) == ["zero", "two", "one", "three"]
        model.open("four")
        await settle(runtime, await runtime.send_message(session.id, "four"))
        order = ["zero", "two", "one", "three"]
        assert model.read["four"] == [text for text in order for _ in range(2)]


async def test_one_turn_is_the_default(store):
    model = GatedModel()
    async with Runtime(store, model) as runtime:
        session = await runtime.start_session()
        one = await runtime.send_message(session.id, "one")
        with pytest.raises(SessionBusy):
            await runtime.send_message(session.id, "two")
        model.open("one")
        await settle(runtime, one)


async def test_an_interrupting_message_cancels_all_open_turns(store):
    model = GatedModel()
    async with Runtime(store, model, max_open_turns=2) as runtime:
        session = await runtime.start_session()
        turns = [await runtime.send_message(session.id, text) for text in ("one", "two")]
        model.open("three")
        await settle(runtime, await runtime.send_message(session.id, "three", busy="interrupt"))
        results = [await runtime.await_continuation(turn.id, timeout_s=0) for turn in turns]
        assert [result.status for result in results] == ["cancelled"] * 2
        assert await transcript(runtime, session.id) == ["three"]


async def test_a_running_turn_cannot_be_claimed_twice(store):
    model = GatedModel()
    async with Runtime(store, model, max_open_turns=2) as runtime:
        session = await runtime.start_session()
        one = await runtime.send_message(session.id, "one")
        await model.wait_for("one")
        with pytest.raises(SessionBusy):
            await runtime._worker.claim(one)
        model.open("one")
        await settle(runtime, one)


async def test_an_end_that_the_store_writes_later_keeps_the_messages_of_both_turns(store):
    model, faulty = GatedModel(), FaultyStore(store)
    async with Runtime(faulty, model, max_open_turns=2) as runtime:
        session = await runtime.start_session(window=WindowLimits(max_turns=1, evict_to=1.0))
        one, two = [await runtime.send_message(session.id, text) for text in ("one", "two")]
        await model.wait_for("one")
        await model.wait_for("two")
        faulty.fail("finish", StoreUnavailable("disk full"), times=1)
        model.open("one")
        async with asyncio.timeout(WAIT_S):
            while runtime._worker.unwritten_ends == 0:
                await asyncio.sleep(0.001)
        model.open("two")
        await settle(runtime, two, one)
        assert await transcript(runtime, session.id) == ["two", "one"]
        model.open("three")
        await settle(runtime, await runtime.send_message(session.id, "three"))
        turns = await runtime.list_turns(session.id)
        assert [turn.request.message for turn in turns] == ["three"]


def slide(messages):
    """Return the messages of a window of four turns that is cut to two, as if they had come one by one."""
    kept = []
    for message in messages:
        kept.append(message)
        if len(kept) > 4:
            del kept[:-2]
    return kept


@pytest.mark.parametrize("seed", range(6))
async def test_random_turns_lose_no_message_and_keep_the_window(store, seed):
    chance, model = random.Random(seed), GatedModel()
    async with Runtime(store, model, max_open_turns=OPEN) as runtime:
        session = await runtime.start_session(window=WindowLimits(max_turns=4, evict_to=0.5))
        running, order, left = {}, [], [f"m{n}" for n in range(24)]
        while left or running:
            if left and len(running) < OPEN and chance.random() < 0.7:
                message = left.pop(0)
                running[message] = await runtime.send_message(session.id, message)
                assert len(await runtime.open_continuations(session.id)) == len(running)
            elif running:
                chosen = chance.sample(sorted(running), chance.randint(1, len(running)))
                for message in chosen:
                    await model.wait_for(message)
                    model.open(message)
                await settle(runtime, *(running.pop(message) for message in chosen))
                ended = await transcript(runtime, session.id)
                assert (ended[: len(order)], sorted(ended[len(order) :])) == (order, sorted(chosen))
                order = ended
                turns = await runtime.list_turns(session.id)
                assert [turn.request.message for turn in turns] == slide(order)
            if len(running) == OPEN:
                with pytest.raises(SessionBusy):
                    await runtime.send_message(session.id, "one too many")
        stored = await store.events("local", session.id, limit=10_000)
        assert [item.step.cursor for item in stored] == list(range(1, len(stored) + 1))
        ended = await runtime.get_session(session.id)
        assert (len(order), ended.stats.turns) == (24, 24)
        told = ended.memory.digest.splitlines()
        assert sorted(told) == sorted(set(told)) and len(told) == 24 - len(slide(order))


async def test_the_limit_holds_for_two_processes(tmp_path):
    """Two runtimes on one database, as two servers have them."""
    models = GatedModel(), GatedModel()
    path = tmp_path / "sash.db"
    async with (
        Runtime(SqliteStore(path), models[0], max_open_turns=2) as first,
        Runtime(SqliteStore(path), models[1], max_open_turns=2) as second,
    ):
        session = await first.start_session(window=WindowLimits(max_turns=1, evict_to=1.0))
        one = await first.send_message(session.id, "one")
        two = await second.send_message(session.id, "two")
        for runtime in (first, second):
            with pytest.raises(SessionBusy):
                await runtime.send_message(session.id, "three")
        await models[0].wait_for("one")
        await models[1].wait_for("two")
        models[1].open("two")
        await settle(second, two)
        models[0].open("one")
        await settle(first, one)
        assert await transcript(second, session.id) == ["two", "one"]
        assert [turn.request.message for turn in await second.list_turns(session.id)] == ["one"]
