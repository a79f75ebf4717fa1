"""Summaries of evicted turns by the model, and the digest that they replace."""

import asyncio
import re
from dataclasses import replace

import pytest

from sash.engine.runtime import Runtime
from sash.errors import InvalidLimit, ModelUnreachable, SessionChanged
from sash.memory.tokens import TokenCounter
from sash.ports.model import Answer, Usage
from sash.stores.memory import MemoryStore
from sash.testing import FaultyStore, ScriptedModel
from sash.values.sessions import SessionPolicy, WindowLimits
from tests.intents.speaker import in_demo_house
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import system_texts, turn


async def test_a_summary_by_the_model_takes_the_digest_s_place_off_the_turn_s_path(run):
    def line(request):
        if "Summarise" in request.messages[0]["content"]:
            return f"They talked. ({request.messages[1]['content'].count('small talk')})"
        return "ok"

    model = ScriptedModel(line)
    runtime = await run(model=model, summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary.startswith("They talked.")
    assert memory.digest == ""
    await turn(runtime, session)
    assert memory.summary in system_texts(model.requests[-1])[1]
    stats = (await runtime.get_session(session.id)).stats
    assert stats.model_calls == stats.turns + 1


@pytest.mark.parametrize("line", ["", "   ", ModelUnreachable("no summary today")])
async def test_a_summary_that_fails_or_is_empty_leaves_the_digest(run, line):
    class Model(ScriptedModel):
        async def stream(self, request):
            summary = "Summarise" in request.messages[0]["content"]
            async for delta in ScriptedModel(line if summary else "ok").stream(request):
                yield delta

    runtime = await run(model=Model("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "error E-500 at /api/users/123", turns=5)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary == ""
    assert "E-500" in memory.digest


async def test_a_summary_covers_what_an_earlier_one_has_failed_to(run):
    failing = True

    def line(request):
        if "Summarise" not in request.messages[0]["content"]:
            return "ok"
        return "" if failing else " ".join(re.findall(r"E-\d+", request.messages[1]["content"]))

    runtime = await run(model=ScriptedModel(line), summaries=True)
    session = await runtime.start_session(window=SMALL)
    for n in range(12):
        failing = n < 8
        await turn(runtime, session, f"error E-{n}00")
        await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    window = await runtime.store.window("local", session.id)
    known = memory.summary + memory.digest + " ".join(m.text for m in window.messages)
    assert all(f"E-{n}00" in known for n in range(12))
    assert memory.summary


async def test_a_summary_that_was_cut_off_is_none(run):
    def line(request):
        cut_off = Answer("They talked about the", stop_reason="length")
        return cut_off if "Summarise" in request.messages[0]["content"] else "ok"

    runtime = await run(model=ScriptedModel(line), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary == ""
    assert "small talk number 0" in memory.digest


async def test_a_summary_is_kept_although_the_session_changes_meanwhile(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run(
        lambda r: "A summary." if "Summarise" in r.messages[0]["content"] else "ok",
        summaries=True,
        store=store,
    )
    session = await runtime.start_session(window=SMALL)
    store.fail("save_session", SessionChanged("changed"), times=2)
    await fill(runtime, session)
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).memory.summary == "A summary."


async def test_usage_of_a_summary_is_counted_as_reported(run):
    class Model(ScriptedModel):
        async def stream(self, request):
            async for delta in super().stream(request):
                yield Usage(100, 10) if isinstance(delta, Usage) else delta

    runtime = await run(model=Model("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).stats.input_tokens == 600


async def test_a_full_digest_drops_its_older_half_at_once(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=WindowLimits(max_turns=2, evict_to=0.5))
    beginnings, moved = set(), 0
    for n in range(60):
        await turn(runtime, session, f"error E-{n} " + " ".join(f"/path/{n}/{k}" for k in range(12)))
        digest = (await runtime.get_session(session.id)).memory.digest
        assert TokenCounter().count_text(digest) <= 2000
        moved += bool(digest) and digest[:20] not in beginnings
        beginnings.add(digest[:20])
    assert 2 <= moved <= 8


async def test_a_summary_does_not_undo_what_has_changed_meanwhile(run):
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            if "Summarise" in request.messages[0]["content"]:
                asked.set()
                await go_on.wait()
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Slow("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await asyncio.wait_for(asked.wait(), 10)
    latest = await runtime.get_session(session.id)
    memory = replace(latest.memory, summary="another one", digest="")
    await runtime.store.save_session(replace(latest, memory=memory))
    go_on.set()
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).memory.summary == "another one"


@pytest.mark.parametrize("tokens", [0, 1, 31, True, 32.0])
def test_a_digest_without_room_for_a_line_is_refused_at_the_start(tokens):
    with pytest.raises(InvalidLimit, match="summary_tokens") as caught:
        Runtime(MemoryStore(), ScriptedModel("ok"), summary_tokens=tokens)
    assert caught.value.limit == "summary_tokens"


async def test_the_smallest_digest_is_accepted(run):
    runtime = await run("ok", summary_tokens=32)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler is loud")
    assert (await runtime.get_session(session.id)).memory.digest


async def test_everyday_commands_without_a_model_leave_one_line_each_in_the_digest():
    async with in_demo_house(policy=SessionPolicy()) as speaker:
        window = WindowLimits(max_turns=2, evict_to=0.5)
        speaker.session = await speaker.runtime.start_session(window=window)
        await speaker.say("the rent goes to DE89 3704 0044 0532 0130 00.")
        for _ in range(3):
            await speaker.say(
                "turn on the kitchen light", "fnord the blib", "wake me at 7", "cancel the alarm"
            )
            await speaker.pass_time(86_400)
        assert (await speaker.runtime.get_session(speaker.session.id)).memory.digest.splitlines() == [
            "- the rent goes to DE89 3704 0044 0532 0130 00.",
            *("- turn on the kitchen light", "- fnord the blib", "- wake me at 7", "- cancel the alarm"),
        ]
