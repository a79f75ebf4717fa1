"""Facts that a model finds in messages, outside of any turn, if the operator wants that."""

import gc
import warnings

import pytest

from sash.engine.fact_extraction import MAX_FACTS_PER_TURN, choose_facts
from sash.engine.notes import MAX_NOTES
from sash.errors import ModelUnreachable
from sash.models.offline import OfflineModel
from sash.ports.model import Usage
from sash.testing import ScriptedModel
from sash.values.sessions import Budgets
from tests.home.small_home import house
from tests.runtime.priced_model import DEAR, DEAR_MODEL, saying
from tests.runtime.talk import WAIT_S, answer, system_texts, turn
from tests.runtime.waiting_model import WaitingModel


def is_extraction(request):
    return "lasting facts" in request.messages[0]["content"]


def extracting(facts):
    return ScriptedModel(lambda request: facts if is_extraction(request) else "ok")


async def test_facts_are_found_off_the_turn_s_path_and_paid_by_the_session(run):
    model = extracting("- The user's name is Anna.\n- Anna has a dog called Rex.")
    runtime = await run(model=model, fact_extraction=True)
    session = await runtime.start_session()
    await turn(runtime, session, "I am Anna, and my dog Rex is barking")
    await runtime.wait_for_background()
    facts = await runtime.list_facts()
    assert [(f.text, f.scope) for f in facts] == [
        ("The user's name is Anna.", "owner"),
        ("Anna has a dog called Rex.", "owner"),
    ]
    assert "barking" in model.requests[-1].messages[1]["content"]
    assert (await runtime.get_session(session.id)).stats.model_calls == 2
    await turn(runtime, await runtime.start_session(), "hi")
    assert "a dog called Rex" in "\n".join(system_texts(model.requests[2]))
    await runtime.wait_for_background()
    assert await runtime.list_facts() == facts, "known facts are not added twice"


async def test_extraction_leaves_the_cached_prompt_alone(run, clock):
    model, home = extracting("The user's name is Anna."), house()
    runtime = await run(model=model, fact_extraction=True, home=home)
    await runtime.home_ready(timeout_s=WAIT_S)
    session = await runtime.start_session()
    for sentence, kettle in (("I am Anna", "off"), ("think about it", "on")):
        home.set_state("switch.kettle", kettle)  # A description of the house anew would tell this.
        clock.advance(60)
        await turn(runtime, session, sentence)
        await runtime.wait_for_background()
    before, after = (request.messages for request in model.requests if not is_extraction(request))
    assert after[: len(before)] == before
    assert "name is Anna" in str(after[len(before) :])


async def test_nothing_is_extracted_unless_the_operator_wants_it(run):
    for options in ({"model": extracting("A fact.")}, {"model": OfflineModel(), "fact_extraction": True}):
        runtime = await run(**options)
        session = await runtime.start_session()
        await turn(runtime, session, "Anna is the one who talks")
        await runtime.wait_for_background()
        assert await runtime.list_facts() == ()
        await runtime.close()


async def test_a_sentence_without_a_model_is_not_extracted(run):
    model = extracting("A fact.")
    runtime = await run(model=model, fact_extraction=True)
    await turn(runtime, await runtime.start_session(), "remember that tea is good")
    await runtime.wait_for_background()
    assert model.requests == []


@pytest.mark.parametrize("line", ["NONE", "none.", "", "   ", ModelUnreachable("not today")])
async def test_a_model_that_finds_nothing_adds_nothing(run, line):
    class Model(ScriptedModel):
        async def stream(self, request):
            async for delta in ScriptedModel(line if is_extraction(request) else "ok").stream(request):
                yield delta

    runtime = await run(model=Model("ok"), fact_extraction=True)
    assert await answer(runtime, await runtime.start_session(), "I am Anna") == "ok"
    await runtime.wait_for_background()
    assert await runtime.list_facts() == ()


async def test_extraction_is_paid_for_and_stops_at_the_day_s_limit(run):
    model = ScriptedModel(saying("ok", Usage(100, 10, model="dear")))
    runtime = await run(model=model, fact_extraction=True, catalog=DEAR)
    session = await runtime.start_session(budgets=Budgets(max_cost_per_day_usd=8.0), model=DEAR_MODEL)
    for _ in range(30):
        await turn(runtime, session, "I am Anna")
        await runtime.wait_for_background()
    told = await runtime.statistics()
    assert told["today"]["estimated_cost_usd"] <= 8.0
    assert told["today"]["estimated_cost_usd"] == pytest.approx(told["estimated_cost_usd"])
    assert 0 < sum(map(is_extraction, model.requests)) < 30


async def test_extraction_stops_at_the_maximum_of_facts(run):
    runtime = await run(model=extracting("Anna is a pilot.\nRex is a dog."), fact_extraction=True)
    for n in range(MAX_NOTES - 1):
        await runtime.remember(f"number {n}")
    await turn(runtime, await runtime.start_session(), "I am Anna")
    await runtime.wait_for_background()
    assert [f.text for f in await runtime.list_facts()][MAX_NOTES - 1 :] == ["Anna is a pilot."]


def test_an_answer_is_read_line_by_line():
    written = (
        "1. Anna likes tea.\n2) The alarm code is 4711.\n* Her key is sk-proj-abcdefghijklmnopqrstuvwxyz123456\n"
        "- Anna likes tea\n• Ben is allergic to nuts.\n- The password of the router is rosebud\n"
        + "x" * 500
        + "\nThe cat is called Mia.\nThe bins go out on Monday.\nThe car is red."
    )
    assert choose_facts(written, ["the cat is called Mia"]) == [
        "Anna likes tea.",
        "Ben is allergic to nuts.",
        "The bins go out on Monday.",
    ]
    assert MAX_FACTS_PER_TURN == 3


class SlowExtraction(WaitingModel):
    """Answers turns at once, and waits before it extracts facts."""

    def stream(self, request):
        return super().stream(request) if is_extraction(request) else ScriptedModel("ok").stream(request)


async def test_a_job_that_waits_for_another_one_ends_without_a_warning_when_sash_stops(run):
    model = SlowExtraction("A fact.")
    runtime = await run(model=model, fact_extraction=True)
    session = await runtime.start_session()
    for message in ("My name is Anna", "My dog is called Rex"):
        await turn(runtime, session, message)
        await model.asked.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await runtime.close()
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
