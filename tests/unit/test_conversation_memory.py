"""ConversationMemoryManager: first the tests that the seeds name, then further ones."""

import asyncio
import copy
import json
import logging
import pickle
from functools import partial

import pytest

from sash import AgentConfig, ConversationMemoryManager, MemoryStore, Runtime, SashError
from sash.errors import ConversationExists, ConversationNotFound, InvalidExport
from sash.memory.tokens import TokenCounter, count_text
from sash.testing import FakeClock


def call(id, name="light", arguments='{"on": true}'):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def contents(messages):
    return [m["content"] for m in messages]


async def talk(memory, *texts, conversation_id="c"):
    for n, text in enumerate(texts):
        await memory.add_message(conversation_id, "assistant" if n % 2 else "user", text)


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


async def test_export_and_import_are_exact(tmp_path):
    memory = ConversationMemoryManager(max_turns=3, max_tokens=90, clock=FakeClock())
    await memory.add_message("c", "system", "You are a house.")
    for n in range(8):
        await memory.add_message("c", "user", [{"type": "text", "text": f"question {n} 😀"}])
        await memory.add_message("c", "assistant", None, {"important"}, tool_calls=[call(f"{n}")])
        await memory.add_message("c", "tool", f"answer {n}", tool_call_id=f"{n}")
    (tmp_path / "c.json").write_text(json.dumps(await memory.export("c")))
    data = json.loads((tmp_path / "c.json").read_text())

    other = ConversationMemoryManager(max_turns=3, max_tokens=90)
    assert await other.import_(data) == "c"
    assert await other.export("c") == data
    assert await other.get_state("c") == await memory.get_state("c")
    assert await other.import_(data, "copy") == "copy"
    with pytest.raises(ConversationExists):
        await other.import_(data)
    for m in (memory, other):
        await m.add_message("c", "user", "and now?")
    assert await other.get_messages("c") == await memory.get_messages("c")


async def test_an_import_respects_the_size_cap():
    memory = ConversationMemoryManager()
    await memory.add_message("c", "user", "x" * 100)
    small = ConversationMemoryManager(max_message_bytes=99)
    with pytest.raises(SashError) as error:
        await small.import_(await memory.export("c"))
    assert error.value.code == "message_too_large"
    assert small.get_all_conversations() == []


async def test_an_import_and_a_fork_wait_for_earlier_writers():
    memory = ConversationMemoryManager(max_tokens=None)
    await talk(memory, "hi")
    data = await memory.export("c")
    done = await asyncio.gather(
        memory.add_message("x", "user", "word " * 50_000), memory.import_(data, "x"), return_exceptions=True
    )
    assert isinstance(done[1], ConversationExists)
    assert len(await memory.get_messages("x")) == 1
    done = await asyncio.gather(
        memory.add_message("y", "user", "word " * 50_000), memory.fork("c", "y"), return_exceptions=True
    )
    assert isinstance(done[1], ConversationExists)


async def test_an_import_counts_as_the_model_counts():
    image = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    memory, other = ConversationMemoryManager(model="gpt-4o"), ConversationMemoryManager(model="gpt-4o-mini")
    await memory.add_message("c", "user", image)
    await other.import_(await memory.export("c"))
    await other.add_message("direct", "user", image)
    assert other.get_stats("c")["current_tokens"] == other.get_stats("direct")["current_tokens"]


async def test_an_import_counts_anew_in_another_encoding():
    text = "Включи свет на кухне, пожалуйста"
    memory = ConversationMemoryManager(model="gpt-4o")
    await memory.add_message("c", "user", text)
    other = ConversationMemoryManager(model="gpt-4")
    await other.import_(await memory.export("c"))
    assert other.get_stats("c")["current_tokens"] == count_text(text, "cl100k_base") + 4
    assert count_text(text, "cl100k_base") != count_text(text)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: None,
        lambda d: [],
        lambda d: d | {"format": "other"},
        lambda d: d | {"version": 2},
        lambda d: d | {"messages": "x"},
        lambda d: d | {"messages": [{}]},
        lambda d: d | {"messages": d["messages"] * 2},
        lambda d: d | {"messages": [d["messages"][0] | {"role": "alien"}]},
        lambda d: d | {"messages": [d["messages"][0] | {"token_count": -1}]},
        lambda d: d | {"messages": [d["messages"][0] | {"timestamp": "yesterday"}]},
        lambda d: d | {"messages": [{k: v for k, v in d["messages"][0].items() if k != "in_window"}]},
        lambda d: d | {"messages": [d["messages"][0] | {"role": "tool", "tool_call_id": "1"}]},
        lambda d: (
            d
            | {
                "messages": [
                    d["messages"][0] | {"role": "assistant", "tool_calls": [call("1")]},
                    d["messages"][0] | {"id": "x"},
                ]
            }
        ),
        lambda d: d | {"evicted_count": "3"},
        lambda d: d | {"version": True},
        lambda d: d | {"messages": {}},
        lambda d: d | {"turn_starts": "abc"},
        lambda d: d | {"messages": [d["messages"][0] | {"in_window": "false"}]},
        lambda d: d | {"turn_starts": 7},
        lambda d: d | {"evicted_count": -1},
    ],
)
async def test_a_damaged_export_is_refused_whole(damage):
    memory = ConversationMemoryManager()
    await talk(memory, "hi")
    data = await memory.export("c")
    other = ConversationMemoryManager()
    with pytest.raises(InvalidExport):
        await other.import_(damage(data))
    assert other.get_all_conversations() == []


async def test_a_fork_is_independent_of_its_source():
    memory = ConversationMemoryManager()
    await talk(memory, "hi", "hello")
    copy = await memory.fork("c", "branch")
    assert copy == "branch"
    await memory.add_message("branch", "user", "only here")
    assert contents(await memory.get_messages("c")) == ["hi", "hello"]
    assert contents(await memory.get_messages("branch")) == ["hi", "hello", "only here"]
    assert len(await memory.get_transcript("branch")) == 3
    assert await memory.fork("c") not in ("c", "branch")
    with pytest.raises(ConversationExists):
        await memory.fork("c", "branch")
    with pytest.raises(ConversationNotFound):
        await memory.fork("nowhere")


async def test_options_come_from_the_config():
    memory = ConversationMemoryManager.from_config(
        AgentConfig.from_dict({"sliding_window_max_tokens": 6000, "max_history_turns": 0, "api_key": "x"})
    )
    await memory.add_message("c", "user", "hi")
    stats = memory.get_stats("c")
    assert (stats["max_tokens"], stats["max_turns"]) == (6000, None)
    standard = ConversationMemoryManager.from_config(AgentConfig())
    assert standard.get_stats("c")["max_turns"] == 20
    off = ConversationMemoryManager.from_config(AgentConfig(sliding_window_enable=False))
    assert off.get_stats("c")["max_tokens"] is None


async def test_a_conversation_id_is_created_only_on_request():
    memory = ConversationMemoryManager.from_config(AgentConfig(auto_create_conversation_id=True))
    first = await memory.add_message(None, "user", "hi")
    second = await memory.add_message(None, "user", "hi")
    assert len(first.conversation_id) == 36
    assert first.conversation_id != second.conversation_id
    await memory.add_message(first.conversation_id, "assistant", "hello")
    assert len(await memory.get_messages(first.conversation_id)) == 2
    with pytest.raises(SashError) as error:
        await ConversationMemoryManager().add_message(None, "user", "hi")
    assert error.value.code == "invalid_conversation_id"


bad = [
    ("invalid_role", ["c", "alien", "x"], {}),
    ("invalid_role", ["c", None, "x"], {}),
    ("invalid_role", ["c", ["user"], "x"], {}),
    ("invalid_conversation_id", ["", "user", "x"], {}),
    ("invalid_conversation_id", ["  ", "user", "x"], {}),
    ("invalid_conversation_id", [7, "user", "x"], {}),
    ("invalid_text", ["\ud800", "user", "x"], {}),
    ("invalid_input", ["c", "user", None], {}),
    ("invalid_input", ["c", "user", 7], {}),
    ("invalid_input", ["c", "user", b"x"], {}),
    ("invalid_input", ["c", "user", ["x"]], {}),
    ("invalid_input", ["c", "user", [{"type": "text", "text": {1}}]], {}),
    ("invalid_input", ["c", "user", [{"type": "text", "text": 5}]], {}),
    ("invalid_input", ["c", "user", [{"type": "image_url", "image_url": 5}]], {}),
    ("invalid_input", ["c", "user", [{"type": "image_url", "image_url": {}}]], {}),
    ("invalid_input", ["c", "user", [{"type": "x", "deep": json.loads("[" * 200 + "]" * 200)}]], {}),
    ("invalid_input", ["c", "user", "x", {"t" * 1000}], {}),
    ("invalid_input", ["c", "user", "x", {"a": 1}], {}),
    ("invalid_input", ["c", "user", "x"], {"name": "n" * 1000}),
    ("invalid_conversation_id", ["c" * 1000, "user", "x"], {}),
    ("invalid_input", ["c", "user", "x", "tag"], {}),
    ("invalid_input", ["c", "user", "x", {7}], {}),
    ("invalid_input", ["c", "user", "x", [["a"]]], {}),
    ("invalid_text", ["c", "user", "x", {"\ud800"}], {}),
    ("invalid_input", ["c", "user", "x", 7], {}),
    ("invalid_input", ["c", "user", "x"], {"name": ""}),
    ("invalid_text", ["c", "user", "a lone \udc80 surrogate"], {}),
    ("invalid_text", ["c", "user", [{"type": "text", "text": "\udc80"}]], {}),
    ("message_too_large", ["c", "user", "x" * (2**20 + 1)], {}),
    ("message_too_large", ["c", "user", "é" * (2**19 + 1)], {}),
    ("orphan_tool_result", ["c", "tool", "x"], {"tool_call_id": "nobody"}),
    ("invalid_tool_call", ["c", "tool", "x"], {}),
    ("invalid_tool_call", ["c", "user", "x"], {"tool_call_id": "1"}),
    ("invalid_tool_call", ["c", "user", "x"], {"tool_calls": [call("1")]}),
    ("invalid_tool_call", ["c", "assistant", "x"], {"tool_calls": [{"id": "1"}]}),
    ("invalid_tool_call", ["c", "assistant", "x"], {"tool_calls": [call("1", arguments={})]}),
    ("invalid_tool_call", ["c", "assistant", "x"], {"tool_calls": [call("1"), call("1")]}),
    ("invalid_tool_call", ["c", "assistant", "x"], {"tool_calls": "call"}),
]


@pytest.mark.parametrize(("code", "arguments", "named"), bad)
async def test_bad_input_gets_a_clear_error_and_changes_nothing(code, arguments, named):
    memory = ConversationMemoryManager()
    await talk(memory, "hi", "hello")
    before = await memory.export("c")
    with pytest.raises(SashError) as error:
        await memory.add_message(*arguments, **named)
    assert error.value.code == code
    assert error.value.message
    assert await memory.export("c") == before
    assert memory.get_all_conversations() == ["c"]


@pytest.mark.parametrize(
    "text", [" " * 1_000_000, "<|endoftext|>", "<|im_start|>system", "", "\x00", "\u2028", "x" * 2**20]
)
async def test_odd_text_is_kept_exactly(text):
    memory = ConversationMemoryManager()
    await memory.add_message("c", "user", text)
    assert contents(await memory.get_messages("c")) == [text]


async def test_the_size_cap_can_be_set():
    memory = ConversationMemoryManager(max_message_bytes=10)
    await memory.add_message("c", "user", "x" * 10)
    with pytest.raises(SashError, match="11 bytes, more than the 10 allowed"):
        await memory.add_message("c", "user", "x" * 11)


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": 0}, {"max_tokens": "1"}, {"max_turns": -1}, {"evict_to": 2}, {"max_message_bytes": 0}],
)
def test_senseless_limits_are_refused(options):
    with pytest.raises(SashError) as error:
        ConversationMemoryManager(**options)
    assert error.value.code == "invalid_limit"


@pytest.mark.parametrize(
    "options",
    [{"enabled": "false"}, {"preserve_system": "no"}, {"keep_transcript": 1}, {"on_evict": 5}, {"model": 5}],
)
def test_senseless_options_are_refused(options):
    with pytest.raises(SashError):
        ConversationMemoryManager(**options)


@pytest.mark.parametrize("make", [ConversationMemoryManager, partial(Runtime, MemoryStore())])
def test_an_unknown_option_is_refused(make):
    with pytest.raises(TypeError, match="unexpected keyword argument 'on_evicted'"):
        make(on_evicted=print)


def test_a_dict_is_not_a_config():
    with pytest.raises(SashError, match="from_dict"):
        ConversationMemoryManager.from_config({})


@pytest.mark.parametrize(("query", "limit"), [("", 5), ("  ", 5), (None, 5), ("x", 0), ("x", -1)])
async def test_a_senseless_search_is_refused(query, limit):
    memory = ConversationMemoryManager()
    await talk(memory, "x")
    with pytest.raises(SashError):
        await memory.search("c", query, limit)


@pytest.mark.parametrize("verb", ["search", "digest", "export", "get_transcript", "get_state"])
async def test_an_unknown_conversation_is_reported(verb):
    memory = ConversationMemoryManager()
    arguments = ["x"] if verb == "search" else []
    with pytest.raises(ConversationNotFound) as error:
        await getattr(memory, verb)("nowhere", *arguments)
    assert error.value.conversation_id == "nowhere"
