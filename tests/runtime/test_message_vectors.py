"""Vectors of evicted messages, from a server with OpenAI's wire format."""

import asyncio

import pytest

from sash.engine import message_vectors
from sash.errors import ModelError, ModelQuotaReached, ModelUnreachable
from sash.memory.packed_vectors import pack_vector
from sash.models.openai.embedder import OpenAIEmbedder
from sash.ports.store import Vector
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, calling
from tests.models.wire import Wire, embedded
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import WAIT_S, answer, system_texts, transcript, turn

# A text about one of these has a vector in the direction of its group.
MEANINGS = (("boiler", "heater"), ("talk",), ("cat", "pet"), ("ok",))


def embed(request):
    """Reply with the vectors of the texts of a request."""
    size = request.body.get("dimensions", len(MEANINGS))
    return embedded(
        *(
            [0.1 + any(word in text for word in same) for same in MEANINGS][:size]
            for text in request.body["input"]
        )
    )


def embedder_at(wire, dimensions=4):
    return OpenAIEmbedder("m", api_key="k", base_url=f"{wire.url}/v1", retries=0, dimensions=dimensions)


def embedded_texts(wire):
    return [text for request in wire.requests for text in request.body["input"]]


@pytest.fixture
async def wire():
    async with Wire(embed) as wire:
        yield wire


async def vectors_of(runtime, session):
    await runtime.wait_for_background()
    return await runtime.store.vectors("local", session.id)


async def test_every_evicted_message_is_embedded_once_and_no_result_of_a_tool(wire, run):
    look = ToolSpec("look", "Look.", {"type": "object", "properties": {}}, lambda *_: "a long result")
    model = ScriptedModel(calling("look"), "ok")
    runtime = await run(model=model, embedder=embedder_at(wire), tools=[look])
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=12)
    vectors = await vectors_of(runtime, session)
    said = await transcript(runtime, session)
    window = await runtime.store.window("local", session.id)
    evicted = said[: window.evicted_count]
    wanted = [n for n, (role, text) in enumerate(evicted, 1) if role in ("user", "assistant") and text]
    assert "tool" in {role for role, _ in evicted}
    assert [vector.position for vector in vectors] == wanted
    assert embedded_texts(wire) == [evicted[n - 1][1] for n in wanted]
    assert {len(vector.data) for vector in vectors} == {4 + len(MEANINGS)}


async def test_an_old_message_comes_back_by_its_meaning(wire, run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, embedder=embedder_at(wire))
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks at the valve", turns=16)
    await runtime.wait_for_background()
    result = await turn(runtime, session, "What was wrong with the heater?")
    [recalled] = [step.detail for step in result.steps if step.type == "retrieval"]
    said = await runtime.store.messages("local", session.id, limit=1)
    assert recalled["message_ids"][0] == said[0].message.id
    assert recalled["scores"][0] > 0.5
    assert "The boiler leaks at the valve" in system_texts(model.requests[-1])[-1]
    result = await turn(runtime, session, "What did the pet do?")
    assert "retrieval" not in [step.type for step in result.steps], "no message is clearly similar"
    wire.replies = [embedded([])]
    assert await answer(runtime, session, "What was wrong with the heater?") == "ok"


async def test_vectors_of_whole_turns_are_ignored_and_replaced(wire, run):
    runtime = await run("ok")
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks at the valve", turns=16)
    of_turns = [Vector(n, "m/4", bytes(16)) for n in range(1, 30, 2)]
    await runtime.store.add_vectors("local", session.id, of_turns, keep=99)
    store = runtime.store
    again = await run(model=ScriptedModel("ok"), embedder=embedder_at(wire), store=store)
    await turn(again, session, "What was wrong with the heater?")
    await fill(again, session, turns=4)
    vectors = await vectors_of(again, session)
    assert {len(vector.data) for vector in vectors} == {8}
    assert [vector.position for vector in vectors] == list(range(1, vectors[-1].position + 1))


async def test_another_model_under_the_same_name_makes_all_vectors_anew(wire, run):
    runtime = await run("ok", embedder=embedder_at(wire, None))
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=12)
    before = await vectors_of(runtime, session)
    wire.replies = [lambda request: embedded(*[[1.0, 2.0, 3.0]] * len(request.body["input"]))]
    await fill(runtime, session, turns=4)
    vectors = await vectors_of(runtime, session)
    assert {vector.data for vector in vectors} == {pack_vector([1.0, 2.0, 3.0])}
    assert len(vectors) > len(before) > 12


async def test_an_amended_message_gets_a_new_vector_with_the_next_eviction(wire, run):
    runtime = await run("ok", embedder=embedder_at(wire))
    session = await runtime.start_session(window=SMALL)
    first = await runtime.send_message(session.id, "The boiler leaks")
    await runtime.await_continuation(first.id, timeout_s=WAIT_S)
    await fill(runtime, session, turns=8)
    before = await vectors_of(runtime, session)
    await runtime.store.amend("local", first.id, "The cat did it.", 4)
    left = await runtime.store.vectors("local", session.id)
    assert [v.position for v in before if v not in left] == [2]
    await fill(runtime, session, turns=8)
    after = {vector.position: vector.data for vector in await vectors_of(runtime, session)}
    assert after[2] != before[1].data
    assert [after[v.position] for v in left] == [v.data for v in left]


async def test_only_the_newest_evicted_messages_have_vectors(wire, run, monkeypatch):
    monkeypatch.setattr(message_vectors, "MAX_VECTORS", 6)
    runtime = await run("ok", embedder=embedder_at(wire))
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=20)
    vectors = await vectors_of(runtime, session)
    window = await runtime.store.window("local", session.id)
    evicted = window.evicted_count
    assert [vector.position for vector in vectors] == list(range(evicted - 5, evicted + 1))


async def test_an_eviction_reads_the_newest_vectors_only(wire, run, monkeypatch):
    monkeypatch.setattr(message_vectors, "PAGE", 4)
    runtime = await run("ok", embedder=embedder_at(wire))
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=12)
    assert len(await vectors_of(runtime, session)) > 8
    counts, read = [], runtime.store.vectors

    async def count(*args, **options):
        found = await read(*args, **options)
        counts.append(len(found))
        return found

    monkeypatch.setattr(runtime.store, "vectors", count)
    await fill(runtime, session, turns=8)
    monkeypatch.undo()
    vectors = await vectors_of(runtime, session)
    assert [vector.position for vector in vectors] == list(range(1, len(vectors) + 1))
    assert counts and max(counts) <= 4


class Own:
    """An embedder that refuses some texts, and waits for `gate` before it embeds others."""

    name = "own"

    def __init__(self):
        self.sent, self.gate, self.waits = [], asyncio.Event(), asyncio.Event()
        self.is_down = False

    async def close(self): ...

    async def embed(self, texts):
        if self.is_down:
            raise ModelUnreachable("down")
        self.sent += texts
        if any("refused" in text for text in texts):
            raise ModelError("input is too large")
        if any("secret" in text for text in texts):
            self.waits.set()
            await self.gate.wait()
        return [[1.0, float("nan") if "broken" in text else 0.1] for text in texts]


async def test_a_message_that_the_embedder_refuses_stops_no_other(run):
    embedder = Own()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "this is refused", "this is broken", turns=12)
    vectors = await vectors_of(runtime, session)
    empty = {vector.position for vector in vectors if not vector.data}
    assert empty == {1, 3}
    assert len(vectors) > 15
    sent = len(embedder.sent)
    await fill(runtime, session, turns=4)
    await runtime.wait_for_background()
    assert not any("refused" in text or "broken" in text for text in embedder.sent[sent:])


async def test_an_embedder_that_is_down_marks_no_message(run):
    embedder = Own()
    embedder.is_down = True
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=8)
    assert await vectors_of(runtime, session) == []
    embedder.is_down = False
    await fill(runtime, session, turns=4)
    assert all(vector.data for vector in await vectors_of(runtime, session))


async def test_an_answer_that_is_amended_while_it_is_embedded_gets_no_vector_of_its_old_text(run):
    embedder = Own()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    recorded = await runtime.record_turn(session.id, "hello", "the secret diagnosis")
    await fill(runtime, session, turns=6)
    await asyncio.wait_for(embedder.waits.wait(), WAIT_S)
    await runtime.amend_turn(recorded.id, "nothing to see")
    embedder.gate.set()
    assert 2 not in {vector.position for vector in await vectors_of(runtime, session)}
    await fill(runtime, session, turns=4)
    assert 2 in {vector.position for vector in await vectors_of(runtime, session)}
    assert "nothing to see" in embedder.sent


async def test_an_error_that_may_pass_marks_no_message_even_if_a_short_text_is_accepted(run):
    class Busy(Own):
        is_busy = True

        async def embed(self, texts):
            if self.is_busy and texts != ["ok"]:
                raise ModelQuotaReached("too many requests")
            return await super().embed(texts)

    embedder = Busy()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=8)
    assert await vectors_of(runtime, session) == []
    embedder.is_busy = False
    await fill(runtime, session, turns=4)
    assert all(vector.data for vector in await vectors_of(runtime, session))
