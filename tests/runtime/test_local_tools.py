"""Tools that only intents call, and what intents know about the user."""

import asyncio

from sash.ports.intents import make_local_answer, make_local_call
from sash.testing import ScriptedModel, calling
from sash.values.continuations import TurnCaller
from tests.runtime.policies import OPEN
from tests.runtime.talk import WAIT_S, transcript, turn
from tests.tools import tool

ANNA = TurnCaller(user_id="anna", device_id="puck", certainty="signed_in")


class Sentences:
    """Answers "chime" with the result of the tool `chime`, and nothing else."""

    def __init__(self):
        self.heard = []

    async def understand(self, utterance):
        self.heard.append(utterance)
        if utterance.text != "chime" or "chime" not in utterance.tools:
            return None
        if not utterance.results:
            return make_local_call("chime")
        text = utterance.results[-1].parse_object().get("said")
        return make_local_answer(text) if text else None


def chime(made, **options):
    return tool("chime", lambda a, c: made.append(c.key) or {"said": "Ding."}, is_local=True, **options)


async def test_an_intent_calls_a_local_tool_and_no_model_is_asked(run):
    made, model = [], ScriptedModel("never asked")
    runtime = await run(model=model, tools=[chime(made)], more_intents=[Sentences()])
    result = await turn(runtime, await runtime.start_session(), "chime")
    assert (result.response.final_message, len(made), model.requests) == ("Ding.", 1, [])


async def test_a_model_does_not_see_a_local_tool_and_cannot_call_it(run):
    made, model = [], ScriptedModel(calling("chime", "c1"), "I cannot.")
    runtime = await run(
        model=model, tools=[chime(made), tool("lamp", lambda a, c: "on")], more_intents=[Sentences()]
    )
    session = await runtime.start_session()
    assert (await turn(runtime, session, "please chime")).response.final_message == "I cannot."
    named = [schema["function"]["name"] for schema in model.requests[0].tools]
    assert "chime" not in named and "lamp" in named
    [text] = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert text.startswith("there is no tool chime;") and "chime" not in text.partition(";")[2]
    assert made == []


async def test_a_local_action_alone_does_not_let_a_model_act(run):
    """So an answer of the model is not corrected: it cannot be the report of an action."""
    runtime = await run("I have turned on the light.", memory_tools=False, tools=[chime([], action=True)])
    result = await turn(runtime, await runtime.start_session(policy=OPEN), "turn on the light")
    assert result.response.final_message == "I have turned on the light."


async def test_a_local_call_under_way_at_a_crash_is_not_repeated(run, clock):
    started, hang, made = asyncio.Event(), asyncio.Event(), []

    async def act(arguments, context):
        made.append(context.key)
        started.set()
        await hang.wait()

    acting = tool("chime", act, is_local=True)
    first = await run(tools=[acting], more_intents=[Sentences()])
    session = await first.start_session()
    sent = await first.send_message(session.id, "chime")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(31)
    second = await run(
        "I do not know if it rang.", tools=[acting], more_intents=[Sentences()], store=first.store
    )
    await second.resume(sent.id)
    result = await second.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (result.response.final_message, len(made)) == ("I do not know if it rang.", 1)


async def test_more_intents_come_after_the_default_ones_and_know_the_caller(run):
    sentences = Sentences()
    runtime = await run(more_intents=[sentences])
    session = await runtime.start_session()
    remembered = await turn(runtime, session, "Remember that the cat sleeps in the garage.")
    assert remembered.response.final_message and sentences.heard == []
    sent = await runtime.send_message(session.id, "hello", caller=ANNA)
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert [(heard.text, heard.caller) for heard in sentences.heard] == [("hello", ANNA)]
