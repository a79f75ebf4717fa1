"""Sessions for programs (`is_task`): the model gets the instructions, the message and the turn's tools only."""

from sash.ports.intents import make_local_answer
from sash.testing import calling
from sash.values.requests import StartSession
from tests.runtime.talk import answer, said, system_texts
from tests.tools import tool

REQUEST = StartSession(instructions="Write captions.")


class Greeter:
    """Answers everything."""

    async def understand(self, utterance):
        return make_local_answer("Hello!")


async def find_measure(session, request):
    return [tool("measure", lambda a, c: "42 cm")]


def named(request):
    return [each["function"]["name"] for each in request.tools]


async def test_a_task_knows_only_its_instructions_and_its_message(live):
    runtime = await live("A red door.", tools=[tool("lamp", lambda a, c: "on")])
    await runtime.remember("The cat is called Minka.")
    await runtime.pin("Speak like a pirate.")
    await runtime.set_owner_preferences({"language": "de"})
    session = await runtime.start(REQUEST, is_one_question=True, is_task=True)
    assert await answer(runtime, session, "turn on the kitchen light") == "A red door."
    [request] = runtime.model.requests
    assert system_texts(request) == ["Write captions."]
    assert said(request) == ["turn on the kitchen light"]
    assert request.tools == []


async def test_no_intent_answers_a_task(run):
    runtime = await run("the model", intents=[Greeter()])
    task = await runtime.start(REQUEST, is_task=True)
    talk = await runtime.start(REQUEST)
    assert [await answer(runtime, each) for each in (task, talk)] == ["the model", "Hello!"]


async def test_a_task_has_the_tools_of_its_turn_and_none_of_the_runtime(run):
    runtime = await run(
        calling("measure", "1"),
        calling("lamp", "2"),
        "It is 42 cm wide.",
        "ok",
        tools=[tool("lamp", lambda a, c: "on")],
        turn_tools=find_measure,
    )
    task = await runtime.start(REQUEST, is_task=True)
    assert await answer(runtime, task) == "It is 42 cm wide."
    results = [m["content"] for m in runtime.model.requests[-1].messages if m["role"] == "tool"]
    assert results == ["42 cm", "there is no tool lamp; the tools are: measure"]
    await answer(runtime, await runtime.start(REQUEST))
    assert named(runtime.model.requests[0]) == ["measure"]
    assert {"lamp", "remember", "measure"} <= set(named(runtime.model.requests[-1]))


async def test_a_task_without_tools_gets_none(run):
    runtime = await run("ok", turn_tools=find_measure)
    task = await runtime.start(REQUEST, is_task=True)
    await answer(runtime, task, allow_tools=False)
    assert runtime.model.requests[0].tools == []


async def test_a_stored_task_stays_one(run):
    runtime = await run("ok")
    task = await runtime.start(REQUEST, is_task=True)
    assert (await runtime.get_session(task.id)).is_task
