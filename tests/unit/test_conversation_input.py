"""ConversationMemoryManager: input and options that are refused."""

import json
from functools import partial

import pytest

from sash import AgentConfig, ConversationMemoryManager, MemoryStore, Runtime, SashError
from sash.errors import ConversationNotFound
from tests.unit.memory_messages import call, contents, talk


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
