"""An answer that claims an action that no tool has done does not reach the user."""

import asyncio

import pytest

from sash.engine.turn.progress import Progress
from sash.ports.model import Answer
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, calling
from sash.values.continuations import Action
from sash.values.sessions import SessionPolicy
from tests.runtime.talk import transcript, turn

LIE = "I've turned on the kitchen light."
NOTHING_DONE = "I have not done that: no action was carried out in this turn."
OPEN = SessionPolicy(allow_actuation=True, allowlisted_services=("light",))


async def switch(arguments, context):
    if arguments.get("broken"):
        raise RuntimeError("the lamp does not answer")
    return {"state": "on"}


LIGHT = ToolSpec("light.turn_on", "Turn a light on.", {"type": "object"}, switch, action=True)


async def test_a_lie_is_sent_back_once_and_the_truth_is_told(run):
    model = ScriptedModel(LIE, "The kitchen light is off; I cannot switch it.")
    runtime = await run(model=model, tools=[LIGHT])
    session = await runtime.start_session()
    result = await turn(runtime, session, "turn on the light")
    assert result.response.final_message == "The kitchen light is off; I cannot switch it."
    assert [s.type for s in result.steps] == ["observed_event", "summary"]
    sent_back = model.requests[1].messages[-2:]
    assert sent_back[0] == {"role": "assistant", "content": LIE}
    assert "no tool has done" in sent_back[1]["content"]
    assert await transcript(runtime, session) == [
        ("user", "turn on the light"),
        ("assistant", "The kitchen light is off; I cannot switch it."),
    ]
    assert result.continuation.stats.model_calls == 2


async def test_who_lies_twice_is_not_heard(run):
    runtime = await run(LIE, tools=[LIGHT])
    session = await runtime.start_session()
    result = await turn(runtime, session, "turn on the light")
    assert result.response.final_message == NOTHING_DONE
    assert result.response.actions == ()
    assert (await transcript(runtime, session))[-1] == ("assistant", NOTHING_DONE)
    assert len(runtime.model.requests) == 2


async def test_who_is_sent_back_can_do_it_then(run):
    model = ScriptedModel(LIE, calling("light.turn_on"), LIE)
    runtime = await run(model=model, tools=[LIGHT])
    session = await runtime.start_session(policy=OPEN)
    result = await turn(runtime, session, "turn on the light")
    assert result.response.final_message == LIE
    assert [a.outcome for a in result.response.actions] == ["done"]
    assert [role for role, _ in await transcript(runtime, session)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    roles = [m["role"] for m in model.requests[2].messages[1:]]
    assert roles == ["user", "assistant", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("policy", "arguments", "outcome"),
    [(SessionPolicy(), {}, "denied"), (OPEN, {"broken": True}, "failed")],
)
async def test_an_action_that_was_denied_or_failed_is_none(run, policy, arguments, outcome):
    runtime = await run(calling("light.turn_on", **arguments), LIE, tools=[LIGHT])
    session = await runtime.start_session(policy=policy)
    result = await turn(runtime, session, "turn on the light")
    assert result.response.final_message == f"{NOTHING_DONE} (light.turn_on: {outcome})"


async def test_what_was_done_may_be_said(run):
    model = ScriptedModel(calling("light.turn_on"), LIE)
    runtime = await run(model=model, tools=[LIGHT])
    session = await runtime.start_session(policy=OPEN)
    assert (await turn(runtime, session, "turn on the light")).response.final_message == LIE
    assert len(model.requests) == 2


async def test_who_does_not_want_it_checked_is_not_bothered(run):
    runtime = await run(LIE, tools=[LIGHT])
    session = await runtime.start_session(policy=SessionPolicy(grounded_answers=False))
    assert (await turn(runtime, session)).response.final_message == LIE


async def test_where_nothing_can_be_switched_nothing_is_checked(run):
    runtime = await run("I've set the variable to 5 in the code below.")
    session = await runtime.start_session()
    assert (await turn(runtime, session)).response.final_message.startswith("I've set")


async def test_a_lie_is_known_after_a_crash(run, make_store, clock):
    asked = asyncio.Event()

    class Stuck(ScriptedModel):
        async def stream(self, request):
            if self.requests:
                asked.set()
                await asyncio.Event().wait()
            async for delta in super().stream(request):
                yield delta

    store = make_store()
    first = await run(model=Stuck(LIE), store=store, tools=[LIGHT])
    session = await first.start_session()
    sent = await first.send_message(session.id, "turn on the light")
    await asyncio.wait_for(asked.wait(), 10)
    await first.close()
    clock.advance(31)
    second = await run(LIE, store=store, tools=[LIGHT])
    await second.resume(sent.id)
    result = await second.await_continuation(sent.id, timeout_s=10)
    assert result.response.final_message == NOTHING_DONE
    assert len(second.model.requests) == 1


async def test_what_was_done_in_an_earlier_turn_may_be_told(run):
    runtime = await run(calling("light.turn_on"), LIE, "Yes, I turned on the kitchen light.", tools=[LIGHT])
    session = await runtime.start_session(policy=OPEN)
    await turn(runtime, session, "turn on the light")
    result = await turn(runtime, session, "Did you do it?")
    assert result.response.final_message == "Yes, I turned on the kitchen light."


async def test_who_has_noted_something_may_say_so(run):
    noted = "I've set your favourite colour to blue in my notes."
    runtime = await run(calling("remember", text="blue"), noted, tools=[LIGHT])
    session = await runtime.start_session()
    assert (await turn(runtime, session, "my favourite colour is blue")).response.final_message == noted


async def test_local_answers_are_believed(run):
    class House:
        async def understand(self, heard):
            return Answer("Done.", local=True)

    runtime = await run("never asked", intents=[House()], tools=[LIGHT])
    session = await runtime.start_session()
    assert (await turn(runtime, session, "turn it on")).response.final_message == "Done."


async def test_the_truth_is_told_in_the_language_of_the_lie(run):
    runtime = await run("Ich habe das Licht eingeschaltet.", tools=[LIGHT])
    session = await runtime.start_session()
    said = (await turn(runtime, session, "Mach das Licht an")).response.final_message
    assert said.startswith("Das habe ich nicht getan")


def test_what_may_have_happened_counts_as_done():
    progress = Progress()
    for outcome, acted in (("denied", False), ("failed", False), ("unknown", True)):
        progress.actions.append(Action("c", "x", {}, outcome))
        assert progress.has_acted is acted
