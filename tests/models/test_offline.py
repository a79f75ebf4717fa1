"""The offline model with a few fake tools."""

import socket
from datetime import UTC
from time import perf_counter

import pytest

from sash import Runtime
from sash.models.offline import OfflineModel
from sash.models.offline.phrases import ENGLISH
from sash.ports.model import ModelRequest, collect
from sash.ports.tools import ToolSpec
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.sessions import WindowLimits

HOUSE = {
    "light.kitchen": {
        "entity_id": "light.kitchen",
        "name": "Kitchen light",
        "area": "Kitchen",
        "state": "on",
    },
    "sensor.attic": {"entity_id": "sensor.attic", "name": "Attic sensor", "state": "unavailable"},
}


def tool(name, answer):
    async def invoke(arguments, context):
        return answer(arguments)

    return ToolSpec(name, name, {"type": "object"}, invoke, safety="idempotent")


def search(arguments):
    words = arguments["query"].lower()
    return {"entities": [e for e in HOUSE.values() if e["name"].split()[0].lower() in words]}


def search_names(arguments):
    return {"entities": [{"entity_id": e["entity_id"]} for e in search(arguments)["entities"]]}


def states(arguments):
    return {"entities": [HOUSE[key] | {"state": "read"} for key in arguments["entity_ids"]]}


def diagnose(arguments):
    return {
        "entity_id": arguments["entity_id"],
        "status": "unavailable",
        "current_state": "unavailable",
        "root_causes": ["the battery is empty"],
        "recommendations": [{"description": "change the battery"}],
    }


def errors(arguments):
    return {"total_incidents": 1, "incidents": [{"message": f"timeout ({arguments['timeframe']})"}]}


TOOLS = [
    tool("search_index", search),
    tool("diagnose_entity", diagnose),
    tool("analyze_errors", errors),
]


@pytest.fixture
async def talk():
    opened = []

    async def talk(*messages, tools=TOOLS, window=None, **options):
        runtime = Runtime(MemoryStore(), tools=tools, clock=FakeClock(), time_zone=UTC)
        await runtime.open()
        opened.append(runtime)
        session = await runtime.start_session(window=window)
        for message in messages:
            sent = await runtime.send_message(session.id, message, **options)
            result = await runtime.await_continuation(sent.id, timeout_s=10)
            assert result.status == "completed", result.continuation.error
        return result

    yield talk
    for runtime in opened:
        await runtime.close()


async def test_questions_about_the_house_are_answered_from_the_tools(talk):
    result = await talk("Is the kitchen light on?")
    assert result.response.final_message == "Kitchen light (Kitchen): on"
    assert [s.type for s in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    assert result.continuation.stats.cost_usd == 0
    assert result.continuation.stats.unpriced_calls == 0


async def test_states_are_read_if_the_search_returns_none(talk):
    tools = [tool("search_index", search_names), tool("get_states", states)]
    assert (await talk("Is the kitchen light on?", tools=tools)).response.final_message == (
        "Kitchen light (Kitchen): read"
    )


async def test_an_unknown_entity_is_reported_as_not_found(talk):
    assert "nothing by that name" in (await talk("Is the pool heated?")).response.final_message


async def test_faults_are_diagnosed(talk):
    said = (await talk("Why is the attic sensor unavailable?")).response.final_message
    assert "the battery is empty" in said
    assert "change the battery" in said


@pytest.mark.parametrize(
    ("question", "timeframe"),
    [
        ("Were there any errors today?", "24h"),
        ("errors in the last week", "7d"),
        ("Any problems in the last hour?", "1h"),
    ],
)
async def test_errors_are_looked_up(talk, question, timeframe):
    assert f"timeout ({timeframe})" in (await talk(question)).response.final_message


async def test_earlier_statements_are_found_in_the_window_and_after_eviction(talk):
    small = [f"this is talk number {n}" for n in range(8)]
    asked = "What did I say about the boiler?"
    for window, chatter in ((None, ()), (WindowLimits(max_turns=3), small)):
        said = (
            await talk("The boiler leaks at the valve", *chatter, asked, window=window)
        ).response.final_message
        assert "you: The boiler leaks at the valve" in said
    assert "2026-01-01 00:00, you" in said
    assert (
        "nothing about that" in (await talk("hello", "What did I say about dragons?")).response.final_message
    )


async def test_noted_facts_are_quoted(talk):
    said = await talk("remember that the bins go out on Monday", "What do you remember about the bins?")
    assert "the bins go out on Monday" in said.response.final_message
    everything = await talk("remember that I like tea", "What do you know about me?")
    assert "I like tea" in everything.response.final_message


async def test_it_knows_the_time(talk):
    assert (await talk("What time is it?")).response.final_message == "It is Thursday, 2026-01-01 00:00."


async def test_other_requests_are_refused(talk):
    assert (await talk("Write me a poem about autumn")).response.final_message == ENGLISH.cannot_answer
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert (
        await talk("Look at this", attachments=[image])
    ).response.final_message == ENGLISH.cannot_see_media
    assert (
        await talk("Is the kitchen light on?", allow_tools=False)
    ).response.final_message == ENGLISH.cannot_answer


async def test_answers_are_deterministic_and_need_no_network(talk, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    request = ModelRequest([{"role": "user", "content": "Is it warm?"}])
    first, second = [await collect(OfflineModel().stream(request), lambda text: None) for _ in range(2)]
    assert first == second


@pytest.mark.parametrize(
    "result", ["failed: the house is away", 5, [1, 2], {"odd": 1}, {"entities": "x"}, {}]
)
async def test_odd_tool_results_cause_no_error(talk, result):
    said = (await talk("Is the kitchen light on?", tools=[tool("search_index", lambda a: result)])).response
    assert said.final_message


async def test_questions_about_the_speaker_use_recall(talk):
    told = "remember that my favourite colour is blue"
    assert "blue" in (await talk(told, "What is my favourite colour?")).response.final_message
    assert (
        "Rex" in (await talk("My dog is called Rex.", "What did I say about the dog?")).response.final_message
    )
    assert "blue" in (await talk(told, "What do you remember?")).response.final_message


@pytest.mark.parametrize("question", ["What is 2+2?", "Who are you?", "Remind me to take out the trash"])
async def test_questions_about_other_topics_are_refused(talk, question):
    assert ENGLISH.cannot_answer in (await talk(question)).response.final_message


@pytest.mark.parametrize("question", ["What is my favourite colour?", "What do you remember about colours?"])
async def test_tool_results_are_never_quoted_as_statements(talk, question):
    """A window of a few turns has lost the looking up, which is about the same words."""

    def find(arguments):
        return {"entities": [HOUSE["light.kitchen"] | {"name": f"colour lamp {n}"} for n in range(40)]}

    asked = ["Is the favourite colour lamp on?", *(f"this is talk number {n}" for n in range(8))]
    told = "remember that my favourite colour is blue"
    said = await talk(
        *asked, told, question, tools=[tool("search_index", find)], window=WindowLimits(max_turns=3)
    )
    assert "I was asked to remember: my favourite colour is blue" in said.response.final_message
    assert '"entities"' not in said.response.final_message
    assert "{" not in said.response.final_message


async def test_a_statement_is_quoted_once_and_shortened(talk):
    long = [f"The boiler {n} leaks " + "very " * 200 for n in range(20)]
    said = await talk("The boiler leaks", "The boiler leaks", *long, "What did I say about the boiler?")
    lines = said.response.final_message.splitlines()
    assert len(lines) <= 11
    assert max(map(len, lines)) < 320
    assert lines[-1].endswith("more")
    assert sum(line.endswith("you: The boiler leaks") for line in lines) == 1


async def test_statements_of_the_user_in_the_window_are_quoted(talk):
    said = await talk("My dog is called Rex.", "What is my dog called?", tools=[])
    assert said.response.final_message.endswith("you: My dog is called Rex.")
    assert (
        await talk("My dog is called Rex.", "What is my cat called?", tools=[])
    ).response.final_message == ENGLISH.cannot_answer


async def test_a_state_comes_from_the_home_and_not_from_the_conversation(talk):
    said = await talk("remember that my kitchen is blue", "Is my kitchen light on?")
    assert said.response.final_message == "Kitchen light (Kitchen): on"


@pytest.mark.parametrize("text", ["was ist ", "what did I say ", "why is the light ", "? ", "a-", "'s"])
async def test_a_long_text_is_read_quickly(talk, text):
    started = perf_counter()
    assert (await talk(text * 10_000)).response.final_message
    assert perf_counter() - started < 5
