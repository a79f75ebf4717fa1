"""A huge text does not stop the event loop: the work on it runs in other threads."""

import asyncio
import threading
from contextlib import aclosing

import pytest

from sash import Runtime
from sash.engine import redaction, turn_verbs
from sash.engine.turn import runner
from sash.errors import InvalidInput
from sash.memory import tokens
from sash.ports.tools import ToolSpec
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling

HUGE = {
    "web tokens": "eyJaaaaaaaa-" * 87_000,
    "blanks": " " * 1_000_000 + "x",
    "quotes": '"' * 1_000_000,
    "passwords": "password: hunter22 " * 50_000,
    "sentences": "Turn on the kitchen light, please. " * 29_000,
}


@pytest.fixture
def in_loop(monkeypatch):
    """Return a list of the functions that work on a long text in the thread of the event loop."""
    found, loop_thread = [], threading.get_ident()
    for module, name in (
        (redaction, "_has_hint"),
        (redaction, "_iterate_secrets"),
        (tokens, "_count_tokens"),
        (runner, "_extend_digest"),
    ):
        monkeypatch.setattr(module, name, _watch(getattr(module, name), found, loop_thread))
    return found


def _watch(function, found, loop_thread):
    def watched(*args):
        size = max([len(arg) for arg in args if isinstance(arg, str)], default=0)
        size += sum(len(m.text) for arg in args if isinstance(arg, tuple) for m in arg)
        if threading.get_ident() == loop_thread and size > 20_000:
            found.append(function.__name__)
        return function(*args)

    return watched


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
async def test_a_huge_message_is_handled_outside_of_the_event_loop(make_store, in_loop, text):
    async with Runtime(make_store(), ScriptedModel("Done.")) as runtime:
        session = await runtime.start_session()
        for message in (text, "And now?"):  # The second turn evicts the first.
            sent = await runtime.send_message(session.id, message)
            ended = await runtime.await_continuation(sent.id, timeout_s=300)
            assert ended.status == "completed"
        recorded = await runtime.record_turn(session.id, text, text)
        await runtime.amend_turn(recorded.id, f"{text}.")
    assert in_loop == []


SECRETIVE = HUGE["passwords"]


async def test_huge_attachments_are_redacted_outside_of_the_event_loop(in_loop):
    url = "https://example.com/?" + SECRETIVE[:900_000].replace(" ", "&")
    image = {"type": "image_url", "image_url": {"url": url}}
    async with Runtime(MemoryStore(), ScriptedModel("Done."), allow_image_urls=True) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Look.", attachments=[image])
        await runtime.await_continuation(sent.id, timeout_s=300)
    assert in_loop == []


async def test_the_long_texts_of_one_owner_do_not_delay_another_owner(monkeypatch):
    may_end, redact = threading.Event(), turn_verbs.redact

    def redact_slowly(text):
        if text.startswith("greedy"):
            may_end.wait(60)
        return redact(text)

    monkeypatch.setattr(turn_verbs, "redact", redact_slowly)
    async with Runtime(MemoryStore(), ScriptedModel(lambda request: "Done.")) as runtime:
        greedy = [await runtime.start_session(owner="greedy") for _ in range(40)]
        victim = await runtime.start_session(owner="victim")
        text = "word " * 10_000
        floods = [
            asyncio.create_task(runtime.send_message(session.id, f"greedy {text}", owner="greedy"))
            for session in greedy
        ]
        await asyncio.sleep(0)
        sent = await runtime.send_message(victim.id, text, owner="victim")
        ended = await runtime.await_continuation(sent.id, owner="victim", timeout_s=300)
        assert ended.status == "completed"
        assert not any(flood.done() for flood in floods)
        may_end.set()
        await asyncio.gather(*floods)


async def test_a_huge_image_url_is_refused_before_it_is_redacted(in_loop):
    image = {"type": "image_url", "image_url": {"url": "https://a.example/x.png", "detail": SECRETIVE}}
    async with Runtime(MemoryStore(), ScriptedModel("Done.")) as runtime:
        session = await runtime.start_session()
        with pytest.raises(InvalidInput):
            await runtime.send_message(session.id, "Look.", attachments=[image])
    assert in_loop == []


async def test_a_huge_answer_is_redacted_outside_of_the_event_loop(in_loop):
    model = ScriptedModel(lambda request: "password:hunter22" * 60_000)
    async with Runtime(MemoryStore(), model) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Tell me.")
        async with asyncio.timeout(60), aclosing(runtime.events(session.id)) as events:
            async for event in events:
                if event.type == "final":
                    break
        ended = await runtime.await_continuation(sent.id, timeout_s=300)
        assert ended.status == "completed"
    # The model of this test reports no tokens, so the budget counts them.
    assert set(in_loop) <= {"_count_tokens"}


async def test_huge_arguments_of_a_tool_call_are_redacted_outside_of_the_event_loop(in_loop):
    async def note(arguments, context):
        return "noted"

    tools = [ToolSpec("note", "Note.", {"type": "object"}, note, safety="idempotent")]
    call = calling("note", text=SECRETIVE)
    async with Runtime(MemoryStore(), ScriptedModel(call, "Done."), tools) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Note that.")
        assert (await runtime.await_continuation(sent.id, timeout_s=300)).status == "completed"
    assert set(in_loop) <= {"_count_tokens"}


@pytest.mark.parametrize("text", [HUGE["web tokens"], HUGE["passwords"]], ids=["web tokens", "passwords"])
@pytest.mark.parametrize("wrap", [str, lambda text: {"page": text}], ids=["text", "JSON"])
async def test_a_huge_result_of_a_tool_is_handled_outside_of_the_event_loop(in_loop, text, wrap):
    async def read(arguments, context):
        return wrap(text)

    tools = [ToolSpec("read", "Read a page.", {"type": "object"}, read, safety="idempotent", direct=True)]
    async with Runtime(MemoryStore(), ScriptedModel(calling("read"), "Done."), tools) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Read the page to me.")
        ended = await runtime.await_continuation(sent.id, timeout_s=300)
        assert ended.status == "completed"
        await runtime.call_tool("read", {})
    assert in_loop == []
