"""The description of the home in the prompt, and how the prompt reports changes in the home."""

import itertools

from sash.testing import calling
from sash.values.sessions import WindowLimits
from tests.runtime.home_actions import FREE
from tests.runtime.talk import WAIT_S, said, system_texts, transcript, turn


async def test_the_house_is_told_once_and_then_what_changed(live):
    runtime = await live("one", "two", "three", "four")
    session = await runtime.start_session()
    for message in ("a story", "another story", "one more story", "the last story"):
        if message == "one more story":
            runtime.house.set_state("switch.kettle", "on")
        await turn(runtime, session, message)
    first, second, third, fourth = runtime.model.requests
    [told] = [text for text in system_texts(first) if text.startswith("The home")]
    assert "light.kitchen_ceiling off" in told
    for request in (second, third, fourth):
        assert told in system_texts(request)
        assert request.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages
    asked = third.messages[-1]["content"]
    assert asked.startswith("<context>\nIn the home, since the last message:\nchanged: switch.kettle on\n")
    assert fourth.messages[: len(third.messages)] == third.messages
    assert "<context>" not in fourth.messages[-1]["content"]


async def test_what_changed_is_not_part_of_the_transcript(live):
    runtime = await live("one", "two")
    session = await runtime.start_session()
    await turn(runtime, session, "a story")
    runtime.house.set_state("switch.kettle", "on")
    await turn(runtime, session, "another story")
    assert [text for role, text in await transcript(runtime, session) if role == "user"] == [
        "a story",
        "another story",
    ]


async def test_after_a_yes_the_prompt_goes_on_as_it_was(live):
    unlock = calling("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    runtime = await live("one", unlock, "It is open.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "a story about ghosts")
    runtime.house.set_state("switch.kettle", "on")
    waiting = await turn(runtime, session, "let my cat in, she is a ghost")
    runtime.house.set_state("light.living_room", "on")
    await runtime.approve(waiting.continuation.id, waiting.steps[-1].detail["call_id"])
    await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    _, before, after = runtime.model.requests
    assert after.messages[: len(before.messages)] == before.messages
    assert "changed: switch.kettle on" in before.messages[-1]["content"]


async def test_the_house_is_told_anew_when_the_window_is_cut(live):
    runtime = await live("word " * 60)
    session = await runtime.start_session(window=WindowLimits(max_tokens=400))
    for number in range(8):
        runtime.house.set_state("switch.kettle", "on" if number % 2 else "off")
        await turn(runtime, session, f"story {number} about ghosts")
    cuts = [
        later
        for earlier, later in itertools.pairwise(runtime.model.requests)
        if later.messages[: len(earlier.messages)] != earlier.messages
    ]
    assert cuts
    for request in cuts:
        [told] = [text for text in system_texts(request) if text.startswith("The home")]
        number = int(said(request)[-1].split()[1])
        assert f"switch.kettle {'on' if number % 2 else 'off'}" in told
        assert not any("<context>" in m["content"] for m in request.messages if m["role"] == "user")


async def test_the_house_is_told_anew_when_much_has_changed(live, monkeypatch):
    monkeypatch.setattr("sash.engine.turn.turn_context.MAX_CHANGED_TOKENS", 20)
    runtime = await live("fine")
    session = await runtime.start_session()
    for number in range(6):
        runtime.house.set_state("switch.kettle", "off" if number % 2 else "on")
        await turn(runtime, session, f"story {number} about ghosts")
    told = [[t for t in system_texts(r) if t.startswith("The home")] for r in runtime.model.requests]
    assert len({text for [text] in told}) > 1
    last = runtime.model.requests[-1].messages
    assert sum("<context>" in m["content"] for m in last if m["role"] == "user") < 4


async def test_the_context_report_shows_the_house(live):
    runtime = await live("one")
    session = await runtime.start_session()
    before = await runtime.context_report(session.id)
    assert "house" in [part["name"] for part in before["parts"]], "also before a model was asked"
    await turn(runtime, session, "a story")
    report = await runtime.context_report(session.id)
    parts = {part["name"]: part for part in report["parts"]}
    assert parts["house"]["stable"] is True
    assert list(parts).index("house") < list(parts).index("window")
    assert report["prefix_share"] > 0.9
