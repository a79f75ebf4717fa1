"""Everyday sentences beside a language model: what is certain costs nothing, and the model gets the rest."""

import pytest

from sash import Runtime
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import SessionPolicy
from tests.intents.speaker import WAIT_S, in_demo_house

MODEL = "The model answers."


@pytest.mark.parametrize(
    "sentence",
    [
        "turn on light.terrace",
        "any problems today?",
        "what time is it?",
        "diagnose the bedroom light",
        "is the terrace light on?",
    ],
)
async def test_a_certain_sentence_needs_no_model(sentence):
    async with in_demo_house(ScriptedModel(MODEL)) as speaker:
        assert await speaker.say(sentence) != MODEL
        assert speaker.runtime.model.requests == []


@pytest.mark.parametrize(
    "sentence",
    [
        "is the disco ball on?",
        "lock the back door",
        "tell me a joke",
        "how many legs has a spider?",
        "I think it is cosy here",
    ],
)
async def test_what_is_not_certain_is_left_to_the_model(sentence):
    async with in_demo_house(ScriptedModel(MODEL)) as speaker:
        assert await speaker.say(sentence) == MODEL
        assert speaker.actions == ()


async def test_the_model_explains_an_undo_that_failed():
    async with in_demo_house(ScriptedModel(MODEL)) as speaker:
        await speaker.say("turn on light.terrace")
        speaker.home.set_state("light.terrace", "off")
        assert await speaker.say("undo that") == MODEL
        (request,) = speaker.runtime.model.requests
        assert "has changed since" in request.messages[-1]["content"]


async def test_the_model_explains_an_action_that_is_not_allowed():
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("switch",))
    async with in_demo_house(ScriptedModel(MODEL), policy) as speaker:
        assert await speaker.say("turn on light.terrace") == MODEL
        assert speaker.state("light.terrace") == "off"


@pytest.mark.parametrize("sentence", ["hello", "what time is it?", "who are you?"])
async def test_without_a_home_a_model_answers_all_talk(sentence):
    async with Runtime(MemoryStore(), ScriptedModel(MODEL), clock=FakeClock()) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, sentence)
        result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
        assert result.response.final_message == MODEL
