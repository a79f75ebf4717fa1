"""Sentences that nobody says in earnest are answered at once, and raise no error."""

import pytest

from sash.intents.sentence.reader import SentenceReader
from tests.intents.speaker import in_demo_house


@pytest.mark.parametrize(
    "sentence",
    [
        "set the heating to ²",
        "set volume to ①",
        "turn on the kitchen light in 99999999999999 minutes",
        "set a timer for 99999999999999999 seconds",
        "what was the temperature 9999999 days ago?",
        "what happened in the last 9999999999 days?",
        "remind me to eat on 99.99.9999",
    ],
)
async def test_impossible_numbers_get_an_answer(sentence, caplog):
    async with in_demo_house() as speaker:
        assert await speaker.say(sentence)
    assert "failed" not in caplog.text


@pytest.mark.parametrize("sentence", ["a," * 149 + "a", "a," * 40 + "a"])
async def test_a_list_of_nothing_is_read_a_few_times_only(sentence, monkeypatch):
    """The work for a sentence grows with the square of its parts, so words and parts are limited."""
    read, calls = SentenceReader.read_clauses, []
    monkeypatch.setattr(SentenceReader, "read_clauses", lambda *args: calls.append(args) or read(*args))
    async with in_demo_house() as speaker:
        assert (await speaker.say(sentence)).startswith("I did not understand that")
    assert len(calls) < 40
