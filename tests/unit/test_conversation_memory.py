"""ConversationMemoryManager: windows, tags, search and limits."""

import asyncio
import copy
import json
import logging
import pickle

import pytest

from sash import ConversationMemoryManager, SashError
from sash.memory.tokens import TokenCounter, count_text
from tests.unit.memory_messages import call, contents, talk


async def test_add_message_creates_window():
    memory = ConversationMemoryManager()
    added = await memory.add_message("conv123", "user", "Hello", tags={"input", "greeting"})
    assert await memory.get_messages("conv123") == [{"role": "user", "content": "Hello"}]
    assert added.message.tags == {"input", "greeting"}
    assert memory.get_all_conversations() == ["conv123"]


async def test_fifo_eviction():
    memory = ConversationMemoryManager(max_tokens=100)
    for n in range(20):
        await memory.add_message("c", "user", f"message {n} " + "word " * 10)
        assert memory.get_stats("c")["current_tokens"] <= 100
    kept = contents(await memory.get_messages("c"))
    assert [text.split()[1] for text in kept] == ["15", "16", "17", "18", "19"]


async def test_preserve_system_messages():
    for preserve in (True, False):
        memory = ConversationMemoryManager(max_tokens=60, preserve_system=preserve)
        await memory.add_message("c", "system", "You are a house.")
        await talk(memory, *(f"message {n} " + "word " * 10 for n in range(9)))
        roles = [m["role"] for m in await memory.get_messages("c")]
        assert ("system" in roles) is preserve
        assert roles.count("system") == preserve


async def test_tag_filtering():
    memory = ConversationMemoryManager()
    await memory.add_message("c", "system", "You are a house.")
    await memory.add_message("c", "user", "lights on", tags={"context:lights"})
    await memory.add_message("c", "assistant", "done", tags={"context:lights"})
    await memory.add_message("c", "user", "weather?", tags={"context:weather"})
    await memory.add_message("c", "assistant", "sunny", tags={"context:weather"})
    lights = await memory.get_messages("c", tag_filter={"context:lights"})
    assert contents(lights) == ["You are a house.", "lights on", "done"]
    both = await memory.get_messages("c", tag_filter={"context:lights", "context:weather"})
    assert contents(both) == ["You are a house.", "lights on", "done", "weather?", "sunny"]
    assert contents(await memory.get_messages("c", tag_filter={"nothing"})) == ["You are a house."]
    assert contents(await memory.get_messages("c", tag_filter={"input"}))[1:] == ["lights on", "weather?"]


async def test_reset_conversation():
    memory = ConversationMemoryManager()
    await talk(memory, "hi", "hello")
    await memory.reset_conversation("c")
    assert await memory.get_messages("c") == []
    assert memory.get_stats("c")["exists"] is False
    assert memory.get_all_conversations() == []
    await memory.reset_conversation("never was")


async def test_token_counting():
    memory = ConversationMemoryManager(max_tokens=4000)
    added = await memory.add_message("c", "user", "The kitchen light is on.")
    assert added.message.token_count == count_text("The kitchen light is on.") + 4
    await memory.add_message("c", "assistant", "Shall I turn it off?")
    stats = memory.get_stats("c")
    assert stats["current_tokens"] == sum(
        TokenCounter().count_message(m["content"]) for m in await memory.get_messages("c")
    )
    assert stats["utilization"] == pytest.approx(100 * stats["current_tokens"] / 4000)


async def test_multiple_conversations():
    memory = ConversationMemoryManager(max_tokens=50)
    await memory.add_message("a", "user", "first")
    await memory.add_message("b", "user", "second")
    await talk(memory, *("word " * 10 for _ in range(9)), conversation_id="b")
    assert contents(await memory.get_messages("a")) == ["first"]
    assert memory.get_all_conversations() == ["a", "b"]
    assert await memory.get_messages("unknown") == []


async def test_tag_distribution_stats():
    memory = ConversationMemoryManager()
    await memory.add_message("c", "user", "on", tags={"context:lights"})
    await memory.add_message("c", "assistant", "ok")
    await memory.add_message("c", "user", "off", tags={"input", "context:lights"})
    stats = memory.get_stats("c")
    assert stats["tag_distribution"] == {"input": 2, "output": 1, "context:lights": 2}
    keys = {"exists", "message_count", "current_tokens", "max_tokens", "utilization", "tag_distribution"}
    assert keys <= stats.keys()
    assert (stats["exists"], stats["message_count"], stats["max_tokens"]) == (True, 3, 4000)
    assert keys <= memory.get_stats("unknown").keys()


async def test_long_conversation_with_eviction():
    memory = ConversationMemoryManager(max_tokens=500)
    await memory.add_message("c", "system", "You are a house.")
    for n in range(300):
        await talk(memory, f"question {n}", f"answer {n}")
        stats = memory.get_stats("c")
        assert stats["current_tokens"] <= 500
    messages = await memory.get_messages("c")
    assert messages[0]["role"] == "system"
    assert contents(messages)[-1] == "answer 299"
    assert stats["evicted_count"] + stats["message_count"] == stats["transcript_count"] == 601


async def test_context_preservation_across_turns():
    memory = ConversationMemoryManager()
    words = [
        "error 500 at /api/users/123",
        "config.py line 45 ",
        "  spaces  and\ttabs\n\n",
        "ünïcödé 漢字 😀",
    ]
    await talk(memory, *words)
    assert contents(await memory.get_messages("c")) == words


async def test_reset_mid_conversation():
    memory = ConversationMemoryManager()
    await memory.add_message("c", "assistant", None, tool_calls=[call("1")])
    await memory.reset_conversation("c")
    with pytest.raises(SashError, match="no open tool call '1'"):
        await memory.add_message("c", "tool", "late", tool_call_id="1")
    assert memory.get_all_conversations() == []
    await talk(memory, "again")
    assert contents(await memory.get_messages("c")) == ["again"]


async def test_concurrent_conversations():
    memory = ConversationMemoryManager(max_tokens=200)

    async def one(name):
        for n in range(50):
            await memory.add_message(name, "user", f"{name} {n}")
            await asyncio.sleep(0)

    await asyncio.gather(*(one(f"conversation-{n}") for n in range(20)))
    for name in memory.get_all_conversations():
        texts = contents(await memory.get_messages(name))
        assert texts == [f"{name} {n}" for n in range(50 - len(texts), 50)]


async def test_tool_calling_with_memory():
    memory = ConversationMemoryManager()
    calls = [call("1"), call("2", "fan")]
    await memory.add_message("c", "user", "light and fan on")
    await memory.add_message("c", "assistant", None, tool_calls=calls)
    await memory.add_message("c", "tool", "ok", tool_call_id="1", name="light")
    await memory.add_message("c", "tool", "jammed", tool_call_id="2")
    await memory.add_message("c", "assistant", "The light is on, the fan is jammed.")
    assert await memory.get_messages("c") == [
        {"role": "user", "content": "light and fan on"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "ok", "tool_call_id": "1", "name": "light"},
        {"role": "tool", "content": "jammed", "tool_call_id": "2"},
        {"role": "assistant", "content": "The light is on, the fan is jammed."},
    ]
    assert memory.get_stats("c")["tag_distribution"] == {"input": 1, "output": 2, "tool_call": 3}
    filtered = await memory.get_messages("c", tag_filter={"tool_call"})
    assert [m["role"] for m in filtered] == ["assistant", "tool", "tool"]


async def test_a_tag_filter_never_tears_a_call_from_its_result():
    memory = ConversationMemoryManager()
    await memory.add_message("c", "assistant", None, tool_calls=[call("1")])
    await memory.add_message("c", "tool", "found it", {"web_search"}, tool_call_id="1")
    roles = [m["role"] for m in await memory.get_messages("c", {"web_search"})]
    assert roles == ["assistant", "tool"]


async def test_early_timeout_with_memory():
    """A caller that gives up while its message is being counted leaves nothing behind."""
    memory = ConversationMemoryManager()
    await memory.add_message("c", "user", "first")
    task = asyncio.create_task(memory.add_message("c", "user", "word " * 50_000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await memory.add_message("c", "user", "next")
    assert contents(await memory.get_messages("c")) == ["first", "next"]


async def test_messages_are_stored_in_the_order_of_the_calls_even_when_one_takes_long():
    memory = ConversationMemoryManager(max_tokens=None)
    texts = ["first", "word " * 50_000, "third", "fourth"]
    await asyncio.gather(*(memory.add_message("c", "user", text) for text in texts))
    assert contents(await memory.get_messages("c")) == texts
    await asyncio.gather(
        memory.add_message("c", "user", "word " * 50_000),
        memory.reset_conversation("c"),
        memory.add_message("c", "user", "after"),
    )
    assert contents(await memory.get_messages("c")) == ["after"]


async def test_changes_to_returned_messages_do_not_reach_the_memory():
    memory = ConversationMemoryManager()
    calls, parts = [call("1")], [{"type": "text", "text": "look"}]
    await memory.add_message("c", "user", parts)
    await memory.add_message("c", "assistant", "x", tool_calls=calls)
    calls[0]["function"]["name"] = parts[0]["text"] = "changed"
    for message in await memory.get_messages("c"):
        message["content"] = "changed"
        message.get("tool_calls", [{}])[0].clear()
    assert await memory.get_messages("c") == [
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "assistant", "content": "x", "tool_calls": [call("1")]},
    ]


async def test_disabled_keeps_all():
    memory = ConversationMemoryManager(max_tokens=10, max_turns=1, enabled=False)
    await talk(memory, *("word " * 10 for _ in range(30)))
    stats = memory.get_stats("c")
    assert (stats["message_count"], stats["max_tokens"], stats["over_budget"]) == (30, None, False)


async def test_a_message_over_the_limit_is_kept_and_reported():
    memory = ConversationMemoryManager(max_tokens=20)
    added = await memory.add_message("c", "user", "word " * 50)
    assert added.over_budget
    assert memory.get_stats("c")["over_budget"]
    assert memory.get_stats("c")["utilization"] > 100
    assert not (await memory.add_message("c", "user", "short")).over_budget


async def test_max_turns_counts_turns_not_messages():
    memory = ConversationMemoryManager(max_turns=3)
    await talk(memory, *map(str, range(12)))
    assert contents(await memory.get_messages("c")) == ["6", "7", "8", "9", "10", "11"]
    assert memory.get_stats("c")["turn_count"] == 3


async def test_every_eviction_reaches_the_listener_and_the_log(caplog):
    seen = []
    memory = ConversationMemoryManager(
        max_turns=1,
        on_evict=lambda conversation_id, e: seen.append((conversation_id, e.message.content, e.reason)),
    )
    with caplog.at_level(logging.DEBUG, "sash.memory.manager"):
        await talk(memory, "one", "eins", "two")
    assert seen == [("c", "one", "max_turns"), ("c", "eins", "max_turns")]
    assert [r.getMessage() for r in caplog.records] == [
        "Window: conv=c, msgs=2, tokens=10/4000 (0.2%)",
        "Evicted: conv=c, role=user, tokens=5, reason=max_turns",
        "Evicted: conv=c, role=assistant, tokens=5, reason=max_turns",
    ]


async def test_a_failing_listener_costs_no_message(caplog):
    def broken(conversation_id, eviction):
        raise RuntimeError("listener")

    memory = ConversationMemoryManager(max_turns=1, on_evict=broken)
    await talk(memory, "one", "eins", "two")
    assert contents(await memory.get_messages("c")) == ["two"]
    assert "on_evict failed for conversation c" in caplog.text


def test_a_coroutine_function_as_on_evict_is_refused():
    async def listener(conversation_id, eviction):
        pass

    with pytest.raises(SashError):
        ConversationMemoryManager(on_evict=listener)


async def test_health_gives_the_two_warnings(caplog):
    memory = ConversationMemoryManager(max_tokens=20)
    assert memory.health() == []
    await memory.add_message("full", "user", "word " * 15)
    assert memory.health() == ["Window nearly full: full"]
    for n in range(100):
        await memory.add_message(str(n), "user", "hi")
    assert memory.health() == ["Too many active conversations: 101", "Window nearly full: full"]
    assert "Window nearly full: full" in caplog.text


async def test_search_finds_evicted_messages_word_for_word():
    memory = ConversationMemoryManager(max_turns=1)
    await talk(memory, "Error 500 at /api/users/123", "Look at config.py", "And the error now?", "Gone")
    found = await memory.search("c", "ERROR")
    assert [(hit["content"], hit["in_window"]) for hit in found] == [
        ("And the error now?", True),
        ("Error 500 at /api/users/123", False),
    ]
    assert [hit["content"] for hit in await memory.search("c", "error 500")] == [
        "Error 500 at /api/users/123"
    ]
    assert await memory.search("c", "error", limit=1) == found[:1]
    assert await memory.search("c", "nowhere") == []
    await memory.add_message("c", "assistant", None, tool_calls=[call("1", arguments='{"id": "light.hall"}')])
    assert len(await memory.search("c", "light.hall")) == 1


async def test_without_a_transcript_evicted_messages_are_forgotten():
    memory = ConversationMemoryManager(max_turns=1, keep_transcript=False)
    await talk(memory, "one", "eins", "two")
    assert [m.content for m in await memory.get_transcript("c")] == ["two"]
    assert await memory.search("c", "one") == []
    assert memory.get_stats("c")["transcript_count"] == 1


async def test_the_digest_holds_what_was_evicted():
    memory = ConversationMemoryManager(max_turns=1)
    await talk(memory, "I got error code 500 from db.example.com:5432", "See config.py line 45", "Thanks")
    assert await memory.digest("c") == ("- I got error code 500 from db.example.com:5432 | config.py line 45")


async def test_the_digest_has_a_line_for_each_turn():
    memory = ConversationMemoryManager(max_tokens=60)
    await memory.add_message("c", "user", "first question about /etc/one")
    await memory.add_message("c", "assistant", "answer one")
    await memory.add_message("c", "user", "second question", {"important"})
    await memory.add_message("c", "assistant", "answer in /etc/two")
    await memory.add_message("c", "user", "word " * 40)
    assert await memory.digest("c") == "- first question about /etc/one\n- answer in /etc/two"


async def test_returned_values_cannot_be_changed():
    memory = ConversationMemoryManager()
    added = await memory.add_message("c", "user", [{"type": "text", "text": "look", "more": [1, {"a": 2}]}])
    for change in (
        lambda part: part.update(text="x"),
        lambda part: part.__setitem__("text", "x"),
        lambda part: part["more"][1].clear(),
    ):
        with pytest.raises(TypeError):
            change(added.message.content[0])
    assert pickle.loads(pickle.dumps(added.message)) == copy.deepcopy(added.message) == added.message
    assert json.loads(json.dumps(added.message.content)) == (await memory.get_messages("c"))[0]["content"]
