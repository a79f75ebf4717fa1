"""Sentences without a model, with the grammar that Home Assistant itself requires. It may be older than ours."""

import pytest

from tests.intents.spoken_home import House
from tests.intents.test_home_sentences import COMMANDS, QUESTIONS

# Sentences that home-assistant-intents 2026.10.6 lacks. Inside Home Assistant, the model understands them.
NEWER = {"press the bell"}


@pytest.mark.parametrize("text", [text for text in COMMANDS if text not in NEWER])
async def test_a_command_is_understood(text: str) -> None:
    assert await House().calls(text) == COMMANDS[text]


@pytest.mark.parametrize("text", QUESTIONS)
async def test_a_question_is_answered(text: str) -> None:
    assert await House().says(text) == QUESTIONS[text]


@pytest.mark.parametrize("text", sorted(NEWER))
async def test_a_sentence_of_a_newer_grammar_is_for_the_model(text: str) -> None:
    """If this fails, Home Assistant has the newer grammar: remove the sentence from the list."""
    assert await House().calls(text) is None
