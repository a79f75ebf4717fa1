"""Sentences about the home that need no model."""

import pytest

from sash.engine.runtime import Runtime
from sash.intents.grammar import Grammar
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel
from sash.values.sessions import Budgets
from tests.large_home import make_large_home
from tests.runtime.home_actions import FREE, actions
from tests.runtime.talk import WAIT_S, answer, said, turn


async def test_a_command_is_done_without_a_model(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "done", True)]
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "on"
    assert runtime.model.requests == []
    stored = await runtime.store.messages("local", session.id)
    assert all("local_intent" in m.message.tags for m in stored)
    assert [m.message.role for m in stored] == ["user", "assistant", "tool", "assistant"]
    assert (await runtime.statistics())["local_count"] == 1


@pytest.mark.parametrize(
    "question",
    [
        "is the kitchen ceiling on?",
        "Is the kitchen ceiling on",
        "are the lights in the kitchen on?",
        "which lights are on?",
        "is the front door locked?",
        "what is the kitchen temperature?",
        "why is the kitchen ceiling on?",
        "should I turn on the kitchen ceiling?",
        "did you turn on the kitchen ceiling?",
        "turn on the kitchen ceiling?",
    ],
)
async def test_a_question_never_switches_anything(live, question):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, question)
    assert result.status == "completed"
    assert runtime.house.calls == []
    assert result.response.actions == ()


async def test_a_question_is_answered_without_a_model(live):
    runtime = await live()
    session = await runtime.start_session()
    assert (await answer(runtime, session, "is the front door locked?")).startswith("Yes")
    assert runtime.model.requests == []


async def test_the_model_sees_what_was_understood_without_it(live):
    runtime = await live("As you said.")
    session = await runtime.start_session(policy=FREE)
    await turn(runtime, session, "turn on the kitchen ceiling")
    await turn(runtime, session, "tell me a story about lamps and ghosts")
    [request] = runtime.model.requests
    assert said(request)[0] == "turn on the kitchen ceiling"
    assert [m["role"] for m in request.messages if m["role"] != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


async def test_where_the_user_is_decides_which_lights_are_meant(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE, area="living_room")
    result = await turn(runtime, session, "turn on the lights")
    assert actions(result) == [("call_service", "done", True)]
    assert runtime.home.index.get_state("light.living_room") == "on"
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "off"


async def test_past_the_days_money_the_house_is_still_understood(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE, budgets=Budgets(max_cost_per_day_usd=0.0))
    result = await turn(runtime, session, "turn on the kitchen ceiling")
    assert actions(result) == [("call_service", "done", True)]


async def test_all_lights_of_a_large_house_are_turned_off_at_once():
    home = make_large_home(3000)
    async with Runtime(MemoryStore(), ScriptedModel("The model was asked."), home=home) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        session = await runtime.start_session(policy=FREE)
        result = await turn(runtime, session, "turn off all the lights")
        assert {(outcome, verified) for _, outcome, verified in actions(result)} == {("done", True)}
        assert result.response.stopped_by is None
        lights = [key for key in runtime.home.index.entities if key.startswith("light.")]
        assert {runtime.home.index.get_state(key) for key in lights} == {"off"}


async def test_a_command_is_interpreted_once_for_its_action_and_its_answer(live, monkeypatch):
    interpreted = []
    interpret = Grammar.interpret

    def count(self, text, *args, **options):
        interpreted.append(text)
        return interpret(self, text, *args, **options)

    monkeypatch.setattr(Grammar, "interpret", count)
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    for _ in range(2):  # Only the grammar of Home Assistant knows Swedish.
        await turn(runtime, session, "tänd Kitchen ceiling", language="sv")
    assert interpreted == ["tänd Kitchen ceiling"]
    await turn(runtime, session, "tänd belysningen", language="sv", area="living_room")
    await turn(runtime, session, "tänd belysningen", language="sv", area="kitchen")
    assert interpreted[1:] == ["tänd belysningen"] * 2
    assert runtime.home.index.get_state("light.kitchen_ceiling") == "on"
