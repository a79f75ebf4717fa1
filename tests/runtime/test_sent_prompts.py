"""Prompts that were sent to a model can be read later, word for word, on every store."""

from datetime import timedelta

import pytest

from sash.errors import ContinuationNotFound
from sash.testing import ScriptedModel, both, calling
from sash.values.sessions import ModelConfig, WindowLimits
from tests.home.small_home import house
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool

SMALL = WindowLimits(max_turns=4, evict_to=0.5)


class RecordingModel(ScriptedModel):
    """A scripted model that keeps copies of the requests."""

    def __init__(self, *lines):
        super().__init__(*lines)
        self.sent = []

    async def stream(self, request):
        self.sent.append((list(request.messages), list(request.tools)))
        async for delta in super().stream(request):
            yield delta


def answer(request):
    last = request.messages[-1]
    if last["role"] == "user" and "look twice" in str(last["content"]):
        return both(calling("look", "a", far=True), calling("look", "b"))
    return f"answer {len(request.messages)}"


async def check_exact(runtime, model, turn_id, first, owner="local"):
    """Assert that the prompts of a turn are the requests of the model from number `first` on."""
    shown = await runtime.sent_prompts(turn_id, owner=owner)
    expected = model.sent[first : first + len(shown)]
    assert len(shown) >= 1
    assert [(list(one.messages), list(one.tools)) for one in shown] == expected
    assert all(one.is_exact for one in shown)
    return len(shown)


async def talk_about_everything(runtime, model, session, home=None):
    """Have tools, facts, home changes, cuts, recalls, attachments and another model. Return the turns."""
    turns, image = [], {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    sentences = [
        ("please look twice around you", {}),
        ("the boiler in the cellar is called Bertha, think about it", {}),
        ("what do you make of this", {"attachments": [image], "planner_hints": {"prefer": "short"}}),
        ("think about rain", {"model": ModelConfig(name="another-model")}),
        *((f"small talk number {n}, think about it", {}) for n in range(6)),
        ("what did I tell you about Bertha, think", {}),
        ("look twice and think again", {}),
    ]
    for n, (sentence, options) in enumerate(sentences):
        if n == 1:
            await runtime.remember("The cat sleeps in the garage.", session_id=session.id)
        if home is not None and n in (2, 3, 4, 7):
            home.set_state("switch.kettle", "on" if n % 2 else "off")
        first = len(model.sent)
        ended = await turn(runtime, session, sentence, **options)
        assert ended.status == "completed", ended
        turns.append((ended.continuation.id, first))
    return turns


@pytest.mark.parametrize("with_home", [False, True])
async def test_the_prompts_of_a_long_talk_are_exact(run, with_home):
    model, home = RecordingModel(answer), house() if with_home else None
    look = tool("look", lambda a, c: "x" * 500 if a.get("far") else {"lamp": "on"})
    options = {"home": home} if home else {}
    runtime = await run(model=model, tools=[look], **options)
    if home:
        await runtime.home_ready(timeout_s=WAIT_S)
    session = await runtime.start_session(window=SMALL)
    turns = await talk_about_everything(runtime, model, session, home)
    total = 0
    for turn_id, first in turns:
        total += await check_exact(runtime, model, turn_id, first)
    assert total == len(model.sent) > len(turns)
    assert any("Bertha" in str(m) and m.get("volatile") for m in model.sent[-3][0])
    texts = str(model.sent)
    assert "The cat sleeps" in texts
    assert ("In the home, since the last message" in texts) == with_home


@pytest.mark.parametrize("ids", [("one message", "another message"), ("x" * 120 + "1", "x" * 120 + "2")])
async def test_the_prompts_of_an_imported_session_are_exact_whatever_its_ids_are(run, ids):
    model = RecordingModel(answer)
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "think about rain")
    exported = await runtime.export_session(session.id)
    for message, message_id in zip(exported["messages"], ids, strict=True):
        message["message"]["id"] = message_id
    exported["turn_starts"] = list(ids[:1])
    copy = await runtime.import_session(exported, owner="bob")
    sent = await runtime.send_message(copy.id, "think about snow", owner="bob")
    await runtime.await_continuation(sent.id, owner="bob", timeout_s=WAIT_S)
    await check_exact(runtime, model, sent.id, 1, owner="bob")


async def test_prompts_survive_a_restart_and_are_dropped_with_the_steps(run, make_store, clock):
    store, model = make_store(), RecordingModel(answer)
    runtime = await run(model=model, store=store)
    session = await runtime.start_session()
    turns = []
    for n in range(3):
        turns.append((await turn(runtime, session, f"think about {n}")).continuation.id)
        clock.advance(timedelta(hours=10).total_seconds())
    await check_exact(runtime, model, turns[2], 2)
    clock.advance(timedelta(hours=3).total_seconds())
    await runtime.sweep()  # drops the steps of the first turn, whose parts the others need
    assert await runtime.sent_prompts(turns[0]) == []
    await check_exact(runtime, model, turns[1], 1)
    if store.is_durable:
        await runtime.close()
        runtime = await run(model=model, store=make_store())
        await check_exact(runtime, model, turns[2], 2)
    await turn(runtime, session, "think once more")
    shown = await runtime.sent_prompts((await runtime.list_turns(session.id))[-1].id)
    assert [list(one.messages) for one in shown] == [model.sent[-1][0]]


async def test_parts_stay_while_a_kept_turn_needs_them(run, make_store, clock):
    store, model = make_store(), RecordingModel(answer)
    runtime = await run(model=model, store=store)
    session = await runtime.start_session()
    turns = []
    for n in range(4):
        turns.append((await turn(runtime, session, f"think about {n}")).continuation.id)
        clock.advance(timedelta(minutes=20).total_seconds())
    for minutes in (24 * 60 - 70, 20):
        clock.advance(timedelta(minutes=minutes).total_seconds())
        await runtime.sweep()
        if store.is_durable:
            await runtime.close()
            store = make_store()
            runtime = await run(model=model, store=store)
        await check_exact(runtime, model, turns[3], 3)
    assert await runtime.sent_prompts(turns[0]) == []


async def test_an_amended_answer_makes_a_later_prompt_inexact(run):
    model = RecordingModel(answer)
    runtime = await run(model=model)
    session = await runtime.start_session()
    first = (await turn(runtime, session, "think about one")).continuation.id
    second = (await turn(runtime, session, "think about two")).continuation.id
    await runtime.amend_turn(first, "something else")
    [shown] = await runtime.sent_prompts(second)
    assert not shown.is_exact and "something else" in str(shown.messages)
    await check_exact(runtime, model, first, 0)


async def test_the_prompt_of_a_turn_that_failed_is_stored(run):
    model = RecordingModel(RuntimeError("the model is broken"))
    runtime = await run(model=model)
    session = await runtime.start_session()
    failed = await turn(runtime, session, "think")
    assert failed.status == "failed"
    await check_exact(runtime, model, failed.continuation.id, 0)


async def test_secrets_are_not_stored(run):
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    runtime = await run(model=RecordingModel(answer), system_prompt=f"Use the key {secret}.")
    session = await runtime.start_session()
    [shown] = await runtime.sent_prompts((await turn(runtime, session, "think")).continuation.id)
    assert not shown.is_exact and secret not in str(shown)


async def test_the_prompts_of_another_owner_are_unknown(run):
    runtime = await run(model=RecordingModel(answer))
    session = await runtime.start_session()
    turn_id = (await turn(runtime, session, "think")).continuation.id
    with pytest.raises(ContinuationNotFound):
        await runtime.sent_prompts(turn_id, owner="eve")
