"""The offline model: it understands no sentences, and says so; it explains tools that did nothing."""

import json
import socket

import pytest

from sash import Runtime
from sash.models.offline import OfflineModel
from sash.models.offline.phrases import PHRASES
from sash.ports.intents import NOT_UNDERSTOOD
from sash.ports.model import ModelRequest, collect
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.sessions import WindowLimits

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
CALL_SERVICE = {"type": "function", "function": {"name": "call_service"}}


async def answer(*messages, tools=(), is_spoken=False):
    model = OfflineModel(is_spoken=is_spoken)
    return (await collect(model.stream(ModelRequest(list(messages), list(tools))), lambda text: None)).content


def asked(content="turn on the disco"):
    return {"role": "user", "content": content}


def result(content, name="call_service"):
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "tool", "name": name, "content": text, "tool_call_id": "1"}


def spoken_in(language):
    return {"role": "system", "content": f"The user who speaks now:\nlanguage: {language}"}


@pytest.mark.parametrize("language", PHRASES)
async def test_it_says_in_the_language_of_the_user_that_it_understood_nothing(language):
    said = await answer(spoken_in(language), asked())
    assert said == f"{PHRASES[language].not_understood} {PHRASES[language].hint}"
    assert "model" not in said and "Sprachmodell" not in said


async def test_another_language_is_answered_in_english():
    assert (await answer(spoken_in("fi"), asked())).startswith("I did not understand that.")


async def test_its_examples_fit_a_home_only_if_there_is_one():
    assert "lights" in await answer(asked(), tools=[CALL_SERVICE])
    assert "lights" not in await answer(asked())


async def test_a_spoken_answer_is_one_short_sentence():
    assert await answer(spoken_in("nl"), asked(), is_spoken=True) == "Dat heb ik niet begrepen."


async def test_it_looks_at_no_images():
    said = await answer(asked([{"type": "text", "text": "What is this?"}, IMAGE]))
    assert said == "I cannot look at images or listen to recordings."


@pytest.mark.parametrize(
    ("content", "language", "said"),
    [
        ("not done: the user said no", "en", "OK, I will not do that."),
        ("not done: the user said no", "de", "Gut, ich mache es nicht."),
        (
            "not done: I am not allowed to use lock.unlock. Add it to `allowlisted_services`",
            "en",
            "I am not allowed to do that. You can allow it in my settings.",
        ),
        ("not done: lock.unlock is on the denylist", "en", "I did not do that."),
        ("failed: light.kitchen did not answer (http://10.0.0.2)", "en", "I tried, but it did not work."),
        ("failed: timeout", "es", "Lo he intentado, pero no ha funcionado."),
        ({"dry_run": True, "would": {"service": "light.turn_on"}}, "en", "trial run"),
        ({"verified": True, "entities": []}, "en", "Done."),
        ({"verified": None, "entities": []}, "en", "Done. I cannot see the effect myself."),
        ({"verified": False, "entities": []}, "en", "I tried, but I do not see the effect yet."),
        ({"verified": False, "entities": []}, "it", "Ho provato, ma non vedo ancora l'effetto."),
    ],
)
async def test_a_tool_that_did_nothing_is_explained_without_internal_words(content, language, said):
    answered = await answer(spoken_in(language), asked(), result(content))
    assert said in answered
    assert not any(word in answered for word in ("`", "_", "http", "light.", "lock."))


async def test_a_result_that_is_no_action_is_not_claimed_as_one():
    understood_nothing = result(NOT_UNDERSTOOD, "local_engine")
    read_something = result({"entities": [{"entity_id": "light.kitchen"}]}, "get_states")
    for message in (understood_nothing, read_something, result("odd"), result([1, 2]), result({})):
        said = await answer(asked(), message)
        assert said.startswith(("I did not understand that.", "Done. I cannot see")), message
    assert (await answer(asked(), understood_nothing)).startswith("I did not understand that.")


async def test_results_of_earlier_turns_do_not_count():
    earlier = [asked("turn on the light"), result({"verified": True, "entities": []})]
    assert (await answer(*earlier, asked("blorfl"))).startswith("I did not understand that.")


async def test_answers_are_the_same_each_time_and_need_no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert await answer(asked()) == await answer(asked())


@pytest.fixture
async def talk():
    """Say sentences in a session without a home, and return the last answer."""
    async with Runtime(MemoryStore(), clock=FakeClock()) as runtime:

        async def talk(*messages, window=None, **options):
            session = await runtime.start_session(window=window)
            for message in messages:
                sent = await runtime.send_message(session.id, message, **options)
                result = await runtime.await_continuation(sent.id, timeout_s=10)
                assert result.status == "completed", result.continuation.error
            talk.result = result
            return result.response.final_message

        yield talk


async def test_a_turn_that_nothing_understood_costs_nothing(talk):
    assert (await talk("Write me a poem about autumn")).startswith("I did not understand that.")
    stats = talk.result.continuation.stats
    assert (stats.cost_usd, stats.unpriced_calls) == (0, 0)


async def test_talk_needs_no_home(talk):
    assert (await talk("hello")).startswith("Hello!")
    assert await talk("What time is it?") == "It is 0:00."
    assert "home" not in await talk("what can you do?")
    assert "home" not in await talk("who are you?")
    assert (await talk("turn on the light")).startswith("I did not understand that.")


@pytest.mark.parametrize(
    ("told", "question", "said"),
    [
        ("remember that the bins go out on Monday", "When do the bins go out?", "bins go out on Monday"),
        ("remember that I like tea", "What do you know about me?", "you like tea"),
        ("remember that my favourite colour is blue", "What is my favourite colour?", "blue"),
        (
            "The boiler leaks at the valve",
            "What did I say about the boiler?",
            "The boiler leaks at the valve",
        ),
        ("My dog is called Rex.", "What is my dog called?", "Rex"),
        ("Guten Tag", "Was habe ich zuerst gesagt?", "Guten Tag"),
    ],
)
async def test_notes_and_earlier_sentences_are_found_without_a_home(talk, told, question, said):
    chatter = [f"this is talk number {n}" for n in range(6)]
    for window, between in ((None, ()), (WindowLimits(max_turns=3), chatter)):
        assert said in await talk(told, *between, question, window=window)


async def test_what_was_never_said_is_not_found(talk):
    said = await talk("hello", "What did I say about dragons?")
    assert said == "You have said nothing like that in this conversation."
