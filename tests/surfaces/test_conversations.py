"""Conversations by name: the JSON objects of the routes, isolation and restarts."""

import re

import pytest

from sash import ConversationManager, Runtime
from sash.app.service import AgentService
from sash.errors import ContinuationNotFound, InvalidInput, SashError
from sash.server.conversation_service import ConversationService
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from tests.surfaces.conversations import ANN, BOB, DEFAULT, fill, sessions, users

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_a_turn_is_added_as_the_seed_prints_it(serve):
    conversations = await serve()
    added = await conversations.add_turn(
        *DEFAULT, "How do I fix error 500?", "Check your database connection...", {"source": "chat"}
    )
    assert list(added) == ["status", "turn_id", "message", "statistics"]
    assert (added["status"], added["message"]) == ("success", "Conversation turn added successfully")
    assert list(added["statistics"].items()) == [
        ("current_turns", 1),
        ("max_turns", 10),
        ("total_turns_ever", 1),
        ("deleted_turns", 0),
    ]


async def test_the_history_is_as_the_seed_prints_it(serve, clock):
    conversations = await serve()
    first = await conversations.add_turn(*DEFAULT, "q1", "a1", {"source": "chat", "session_id": "abc123"})
    clock.advance(60.1234)
    second = await conversations.add_turn(*DEFAULT, "q2")
    history = await conversations.get_history(*DEFAULT)
    assert list(history) == [
        "turns",
        "total_turns",
        "max_turns",
        "total_turns_ever",
        "oldest_turn_timestamp",
        "newest_turn_timestamp",
    ]
    assert [list(turn) for turn in history["turns"]] == [
        ["id", "user_message", "ai_response", "timestamp", "metadata"]
    ] * 2
    assert history == {
        "turns": [
            {
                "id": first["turn_id"],
                "user_message": "q1",
                "ai_response": "a1",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "metadata": {"source": "chat", "session_id": "abc123"},
            },
            {
                "id": second["turn_id"],
                "user_message": "q2",
                "ai_response": None,
                "timestamp": "2026-01-01T00:01:00.123Z",
                "metadata": {},
            },
        ],
        "total_turns": 2,
        "max_turns": 10,
        "total_turns_ever": 2,
        "oldest_turn_timestamp": "2026-01-01T00:00:00.000Z",
        "newest_turn_timestamp": "2026-01-01T00:01:00.123Z",
    }
    bare = await conversations.get_history(*DEFAULT, include_metadata=False)
    assert [list(turn) for turn in bare["turns"]] == [["id", "user_message", "ai_response", "timestamp"]] * 2


@pytest.mark.parametrize("include_metadata", [True, False])
async def test_the_history_as_text_equals_that_of_the_conversation_manager(serve, clock, include_metadata):
    conversations, manager = await serve(), ConversationManager(clock=clock)
    for said in (("q1", "a1", {"source": "chat"}), ("q2", None, None)):
        await conversations.add_turn(*DEFAULT, *said)
        manager.add_turn(*said)
    shown = await conversations.get_history(*DEFAULT, format_text=True, include_metadata=include_metadata)
    expected = manager.get_conversation_history(format_as_text=True, include_metadata=include_metadata)
    assert shown == await conversations.get_history(*DEFAULT) | {"turns": expected}


async def test_the_statistics_are_as_the_seed_prints_them(serve, clock):
    conversations = await serve(2)
    await fill(conversations, 2)
    clock.advance(60)
    await fill(conversations, 1)
    stats = await conversations.get_statistics(*DEFAULT)
    assert list(stats) == ["status", "statistics", "sliding_window_info"]
    assert list(stats["statistics"].items()) == [
        ("current_turns", 2),
        ("max_turns", 2),
        ("total_turns_ever", 3),
        ("deleted_turns", 1),
        ("oldest_turn", "2026-01-01T00:00:00.000Z"),
        ("newest_turn", "2026-01-01T00:01:00.000Z"),
    ]
    assert list(stats["sliding_window_info"].items()) == [
        ("max_turns", 2),
        ("policy", "FIFO (First In First Out)"),
        ("philosophy", "Chopping > Summarizing"),
        (
            "benefits",
            [
                "Recent precision: Last N turns perfectly intact",
                "Zero AI cost: No summarization needed",
                "No information loss: Lossless compression of recent past",
                "Predictable: Always know what's in context",
            ],
        ),
    ]


async def test_recent_turns_are_as_the_seed_prints_them(serve):
    conversations = await serve()
    await fill(conversations, 3)
    recent = await conversations.get_recent_turns(*DEFAULT, 2)
    assert list(recent) == ["status", "recent_turns", "count", "requested"]
    assert (recent["status"], users(recent["recent_turns"])) == ("success", ["Turn 2", "Turn 3"])
    assert recent["recent_turns"] == (await conversations.get_history(*DEFAULT))["turns"][1:]
    assert (recent["count"], recent["requested"]) == (2, 2)
    many = await conversations.get_recent_turns(*DEFAULT, 50)
    assert (many["count"], many["requested"]) == (3, 50)
    assert (await conversations.get_recent_turns(*DEFAULT, 0))["recent_turns"] == []
    for wrong in (-1, "1", None, 1.5):
        with pytest.raises(InvalidInput):
            await conversations.get_recent_turns(*DEFAULT, wrong)


async def test_a_window_of_three_turns_is_first_in_first_out(serve):
    conversations = await serve(3)
    windows = []
    for n in range(1, 6):
        await conversations.add_turn(*DEFAULT, f"Turn {n}", f"answer {n}")
        windows.append(users((await conversations.get_history(*DEFAULT))["turns"]))
        conversations = await serve(3)
    assert windows == [
        ["Turn 1"],
        ["Turn 1", "Turn 2"],
        ["Turn 1", "Turn 2", "Turn 3"],
        ["Turn 2", "Turn 3", "Turn 4"],
        ["Turn 3", "Turn 4", "Turn 5"],
    ]


async def test_an_answer_is_updated_as_the_seed_prints_it(serve):
    conversations = await serve()
    turn_id = (await conversations.add_turn(*DEFAULT, "q"))["turn_id"]
    updated = await conversations.update_turn(*DEFAULT, turn_id, "Updated response text")
    assert list(updated.items()) == [
        ("status", "success"),
        ("turn_id", turn_id),
        ("message", "AI response updated successfully"),
    ]
    conversations = await serve()
    [turn] = (await conversations.get_history(*DEFAULT))["turns"]
    assert (turn["id"], turn["ai_response"]) == (turn_id, "Updated response text")


async def test_only_a_turn_in_the_window_can_be_updated(serve):
    conversations = await serve(1)
    gone, kept = [added["turn_id"] for added in await fill(conversations, 2)]
    other = (await conversations.add_turn(ANN, "other", "q", "a"))["turn_id"]
    for owner, conversation_id, turn_id in (
        (*DEFAULT, gone),
        (*DEFAULT, other),
        (*DEFAULT, "unknown"),
        (ANN, "nowhere", kept),
        (BOB, "default", kept),
    ):
        with pytest.raises(ContinuationNotFound):
            await conversations.update_turn(owner, conversation_id, turn_id, "x")
    assert (await conversations.get_history(*DEFAULT))["turns"][0]["ai_response"] == "answer 2"
    assert len(await sessions(conversations)) == 2


async def test_a_cleared_conversation_is_empty_and_keeps_its_count(serve, tmp_path):
    conversations = await serve(3)
    await conversations.add_turn(*DEFAULT, "the word is marmalade", "indeed")
    await fill(conversations, 4)
    cleared = await conversations.clear(*DEFAULT)
    assert list(cleared.items()) == [
        ("status", "success"),
        ("message", "Conversation history cleared"),
        ("total_turns_ever", 5),
    ]
    conversations = await serve(3)
    assert (await conversations.get_statistics(*DEFAULT))["statistics"] == {
        "current_turns": 0,
        "max_turns": 3,
        "total_turns_ever": 5,
        "deleted_turns": 5,
        "oldest_turn": None,
        "newest_turn": None,
    }
    assert await conversations.runtime.search("marmalade", owner="ann") == []
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and b"marmalade" in p.read_bytes()]
    added = await conversations.add_turn(*DEFAULT, "again", "yes")
    assert added["statistics"] == {
        "current_turns": 1,
        "max_turns": 3,
        "total_turns_ever": 6,
        "deleted_turns": 5,
    }
    assert (await conversations.clear(*DEFAULT))["total_turns_ever"] == 6
    assert (await conversations.clear(*DEFAULT))["total_turns_ever"] == 6
    assert len(await sessions(conversations)) == 1


async def test_a_restart_loses_nothing(serve):
    conversations = await serve()
    await fill(conversations, 12)
    before = [
        await conversations.get_history(*DEFAULT),
        await conversations.get_statistics(*DEFAULT),
        await conversations.get_recent_turns(*DEFAULT, 3),
    ]
    conversations = await serve()
    assert before == [
        await conversations.get_history(*DEFAULT),
        await conversations.get_statistics(*DEFAULT),
        await conversations.get_recent_turns(*DEFAULT, 3),
    ]
    assert before[1]["statistics"]["deleted_turns"] == 2
    assert len(await sessions(conversations)) == 1


async def test_owners_and_conversations_are_isolated(serve):
    conversations = await serve()
    for owner, name in ((ANN, "default"), (BOB, "default"), (ANN, "other")):
        await conversations.add_turn(owner, name, f"{owner.owner}'s {name}", "ok")
    for owner, name in ((ANN, "default"), (BOB, "default"), (ANN, "other")):
        assert users((await conversations.get_history(owner, name))["turns"]) == [f"{owner.owner}'s {name}"]
    await conversations.clear(BOB, "default")
    assert (await conversations.get_statistics(ANN, "default"))["statistics"]["current_turns"] == 1
    assert (await conversations.get_statistics(BOB, "default"))["statistics"]["current_turns"] == 0


async def test_reading_a_missing_conversation_does_not_start_it(serve):
    conversations = await serve(7)
    assert await conversations.get_history(*DEFAULT) == {
        "turns": [],
        "total_turns": 0,
        "max_turns": 7,
        "total_turns_ever": 0,
        "oldest_turn_timestamp": None,
        "newest_turn_timestamp": None,
    }
    assert (await conversations.get_history(*DEFAULT, format_text=True))["turns"] == ""
    assert (await conversations.get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 0
    assert (await conversations.get_recent_turns(*DEFAULT))["count"] == 0
    assert (await conversations.clear(*DEFAULT))["total_turns_ever"] == 0
    with pytest.raises(ContinuationNotFound):
        await conversations.update_turn(*DEFAULT, "x", "y")
    assert await sessions(conversations) == ()


@pytest.mark.parametrize("max_turns", [0, 101, "10", None])
def test_max_turns_outside_1_to_100_is_refused(max_turns):
    with pytest.raises(SashError) as error:
        ConversationService(AgentService(Runtime(MemoryStore())), max_turns)
    assert error.value.code == "invalid_limit"


async def test_times_are_written_with_milliseconds(tmp_path):
    async with Runtime(SqliteStore(tmp_path / "sash.db")) as runtime:
        conversations = ConversationService(AgentService(runtime))
        await conversations.add_turn(*DEFAULT, "q")
        assert STAMP.fullmatch((await conversations.get_history(*DEFAULT))["oldest_turn_timestamp"])
