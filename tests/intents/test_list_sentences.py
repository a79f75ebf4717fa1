"""To-do lists: adding, ticking off, taking off, and asking."""

import json

import pytest

from sash.intents.shopping import answer_list_sentence, report_items
from sash.intents.situation import PlannedCall
from sash.ports.intents import LocalCallResult
from tests.intents.everyday import Earlier, Talk, turn

LIST = "todo.shopping"
ON_IT = "On the shopping list: milk, bread and coffee."


async def plan(talk: Talk, text: str) -> list[tuple[str, str]]:
    reply = await answer_list_sentence(talk.situate(text))
    assert reply is not None, text
    assert all(call.arguments["entity_ids"] == [LIST] for call in reply.calls)
    return [
        (call.arguments["service"].partition(".")[2], call.arguments["data"]["item"]) for call in reply.calls
    ]


async def say(talk: Talk, text: str) -> str | None:
    reply = await answer_list_sentence(talk.situate(text))
    return reply.text if reply else None


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("add butter to the shopping list", [("add_item", "butter")]),
        ("put oat milk, eggs and flour on the list please", [("add_item", "oat milk"), ("add_item", "eggs"), ("add_item", "flour")]),
        ("could you add eggs to the list?", [("add_item", "eggs")]),
        ("can you put two litres of cream on the shopping list", [("add_item", "two litres of cream")]),
        ("we need toilet paper", [("add_item", "toilet paper")]),
        ("we're out of coffee filters", [("add_item", "coffee filters")]),
        ("don't forget to buy batteries", [("add_item", "batteries")]),
        ("tick off the milk on the shopping list", [("update_item", "Milk")]),
        ("mark coffee as done", [("update_item", "Coffee")]),
        ("i bought the bread take it off the list", [("update_item", "Bread")]),
        ("take the bread and the coffee off the list", [("remove_item", "Bread"), ("remove_item", "Coffee")]),
        ("remove everything from the list", [("remove_item", "Milk"), ("remove_item", "Bread"), ("remove_item", "Coffee")]),
    ],
)  # fmt: skip
async def test_each_item_becomes_a_call(talk: Talk, text: str, calls: list[tuple[str, str]]) -> None:
    assert await plan(talk, text) == calls


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what's on the shopping list?", ON_IT),
        ("what do we need to buy?", ON_IT),
        ("read me the list", ON_IT),
        ("is milk on the list?", "Yes, the shopping list has milk."),
        ("do we need milk?", "Yes, the shopping list has milk."),
        ("is champagne on the list?", f"No, the shopping list does not have champagne. {ON_IT}"),
        ("take the champagne off the list", f"The shopping list does not have champagne. {ON_IT}"),
        ("add milk to the list", "The shopping list already has milk."),
        ("put tea on the packing list", "There is no list called packing here, only the shopping list."),
    ],
)
async def test_questions_and_refusals_say_what_is_on_the_list(talk: Talk, text: str, answer: str) -> None:
    assert await say(talk, text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "we need to talk",
        "we need more light",
        "put the kitchen light on",
        "put netflix on the tv",
        "what's on tv",
        "is there anything to do",
        "remind me to buy milk",
        "i got home",
        "set the fan to 60 percent",
    ],
)
async def test_sentences_about_other_things_are_left_alone(talk: Talk, text: str) -> None:
    assert await say(talk, text) is None


async def test_one_sentence_reports_all_its_calls(talk: Talk) -> None:
    def finish(call: PlannedCall) -> LocalCallResult:
        return LocalCallResult(call.tool, '{"entities": []}', json.dumps(call.arguments))

    planned = await answer_list_sentence(talk.situate("add eggs and flour to the list"))
    assert planned is not None
    results = [finish(call) for call in planned.calls]
    report = report_items(talk.situate("add eggs and flour to the list", results=results))
    assert report is not None
    assert report.text == "I added eggs and flour to the shopping list."
    failed = LocalCallResult("call_service", "not done: it failed", results[0].arguments)
    assert report_items(talk.situate("add eggs to the list", results=[failed])) is None


async def test_and_eggs_goes_on_with_the_last_sentence(talk: Talk) -> None:
    earlier = Earlier([turn("add butter to the shopping list")])
    reply = await answer_list_sentence(talk.situate("and eggs", earlier=earlier, focus_ids=(LIST,)))
    assert reply is not None
    assert [call.arguments["data"] for call in reply.calls] == [{"item": "eggs"}]
    assert await say(talk, "and eggs") is None
