"""A correction after an approval question that was dropped: "close the blind" - "Shall I …?" - "no, the bedroom one"."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.intents.earlier_topics import MAX_TOPIC_AGE
from sash.intents.everyday_intents import EverydayIntents
from sash.ports.intents import NoDialogue, Utterance
from sash.testing import FakeClock
from sash.values.continuations import Continuation, TurnCaller
from tests.intents.everyday import NOW, TOOLS, Talk, turn

ANNA, BEN = TurnCaller("anna", device_id="kitchen"), TurnCaller("ben", device_id="kitchen")


class Cancelled(NoDialogue):
    """A conversation whose newest turn was cancelled."""

    def __init__(self, continuation: Continuation) -> None:
        self._continuation = continuation

    async def list_cancelled(self, limit: int) -> list[Continuation]:
        return [self._continuation]


@pytest.mark.parametrize(
    ("age", "caller", "is_meant"),
    [
        (timedelta(seconds=10), ANNA, True),
        (MAX_TOPIC_AGE + timedelta(seconds=1), ANNA, False),
        (timedelta(seconds=10), BEN, False),
    ],
)
async def test_a_correction_means_a_recent_command_of_the_same_person(
    talk: Talk, age: timedelta, caller: TurnCaller, is_meant: bool
) -> None:
    asked = turn("close the living room blind", at=NOW - age)
    dropped = replace(asked, request=replace(asked.request, caller=ANNA), status="cancelled", response=None)
    intents = EverydayIntents(talk.live, None, clock=FakeClock(NOW))
    text = "no, the bedroom one"
    utterance = Utterance(text, talk.session, TOOLS, (), caller=caller, dialogue=Cancelled(dropped))
    answer = await intents.understand(utterance)
    assert bool(answer and answer.tool_calls) is is_meant
