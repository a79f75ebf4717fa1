"""A prompt has its parts in a fixed order, and the report names them."""

import asyncio
import json
from itertools import pairwise

import pytest

from sash.errors import InvalidExport, InvalidInput, ModelFixed
from sash.memory.tokens import TokenCounter
from sash.models.catalog import Catalog, ModelFacts
from sash.ports.model import Answer
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, calling
from sash.values.sessions import LAST_K, ModelConfig, SessionPolicy, WindowLimits
from tests.runtime.talk import WAIT_S, answer, said, system_texts, transcript, turn

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image_url", "image_url": {"url": PIXEL}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
BIG = Catalog({"big": ModelFacts(context_window=1_000_000), "small": ModelFacts(context_window=128_000)})


class Named(ScriptedModel):
    name = "small"


async def test_the_stable_comes_first_and_the_volatile_last(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=WindowLimits(max_turns=3, evict_to=0.5))
    for n in range(5):
        clock.advance(60)
        await turn(runtime, session, f"message {n}", planner_hints={"area": f"room {n}"})
    last = model.requests[-1].messages
    assert [m["role"] for m in last] == ["system", "system", "user", "assistant", "system", "user"]
    assert "message 0" in last[1]["content"]
    assert last[2]["content"] == "[Thu 2026-01-01 00:04] message 3"
    assert last[4]["content"] == "Hints for this turn:\narea: room 4"
    assert last[5] == {"role": "user", "content": "[Thu 2026-01-01 00:05] message 4"}


async def test_a_call_begins_with_all_of_the_last_turn_s(run, clock):
    async def look(arguments, context):
        clock.advance(30)
        return "seen"

    def line(request):
        return calling("look") if request.messages[-1]["role"] == "user" else "ok"

    model = ScriptedModel(line)
    tool = ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")
    runtime = await run(model=model, tools=[tool])
    session = await runtime.start_session()
    for n in range(5):
        clock.advance(100)
        await turn(runtime, session, f"message {n}")
    for before, after in pairwise(model.requests):
        assert after.messages[: len(before.messages)] == before.messages


async def test_a_restarted_process_shows_the_same(run, make_store, clock):
    store, models = make_store(), []
    session = None
    for n in range(3):
        models.append(ScriptedModel("ok"))
        runtime = await run(model=models[-1], store=store)
        session = session or await runtime.start_session()
        await turn(runtime, session, f"message {n}", attachments=[IMAGE] if n == 1 else [])
        await runtime.close()
        clock.advance(100)
    for before, after in pairwise(models):
        shown = before.requests[-1].messages
        assert json.dumps(after.requests[0].messages[: len(shown)]) == json.dumps(shown)


async def test_a_message_that_waited_is_told_the_time(run, make_store, clock):
    store, started = make_store(), asyncio.Event()

    async def wait(arguments, context):
        started.set()
        await asyncio.Event().wait()

    tool = ToolSpec("wait", "Wait.", {"type": "object"}, wait, safety="idempotent")
    first = await run(model=ScriptedModel(calling("wait")), store=store, tools=[tool])
    session = await first.start_session()
    sent = await first.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await first.close()
    clock.advance(3600)
    model = ScriptedModel("late")
    second = await run(model=model, store=store)
    await second.resume(sent.id)
    await second.await_continuation(sent.id, timeout_s=WAIT_S)
    assert system_texts(model.requests[0])[-1] == "It is now Thu 2026-01-01 01:00."


async def test_the_head_is_byte_identical_until_the_cut_moves(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=WindowLimits(max_turns=10, evict_to=0.5))
    heads = []
    for n in range(40):
        clock.advance(60)
        await turn(runtime, session, f"message {n}")
        heads.append(model.requests[-1].messages[:-2])
    moved = 0
    for before, after in pairwise(heads):
        same = json.dumps(after[: len(before)]) == json.dumps(before)
        moved += not same
    assert 5 <= moved <= 8


async def test_every_call_of_a_turn_begins_with_the_last_one(run):
    async def look(arguments, context):
        return "seen"

    model = ScriptedModel(calling("look", "a"), calling("look", "b"), "ok")
    tool = ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")
    runtime = await run(model=model, tools=[tool])
    session = await runtime.start_session()
    await turn(runtime, session)
    first, second, third = (request.messages for request in model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


async def test_the_report_counts_what_the_model_is_sent(run, clock):
    model = ScriptedModel("an answer of some words")
    runtime = await run(model=model)
    session = await runtime.start_session(window=WindowLimits(max_turns=3, evict_to=0.5))
    assert (await runtime.context_report(session.id))["prefix_share"] is None
    for n in range(9):
        clock.advance(60)
        report = await runtime.context_report(session.id)
        await turn(runtime, session, f"message {n}")
        sent = TokenCounter().count_messages(model.requests[-1].messages[:-1], model.requests[-1].tools)
        assert report["total_tokens"] == sent == sum(p["tokens"] for p in report["parts"]) + 3
    assert [p["name"] for p in report["parts"]] == ["system", "tools", "memory", "window"]
    assert all(p["stable"] for p in report["parts"])
    await runtime.remember("a new fact", session_id=session.id)
    notes = (await runtime.context_report(session.id))["parts"][-1]
    assert (notes["name"], notes["stable"]) == ("notes", False)
    assert notes["sections"] == [
        {"name": "facts", "tokens": notes["tokens"], "text": "What is known:\na new fact"}
    ]
    assert [gone["reason"] for gone in report["evicted"]] == ["max_turns"] * len(report["evicted"]) != []
    assert report["evicted_count"] > len(report["evicted"])
    assert "message 0" in report["digest"]


async def test_the_report_has_the_sections_of_the_memory_and_the_next_cut(run, clock):
    runtime = await run(model=ScriptedModel("an answer of some words"))
    session = await runtime.start_session(area="Kitchen", window=WindowLimits(max_turns=2, evict_to=0.5))
    await runtime.pin("the cat is Minka", session_id=session.id)
    clock.advance(60)
    cuts = 0
    for n in range(4):
        before = await runtime.context_report(session.id)
        await turn(runtime, session, f"message {n}")
        report = await runtime.context_report(session.id)
        if report["evicted_count"] > before["evicted_count"]:
            cuts += 1
            assert [each["message_id"] for each in report["evicted"]] == before["next_evicted"]
    assert cuts
    memory = next(part for part in report["parts"] if part["name"] == "memory")
    assert [section["name"] for section in memory["sections"]] == ["place", "pins", "digest"]
    assert sum(section["tokens"] for section in memory["sections"]) == memory["tokens"]
    assert memory["sections"][1]["text"] == "Always keep in mind:\nthe cat is Minka"


async def test_the_prefix_share_is_what_the_last_call_began_with(run, clock):
    model = ScriptedModel("an answer of some words")
    runtime = await run(model=model)
    session = await runtime.start_session()
    for n in range(3):
        await turn(runtime, session, f"message {n}")
        clock.advance(60)
    report = await runtime.context_report(session.id)
    asked, counter = model.requests[-1], TokenCounter()
    await turn(runtime, session, "next")
    same = counter.count_tools(asked.tools)
    for before, after in zip(asked.messages, model.requests[-1].messages, strict=False):
        if before != after:
            break
        same += counter.count_message(before["content"])
    assert report["prefix_share"] == pytest.approx(same / report["total_tokens"])
    assert 0.5 < report["prefix_share"] < 1


async def test_a_restarted_process_does_not_guess_what_was_asked(run, make_store):
    store = make_store()
    first = await run("ok", store=store)
    session = await first.start_session()
    await turn(first, session)
    await first.close()
    second = await run("ok", store=store)
    assert (await second.context_report(session.id))["prefix_share"] is None


async def test_another_model_for_one_turn_sees_a_digest_and_the_last_messages(run):
    model = Named("ok")
    runtime = await run(model=model, catalog=BIG)
    session = await runtime.start_session()
    for n in range(8):
        await turn(runtime, session, f"message {n} about error E-{n}")
    await turn(runtime, session, "and you?", model=ModelConfig(name="other", temperature=0.1))
    visited = model.requests[-1]
    assert (visited.config.name, visited.config.temperature) == ("other", 0.1)
    shown = said(visited)
    assert len(shown) == LAST_K + 1
    assert shown[0] == "message 5 about error E-5"
    assert all(f"E-{n}" in system_texts(visited)[1] for n in range(5))
    await turn(runtime, session, "back again")
    usual = model.requests[-1]
    assert usual.config.name is None
    assert len([m for m in usual.messages if m["role"] == "user"]) == 10


async def test_a_visiting_model_with_a_large_context_sees_more(run):
    model = Named("ok")
    runtime = await run(model=model, catalog=BIG)
    session = await runtime.start_session()
    for n in range(20):
        await turn(runtime, session, f"message {n}")
    await turn(runtime, session, "and you?", model=ModelConfig(name="big"))
    assert len([m for m in model.requests[-1].messages if m["role"] != "system"]) > 2 * LAST_K


async def test_a_visitor_never_sees_half_a_call(run):
    async def look(arguments, context):
        return "seen"

    tool = ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")

    def line(request):
        if request.messages[-1]["role"] == "user" and request.config.name is None:
            return calling("look")
        return "ok"

    model = ScriptedModel(line)
    runtime = await run(model=model, tools=[tool])
    session = await runtime.start_session()
    for n in range(4):
        await turn(runtime, session, f"message {n}")
    await turn(runtime, session, "and you?", model=ModelConfig(name="other"))
    roles = [m["role"] for m in model.requests[-1].messages if m["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2 + ["user"]


async def test_a_fixed_model_is_not_changed(run):
    runtime = await run(model=Named("ok"), catalog=BIG)
    session = await runtime.start_session(policy=SessionPolicy(enforce_fixed_model=True))
    with pytest.raises(ModelFixed) as error:
        await runtime.send_message(session.id, "hi", model=ModelConfig(name="other"))
    assert error.value.code == "model_fixed"
    assert await answer(runtime, session, model=ModelConfig(name="small", temperature=0.5)) == "ok"
    assert await answer(runtime, session, model=ModelConfig(temperature=0.5)) == "ok"


async def test_a_retry_asks_the_same_model(run):
    model = ScriptedModel(RuntimeError("no"), "ok")
    runtime = await run(model=model)
    session = await runtime.start_session()
    failed = await turn(runtime, session, model=ModelConfig(name="other"), attachments=[IMAGE])
    again = await runtime.retry(failed.continuation.id)
    await runtime.await_continuation(again.id, timeout_s=WAIT_S)
    assert model.requests[1].config.name == "other"
    assert model.requests[1].messages[-1] == model.requests[0].messages[-1]


async def test_a_model_that_reads_much_gets_a_wide_window(run):
    runtime = await run(model=Named("ok"), catalog=BIG)
    usual = await runtime.start_session()
    assert (usual.window.max_tokens, usual.memory.last_k) == (4000, LAST_K)
    wide = await runtime.start_session(model=ModelConfig(name="big"))
    assert (wide.window.max_tokens, wide.memory.last_k) == (15_625, 23)
    own = await runtime.start_session(model=ModelConfig(name="big"), window=WindowLimits(max_tokens=500))
    assert own.window.max_tokens == 500


async def test_images_and_audio_reach_the_model_and_count(run):
    model = ScriptedModel("a pixel")
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "what is this?", attachments=[IMAGE, AUDIO])
    shown = model.requests[-1].messages[-1]["content"]
    assert list(shown) == [{"type": "text", "text": "[Thu 2026-01-01 00:00] what is this?"}, IMAGE, AUDIO]
    [first, _] = await runtime.store.messages("local", session.id)
    assert first.message.token_count > 85 + 300
    assert (await transcript(runtime, session))[0] == ("user", "what is this?")
    await turn(runtime, session, "and now?")
    assert model.requests[-1].messages[1]["content"][1] == IMAGE
    assert len(await runtime.search("this", limit=1)) == 1
    data = json.loads(json.dumps(await runtime.export_session(session.id)))
    await runtime.erase()
    await runtime.import_session(data)
    [again, *_] = await runtime.store.messages("local", session.id)
    assert again.message == first.message


@pytest.mark.parametrize(
    "wrong",
    [
        [{"type": "text", "text": "x"}],
        ["x"],
        [{"no": "type"}],
        "x",
        [{"type": "image_url", "image_url": 5}],
        [{"type": "image_url", "image_url": {"url": "x" * (2**20)}}],
    ],
)
async def test_attachments_are_checked(run, wrong):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.send_message(session.id, "hi", attachments=wrong)


async def test_a_system_prompt_of_one_s_own(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, system_prompt="You are a parrot.", memory_tools=False)
    session = await runtime.start_session()
    await turn(runtime, session)
    assert system_texts(model.requests[0])[0] == "You are a parrot."
    assert model.requests[0].tools == []


@pytest.mark.parametrize(
    "nothing", [Answer(""), Answer("  "), Answer("", reasoning="hm", stop_reason="length")]
)
async def test_an_empty_answer_is_said_to_be_one(run, nothing):
    runtime = await run(nothing)
    session = await runtime.start_session()
    assert await answer(runtime, session) == "The model has said nothing."


async def test_the_address_of_an_image_gives_no_password_away(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, allow_image_urls=True)
    session = await runtime.start_session()
    image = {"type": "image_url", "image_url": {"url": "https://cam.example.com/now.png?token=hunter2xyz"}}
    await turn(runtime, session, "what is this?", attachments=[image])
    assert "hunter2xyz" not in json.dumps(await runtime.export_session(session.id))


async def test_the_options_of_a_turn_are_added_to_the_session_s(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(model=ModelConfig(temperature=0.5, options={"a": 1, "b": 1}))
    await turn(runtime, session, model=ModelConfig(max_output_tokens=9, options={"b": 2}))
    config = model.requests[0].config
    assert (config.temperature, config.max_output_tokens, config.options) == (0.5, 9, {"a": 1, "b": 2})


@pytest.mark.parametrize("option", ["model", "messages", "stream", "max_output_tokens", "tools"])
async def test_reserved_options_are_refused_before_anything_is_stored(run, option):
    runtime = await run(model=ScriptedModel("ok"))
    reserved = ModelConfig(options={option: "x"})
    with pytest.raises(InvalidInput, match=option):
        await runtime.start_session(model=reserved)
    assert not (await runtime.list_sessions()).items
    session = await runtime.start_session()
    with pytest.raises(InvalidInput, match=option):
        await runtime.send_message(session.id, "hi", model=reserved)
    assert await runtime.open_continuations(session.id) == []


async def test_a_model_reserves_options_of_its_own(run):
    class Reserving(ScriptedModel):
        reserved_options = frozenset({"seed"})

    runtime = await run(model=Reserving("ok"))
    with pytest.raises(InvalidInput, match="options may not contain seed: Sash sets these itself"):
        await runtime.start_session(model=ModelConfig(options={"seed": 1, "top_p": 1}))


async def test_an_import_with_reserved_options_is_refused(run):
    runtime = await run(model=ScriptedModel("ok"))
    session = await runtime.start_session(model=ModelConfig(options={"seed": 1}))
    exported = await runtime.export_session(session.id)
    exported["session"]["model"]["options"] = {"messages": []}
    with pytest.raises(InvalidExport, match="options may not contain messages"):
        await runtime.import_session(exported, owner="other")


async def test_a_model_that_reads_little_gets_a_small_window(run):
    catalog = Catalog({"tiny": ModelFacts(context_window=2048)})
    runtime = await run(model=Named("ok"), catalog=catalog)
    session = await runtime.start_session(model=ModelConfig(name="tiny"))
    assert (session.window.max_tokens, session.memory.last_k) == (682, 2)


async def test_what_is_in_every_prompt_is_bounded(run):
    runtime = await run()
    with pytest.raises(InvalidInput, match="preferences"):
        await runtime.start_session(preferences={"a": "x" * 5000})
    session = await runtime.start_session(preferences={"a": "x" * 3000})
    with pytest.raises(InvalidInput, match="preferences"):
        await runtime.set_preferences(session.id, {"b": "x" * 3000})
    with pytest.raises(InvalidInput):
        await runtime.send_message(session.id, "hi", planner_hints={"a": "x" * 20_000})
