"""A huge text does not stop the event loop: the work on it runs in other threads."""

import threading

import pytest

from sash import Runtime
from sash.engine import redaction
from sash.engine.turn import runner
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
            ended = await runtime.await_continuation(sent.id, timeout_s=60)
            assert ended.status == "completed"
        recorded = await runtime.record_turn(session.id, text, text)
        await runtime.amend_turn(recorded.id, f"{text}.")
    assert in_loop == []


@pytest.mark.parametrize("text", [HUGE["web tokens"], HUGE["passwords"]], ids=["web tokens", "passwords"])
@pytest.mark.parametrize("wrap", [str, lambda text: {"page": text}], ids=["text", "JSON"])
async def test_a_huge_result_of_a_tool_is_handled_outside_of_the_event_loop(in_loop, text, wrap):
    async def read(arguments, context):
        return wrap(text)

    tools = [ToolSpec("read", "Read a page.", {"type": "object"}, read, safety="idempotent", direct=True)]
    async with Runtime(MemoryStore(), ScriptedModel(calling("read"), "Done."), tools) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Read the page to me.")
        ended = await runtime.await_continuation(sent.id, timeout_s=60)
        assert ended.status == "completed"
        await runtime.call_tool("read", {})
    assert in_loop == []
