"""Questions about the past are answered from the records of the demo house."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from sash.intents.past import answer_about_past
from sash.intents.situation import Reply
from tests.intents.everyday import Earlier, Talk, explanation, open_talk

READERS = frozenset({"get_history", "get_logbook", "diagnose_entity"})


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    talk = await open_talk()
    yield talk
    await talk.live.close()


async def ask(
    talk: Talk, text: str, *, tools: frozenset[str] = READERS, earlier: Earlier | None = None
) -> Reply | None:
    situation = talk.situate(text, earlier=earlier)
    situation = replace(situation, utterance=replace(situation.utterance, tools=tools))
    (clause,) = situation.reader.read_clauses(situation.sentence)
    return await answer_about_past(situation, clause)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was the garage door last opened?", "The garage door was last opened today at 8:04."),
        ("was the tv on yesterday evening?", "Yes, from 19:13 until 22:23."),
        ("how long was the TV on yesterday", "The living room TV was on for 3 hours and 10 minutes yesterday."),
        ("how often was the front door opened today?", "3 times today: at 7:31, 8:19 and 12:14."),
        ("how many times did the front door open yesterday", "6 times yesterday, last at 17:32."),
        ("has anybody opened the front door since noon?", "Yes, at 12:14."),
        ("was the front door opened after one o'clock?", "No, not since 13:00."),
        ("was the kitchen light on at 7 this morning", "Yes."),
        ("was the kitchen light on at 9 this morning", "No, the kitchen ceiling light was off."),
        ("was the front door locked last night", "Yes, all the time."),
        ("was anyone home yesterday at 3 pm", "No, Anna was away."),
        ("how long has Anna been home?", "Anna has been home for 20 hours and 43 minutes, since yesterday at 17:17."),
        ("when did the tv go off last night?", "The living room TV was turned off yesterday at 22:23."),
        ("when was the front door first opened today", "The front door was opened today at 7:31."),
    ],
)  # fmt: skip
async def test_a_state_of_the_past_is_read_from_the_history(talk: Talk, question: str, answer: str) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("how much electricity have we used today?", "4.9 kilowatt-hours so far today."),
        ("what was our power consumption yesterday?", "10.3 kilowatt-hours yesterday."),
        ("how much power did we use yesterday evening", "4.8 kilowatt-hours yesterday evening."),
        ("how much electricity did the coffee machine use today", "There is no meter for the coffee machine, only for the whole house."),
        ("how cold did it get last night?", "The outdoor temperature fell to 4.7 degrees last night, at 2:30."),
        ("what's the highest outdoor temperature today?", "The outdoor temperature rose to 14.4 degrees today, at 14:00."),
        ("what was the temperature outside at 3 am", "The outdoor temperature was 4.7 degrees today at 3:00."),
        ("what was the average temperature in the bedroom yesterday", "The bedroom temperature was 18.9 degrees on average yesterday."),
        ("how warm did the living room get yesterday", "The living room temperature rose to 22.2 degrees yesterday, at 15:20."),
    ],
)  # fmt: skip
async def test_numbers_of_the_past_are_those_of_the_time_that_was_asked_for(
    talk: Talk, question: str, answer: str
) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("who turned on the hallway light last night?", "The automation “Hallway night light” did that today at 2:18."),
        ("who opened the garage this morning?", "It happened today at 8:04, but nothing records who or what did it."),
        ("why did the floor lamp come on yesterday evening?", "The automation “Evening lights” did that yesterday at 17:57."),
        ("why is the mirror light on?", "The mirror light is off."),
        ("why is the leak sensor not working?", "The battery of the bathroom leak sensor is empty. Replace it."),
        ("why does the bedroom light keep flickering", "The bedroom ceiling light flickers when the mains voltage dips. Have an electrician check the circuit."),
    ],
)  # fmt: skip
async def test_a_cause_is_named_if_it_is_recorded(talk: Talk, question: str, answer: str) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was the garage door opened in december?", "There are no records of that time. They only begin on 10 January."),
        ("how much electricity did we use last year?", "There are no records of that time. They only begin on 10 January."),
        ("when will anna be home tomorrow?", "I do not know what will happen. I only know what is recorded."),
        ("what was playing last night", "That is not recorded."),
    ],
)  # fmt: skip
async def test_what_is_not_recorded_gets_an_honest_no(talk: Talk, question: str, answer: str) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    "question",
    [
        "is the tv on",
        "how much power are we using",
        "how warm is it in the bedroom",
        "why did you do that?",
        "what did you do with the kitchen light today",
    ],
)
async def test_questions_about_the_present_or_about_sash_are_left_to_others(
    talk: Talk, question: str
) -> None:
    assert await ask(talk, question) is None


async def test_what_the_user_asked_for_is_the_cause_of_a_change(talk: Talk) -> None:
    talk.home.set_state("light.kitchen_ceiling", "on")
    earlier = Earlier(explanations={"light.kitchen_ceiling": explanation()})
    for question in ("who turned on the kitchen light?", "why is the kitchen light on?"):
        reply = await ask(talk, question, earlier=earlier)
        assert reply is not None
        assert reply.text == "You asked me to, today at 14:00: “turn on the kitchen light”."


async def test_the_history_is_not_read_without_its_tool(talk: Talk) -> None:
    assert await ask(talk, "was the tv on yesterday evening?", tools=frozenset()) is None
    assert await ask(talk, "what happened last night?", tools=frozenset({"get_history"})) is None


async def test_what_happened_is_told_for_the_time_that_was_asked_for(talk: Talk) -> None:
    reply = await ask(talk, "what happened in the garage today")
    assert reply is not None
    assert reply.text == "Today: the garage door was opened at 8:04."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("was the tv on last night", "Yes, from 19:13 until 22:23."),
        ("was the tv on at 8 last night", "Yes."),
        ("was the tv on in the night", "Yes, until 22:23."),
        ("until when was the tv on last night", "Until yesterday at 22:23."),
        ("was the front door opened between 8 and 9", "Yes, at 8:19."),
        ("was the front door open between ten to eight and half past eight", "Yes, at 8:19."),
        ("how often was the front door opened from noon to 1", "Once between 12:00 and 13:00, at 12:14."),
        ("how much power did we use between 6 and 8 last night", "2.6 kilowatt-hours between yesterday at 18:00 and 20:00."),
        ("was the front door opened after nine", "Yes, at 12:14."),
        ("did the front door open in the last 5 minutes", "No, not in the last 5 minutes."),
    ],
)  # fmt: skip
async def test_a_time_begins_and_ends_as_a_person_means_it(talk: Talk, question: str, answer: str) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


async def test_a_sensor_that_was_unavailable_has_noticed_nothing(talk: Talk) -> None:
    reply = await ask(talk, "did anyone go through the hallway last night")
    assert reply is not None
    assert reply.text == "Yes, 9 times, last at 2:18."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was the alarm turned off", "The house alarm was last disarmed today at 6:09."),
        ("when did the alarm go off", "Not in the recorded time. The records begin on 10 January."),
        ("how many times did someone come in today", "The front door was opened 3 times, last at 12:14."),
        ("did anyone come through the front door today", "Yes, at 7:31, 8:19 and 12:14."),
        ("did anyone enter the bedroom today", "I cannot tell: there is no motion sensor in the bedroom."),
        ("how long has nobody been in the living room", "Living room occupancy has been clear for 6 hours, since today at 7:59."),
        ("how long has nobody been home", "No, Anna is home."),
        ("was nobody in the living room this morning", "No. Living room occupancy noticed something today at 6:52."),
        ("what did the robot do yesterday", "Robby was cleaning from 10:20 until 11:14."),
        ("where was anna yesterday", "Anna was home until 8:04, away from 8:04 until 17:17 and home from 17:17 on."),
    ],
)  # fmt: skip
async def test_what_is_asked_for_is_what_answers_it(talk: Talk, question: str, answer: str) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("was it colder last night than the night before", "Yes: 7.9 degrees last night, 8 degrees the night before."),
        ("did we use less power today than yesterday", "Just as much: 4.9 kilowatt-hours today, 4.9 kilowatt-hours yesterday by this time."),
        ("did we use more power yesterday than today", "Just as much: 4.9 kilowatt-hours yesterday by this time, 4.9 kilowatt-hours today."),
        ("did we use more energy this week than last week", "56.4 kilowatt-hours this week. There is no complete record of last week by this time."),
        ("how much did the electricity cost yesterday", "I do not know the price. 10.3 kilowatt-hours yesterday."),
    ],
)  # fmt: skip
async def test_a_comparison_is_one_of_times_of_the_same_length(
    talk: Talk, question: str, answer: str
) -> None:
    reply = await ask(talk, question)
    assert reply is not None
    assert reply.text == answer


async def test_two_places_are_no_two_times(talk: Talk) -> None:
    reply = await ask(talk, "was the bedroom warmer than the living room yesterday")
    assert reply is not None
    assert "today" not in reply.text
