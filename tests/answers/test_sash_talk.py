"""The talk with Sash measures its turns, and can be made to forget what was said before."""

from dataclasses import replace

import pytest

from sash.ports.intents import make_local_answer
from sash.testing import FakeClock
from tests.answers.sash_talk import SashTalk, TalkRuntime, TurnTimes, WithoutFollowUps
from tests.answers.table import read_cases


class CountingIntents:
    """Intents that answer with the number of earlier turns that they see, and of those with a topic."""

    async def understand(self, utterance):
        turns = await utterance.dialogue.list_recent(9)
        topics = [turn.response.topic for turn in turns if turn.response.topic]
        answer = make_local_answer(f"{len(turns)} {len(topics)} {len(await utterance.dialogue.list_facts())}")
        return replace(answer, topic={"light": "on"})


@pytest.fixture
async def make_talk():
    runtimes = []

    async def make(intents):
        runtime = TalkRuntime(TurnTimes(), clock=FakeClock(), intents=[intents])
        await runtime.open()
        runtimes.append(runtime)
        return SashTalk(runtime, read_cases()[0]), runtime.times

    yield make
    for runtime in runtimes:
        await runtime.close()


@pytest.mark.parametrize(
    ("wrap", "seen"), [(lambda it: it, ["0 0 0", "1 1 0"]), (WithoutFollowUps, ["0 0 0", "1 0 0"])]
)
async def test_only_without_follow_ups_the_topics_of_earlier_sentences_are_forgotten(make_talk, wrap, seen):
    talk, _ = await make_talk(wrap(CountingIntents()))
    assert [await talk.say("one"), await talk.say("two")] == seen


async def test_the_default_intents_are_wrapped_and_timed():
    wrapped = []

    def wrap(intents):
        wrapped.append(intents)
        return intents

    async with TalkRuntime(TurnTimes(), wrap, clock=FakeClock()) as runtime:
        talk = SashTalk(runtime, read_cases()[0])
        await talk.say("remember that the cat is called Minka")
        await talk.end()
        times = runtime.times
    assert wrapped
    [turn_ms], [understanding_ms] = times.turns_ms, times.understanding_ms
    assert 0 < understanding_ms < turn_ms
