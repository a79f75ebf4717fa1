"""The conversations of the benchmark of recall are whole, and recall reaches on them what the benchmark reports."""

import json
from datetime import UTC, datetime

import pytest

from benchmarks._locomo import read_locomo
from benchmarks._recall_contestants import make_full_text, make_sash
from benchmarks._recall_data import read_conversation, read_everyday
from benchmarks.recall import REPORTED, TUNED, lengthen, measure_automatic, measure_finding
from sash.stores.memory import MemoryStore

CONVERSATIONS = (TUNED, *REPORTED)


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("questions", ["plain", "riddles"])
def test_the_questions_belong_to_a_long_conversation(name, questions):
    conversation = read_conversation(name, questions)
    said = conversation.messages
    assert [message.id for message in said] == list(range(1, len(said) + 1))
    assert sum(message.speaker != "Sash" for message in said) >= 600
    assert (said[-1].at - said[0].at).days >= 120
    assert [message.at for message in said] == sorted(message.at for message in said)
    answered = [question for question in conversation.questions if question.evidence]
    assert len(answered) >= 110 < 120 <= len(conversation.questions)
    assert all(question.at > said[-1].at for question in conversation.questions)
    assert all(1 <= id <= len(said) for question in answered for id in question.evidence)
    assert {question.kind for question in conversation.questions} == {"one", "two", "date", "none"}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_questions_that_name_a_person_have_answers(name):
    conversation = read_conversation(name, "people")
    assert len(conversation.questions) == 60
    ids = range(1, len(conversation.messages) + 1)
    assert all(question.evidence and question.evidence <= {*ids} for question in conversation.questions)


def test_no_message_of_every_day_is_there_twice():
    sets = [read_everyday(read_conversation(name), "plain") for name in CONVERSATIONS]
    people = [read_everyday(read_conversation(name), "people") for name in CONVERSATIONS]
    assert sets[0] == sets[1], "both are English"
    assert len(sets[0]) + len(sets[2]) >= 500
    assert all(len(everyday) == len(set(everyday)) for everyday in (*sets, *people))
    assert [len(everyday) for everyday in people] == [60, 60, 60]
    assert read_everyday(read_conversation(TUNED), "riddles") is None


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_recall_is_far_better_than_plain_full_text(name):
    conversation, store = read_conversation(name), MemoryStore()
    await store.open()
    ours = await measure_finding(await make_sash(store, conversation), conversation)
    plain = await measure_finding(make_full_text(conversation), conversation)
    assert ours.any[500] >= plain.any[500] + 0.1 * ours.asked
    assert ours.all[500] >= plain.all[500] + 0.1 * ours.asked


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_automatic_recall_brings_answers_and_is_silent_in_everyday_life(name):
    conversation = read_conversation(name)
    automatic = await measure_automatic(conversation, read_everyday(conversation, "plain"))
    assert automatic.shares["in prompt"] >= 0.65
    assert automatic.alarms <= 0.03 * automatic.everyday


def test_a_file_of_locomo_is_read(tmp_path):
    sample = {
        "sample_id": "ours",
        "conversation": {
            "speaker_a": "Ann",
            "session_2_date_time": "12:05 am on 3 June, 2023",
            "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "The tent leaks."}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a tent."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a tent"},
            ],
        },
        "qa": [
            {"question": "Who bought it?", "evidence": ["D1:1; D2:1", "D1:02", "D"], "category": 1},
            {"question": "Who sold it?", "evidence": ["D1:1"], "category": 5},
            {"question": "Why?", "evidence": ["D9:9"], "category": 3},
        ],
    }
    file = tmp_path / "locomo10.json"
    file.write_text(json.dumps([sample]))
    [conversation] = read_locomo(file)
    assert [said.text for said in conversation.messages] == ["I bought a tent.", "Nice!", "The tent leaks."]
    assert conversation.messages[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.messages[2].at == datetime(2023, 6, 3, 0, 5, tzinfo=UTC)
    assert [question.evidence for question in conversation.questions] == [{1, 2, 3}, set(), set()]


def test_a_lengthened_conversation_has_its_size_and_its_order():
    conversation = lengthen(read_conversation(TUNED), 3000)
    assert len(conversation.messages) == 3000
    assert [said.at for said in conversation.messages] == sorted(said.at for said in conversation.messages)
    assert conversation.messages[-1].text == read_conversation(TUNED).messages[-1].text
