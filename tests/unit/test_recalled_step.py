"""The JSON form of the step that says what was recalled, and why."""

from datetime import UTC, datetime

import pytest

from sash.values.citations import TurnCitation
from sash.values.step_codec import decode_body, encode_body
from sash.values.steps import Recalled

CITED = TurnCitation(datetime(2026, 1, 1, tzinfo=UTC), "Our boiler is loud", "id")


@pytest.mark.parametrize(
    "step",
    [
        Recalled(("boiler",), ("id",), "user: …", (CITED,), (1.0,), "words", ("boiler",)),
        Recalled(("heater",), ("id",), "user: …", (CITED,), (1.0,), "meaning"),
        Recalled((), ("id",), "user: …", (CITED,), (1.0,), "time"),
    ],
    ids=lambda step: step.reason,
)
def test_the_reason_and_the_found_words_are_stored(step):
    stored = encode_body(step)
    assert stored["reason"] == step.reason
    assert stored.get("found_words", []) == list(step.found_words)
    assert decode_body("retrieval", stored) == step


def test_a_journal_of_an_earlier_version_has_a_likely_reason():
    old = {"query": ["boiler"], "message_ids": ["id"], "text": "user: …"}
    assert decode_body("retrieval", old) == Recalled(("boiler",), ("id",), "user: …", reason="words")
    assert decode_body("retrieval", old | {"query": []}) == Recalled((), ("id",), "user: …", reason="time")
