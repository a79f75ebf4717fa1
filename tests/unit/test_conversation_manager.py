"""ConversationManager: the last N turns, word for word."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from sash import SashError
from sash.memory.conversation import ConversationManager
from sash.testing import FakeClock


def users(turns):
    return [turn["user_message"] for turn in turns]


def filled(count, max_turns=3, **options):
    manager = ConversationManager(max_turns=max_turns, **options)
    ids = [manager.add_turn(f"question {n}", f"answer {n}") for n in range(count)]
    return manager, ids


def test_the_seed_s_debugging_session():
    manager = ConversationManager(max_turns=5)
    manager.add_turn("I'm debugging a function", "Let me help you with that")
    manager.add_turn("Here's my code: def process_data(items):", "I see the function signature")
    manager.add_turn("    for item in items:", "You're iterating over items")
    manager.add_turn("        result = item.value * 2", "You're doubling the value")
    manager.add_turn("        print(result)", "You're printing the result")
    manager.add_turn(
        "Wait, I just realized the bug! Line 4 should be item.value * 3 not * 2",
        "Ah! So the multiplication factor is wrong. Change line 4 to multiply by 3.",
    )
    recent = manager.get_recent_turns(n=3)
    assert users(recent) == [
        "        result = item.value * 2",
        "        print(result)",
        "Wait, I just realized the bug! Line 4 should be item.value * 3 not * 2",
    ]
    assert "I'm debugging a function" not in users(manager.get_conversation_history())


def test_the_oldest_turn_is_deleted_first():
    manager, ids = filled(5)
    assert users(manager.get_conversation_history()) == ["question 2", "question 3", "question 4"]
    assert [turn["id"] for turn in manager.get_conversation_history()] == ids[2:]


def test_a_turn_has_the_seed_s_keys():
    manager = ConversationManager(clock=FakeClock())
    turn_id = manager.add_turn("q", "a", {"source": "chat"})
    assert manager.get_conversation_history() == [
        {
            "id": turn_id,
            "user_message": "q",
            "ai_response": "a",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "metadata": {"source": "chat"},
        }
    ]
    assert "metadata" not in manager.get_conversation_history(include_metadata=False)[0]


def test_statistics_have_the_seed_s_keys_and_the_total_survives_a_clear():
    clock = FakeClock()
    manager, _ = filled(2, clock=clock)
    clock.advance(60)
    manager.add_turn("late")
    assert manager.get_statistics() == {
        "current_turns": 3,
        "max_turns": 3,
        "total_turns_ever": 3,
        "deleted_turns": 0,
        "oldest_turn": "2026-01-01T00:00:00.000Z",
        "newest_turn": "2026-01-01T00:01:00.000Z",
    }
    manager.clear_conversation()
    assert manager.get_statistics() == {
        "current_turns": 0,
        "max_turns": 3,
        "total_turns_ever": 3,
        "deleted_turns": 3,
        "oldest_turn": None,
        "newest_turn": None,
    }
    manager.add_turn("again")
    assert manager.get_statistics()["total_turns_ever"] == 4


def test_the_answer_can_come_later():
    manager = ConversationManager()
    turn_id = manager.add_turn("q")
    assert manager.get_recent_turns(1)[0]["ai_response"] is None
    assert manager.update_turn_response(turn_id, "Updated response") is True
    assert manager.get_recent_turns(1)[0]["ai_response"] == "Updated response"


def test_an_answer_for_a_deleted_turn_returns_false():
    manager, ids = filled(5)
    assert manager.update_turn_response(ids[0], "late") is False
    assert manager.update_turn_response("unknown", "late") is False


def test_history_as_text():
    manager = ConversationManager(clock=FakeClock())
    manager.add_turn("q1", "a1", {"source": "chat"})
    manager.add_turn("q2")
    assert manager.get_conversation_history(format_as_text=True) == (
        '[2026-01-01T00:00:00.000Z]\nUser: q1\nAI: a1\nMetadata: {"source": "chat"}\n\n'
        "[2026-01-01T00:00:00.000Z]\nUser: q2"
    )
    text = manager.get_conversation_history(format_as_text=True, include_metadata=False)
    assert text == "User: q1\nAI: a1\n\nUser: q2"


@pytest.mark.parametrize(("n", "expected"), [(0, []), (1, [4]), (3, [2, 3, 4]), (99, [2, 3, 4])])
def test_recent_turns(n, expected):
    manager, _ = filled(5)
    assert users(manager.get_recent_turns(n)) == [f"question {k}" for k in expected]


@pytest.mark.parametrize("max_turns", [0, -1, 101, 2.5, "10", None, True])
def test_max_turns_outside_1_to_100_is_refused(max_turns):
    with pytest.raises(SashError) as error:
        ConversationManager(max_turns=max_turns)
    assert error.value.code == "invalid_limit"


@pytest.mark.parametrize("max_turns", [1, 100])
def test_max_turns_from_1_to_100_are_accepted(max_turns):
    manager, _ = filled(150, max_turns)
    assert manager.get_statistics()["current_turns"] == max_turns


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("add_turn", [None]),
        ("add_turn", [b"x"]),
        ("add_turn", ["x", 7]),
        ("add_turn", ["x", "y", "metadata"]),
        ("add_turn", ["x", "y", {"a": {1}}]),
        ("add_turn", ["x", "y", {"a": "\ud800"}]),
        ("add_turn", ["x", "y", {"a": "x" * 2**20}]),
        ("add_turn", ["x", "y", {"a": json.loads("[" * 200 + "]" * 200)}]),
        ("add_turn", ["\ud800"]),
        ("add_turn", ["x" * (2**20 + 1)]),
        ("get_recent_turns", [-1]),
        ("get_recent_turns", ["1"]),
        ("get_recent_turns", [None]),
        ("update_turn_response", [None, "x"]),
        ("update_turn_response", ["id", None]),
    ],
)
def test_bad_input_gets_a_clear_error_and_changes_nothing(verb, arguments):
    manager, _ = filled(3)
    before = (manager.get_conversation_history(), manager.get_statistics())
    with pytest.raises(SashError):
        getattr(manager, verb)(*arguments)
    assert (manager.get_conversation_history(), manager.get_statistics()) == before


def test_changes_to_a_returned_turn_do_not_reach_the_window():
    manager = ConversationManager()
    metadata = {"tags": ["a"]}
    manager.add_turn("q", "a", metadata)
    metadata["tags"].append("b")
    manager.get_conversation_history()[0]["metadata"]["tags"].append("c")
    assert manager.get_recent_turns(1)[0]["metadata"] == {"tags": ["a"]}
    assert json.loads(json.dumps(manager.get_conversation_history()))


def test_threads_lose_no_turn():
    manager = ConversationManager(max_turns=100)
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: manager.add_turn(f"question {n}"), range(1000)))
    assert len(set(ids)) == 1000
    assert manager.get_statistics()["total_turns_ever"] == 1000
    assert manager.get_statistics()["current_turns"] == 100
