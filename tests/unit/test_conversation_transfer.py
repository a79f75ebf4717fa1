"""ConversationMemoryManager: export, import and fork."""

import asyncio
import json

import pytest

from sash import ConversationMemoryManager, SashError
from sash.errors import ConversationExists, ConversationNotFound, InvalidExport
from sash.memory.tokens import count_text
from sash.testing import FakeClock
from tests.unit.memory_messages import call, contents, talk


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
