"""A window without limits does not grow until the memory is full: it is read as a whole with every turn."""

import pytest

from sash import MessageEntry, Runtime
from sash.engine import window_cache
from sash.memory.window import Limits, Window
from sash.testing import ScriptedModel
from sash.values.sessions import DEFAULT_OWNER, WindowLimits

UNLIMITED_WINDOW = WindowLimits(max_tokens=None, max_turns=None)


@pytest.fixture
def max_size(monkeypatch):
    return _limit_size(monkeypatch)


def _limit_size(monkeypatch):
    monkeypatch.setattr(window_cache, "MAX_WINDOW_CHARS", 1000)
    monkeypatch.setattr(window_cache, "MESSAGE_CHARS", 0)
    return 1000


@pytest.mark.parametrize("tags", [(), ("pinned",)], ids=["ordinary", "pinned"])
async def test_a_window_has_a_greatest_size_although_it_has_no_limits(make_store, max_size, tags):
    store = make_store()
    async with Runtime(store, ScriptedModel(*["Done."] * 40)) as runtime:
        session = await runtime.start_session(window=UNLIMITED_WINDOW)
        for number in range(40):
            sent = await runtime.send_message(session.id, f"{number}" + "x" * 90, tags=tags)
            assert (await runtime.await_continuation(sent.id)).status == "completed"
            size = sum(len(m.text) for m in (await store.window(DEFAULT_OWNER, session.id)).messages)
            assert size <= max_size
        said = await runtime.list_messages(session.id, limit=100)
        window = await store.window(DEFAULT_OWNER, session.id)
        assert len(said) == 80
        assert [m.id for m in window.messages] == [s.message.id for s in said][-len(window.messages) :]
        assert window.evicted_count == 80 - len(window.messages)
        assert window.messages[0].role == "user"


async def test_a_turn_that_alone_exceeds_the_size_is_kept(make_store, max_size):
    store = make_store()
    async with Runtime(store, ScriptedModel("Done.", "Done.")) as runtime:
        session = await runtime.start_session(window=UNLIMITED_WINDOW)
        for text in ("Hello.", "x" * 2 * max_size):
            sent = await runtime.send_message(session.id, text)
            assert (await runtime.await_continuation(sent.id)).status == "completed"
        messages = (await store.window(DEFAULT_OWNER, session.id)).messages
        assert [m.text for m in messages] == ["x" * 2 * max_size, "Done."]


async def test_a_copy_up_to_a_turn_has_the_greatest_size_too(make_store, monkeypatch):
    store = make_store()
    async with Runtime(store, ScriptedModel(*["Done."] * 5)) as runtime:
        session = await runtime.start_session(window=UNLIMITED_WINDOW)
        for number in range(5):
            sent = await runtime.send_message(session.id, f"{number}" + "x" * 300)
            await runtime.await_continuation(sent.id)
        _limit_size(monkeypatch)
        copy = await runtime.fork_session(session.id, at=sent.id)
        window = await store.window(DEFAULT_OWNER, copy.id)
        assert [m.text[0] for m in window.messages] == ["4", "D"]
        assert window.evicted_count == 8


async def test_a_window_of_many_short_messages_has_a_greatest_size_too(make_store, monkeypatch):
    """A message takes memory and time, however short it is."""
    monkeypatch.setattr(window_cache, "MAX_WINDOW_CHARS", 10 * window_cache.MESSAGE_CHARS)
    store = make_store()
    async with Runtime(store, ScriptedModel("Done.")) as runtime:
        session = await runtime.start_session(window=UNLIMITED_WINDOW)
        for _ in range(20):
            await runtime.record_turn(session.id, "a", "b")
            assert len((await store.window(DEFAULT_OWNER, session.id)).messages) < 10


def test_the_arguments_of_tool_calls_count():
    function = {"name": "look", "arguments": "x" * 50_000}
    call = {"id": "1", "type": "function", "function": function}
    window = window_cache.CachedWindow(Window(Limits(None, None)), MessageEntry.to_openai)
    message = MessageEntry("assistant", "", tool_calls=(call,))
    window.add(message, message.to_openai())
    assert window.char_count > 50_000


@pytest.mark.parametrize("is_one_turn", [False, True])
async def test_the_window_of_an_import_has_the_greatest_size(make_store, monkeypatch, is_one_turn):
    """One request imports a window that no turn could build. Every read of the session reads it."""
    store = make_store()
    async with Runtime(store, ScriptedModel(*["Done."] * 5)) as runtime:
        session = await runtime.start_session(window=UNLIMITED_WINDOW)
        for number in range(4):
            sent = await runtime.send_message(session.id, f"{number}" + "x" * 300)
            await runtime.await_continuation(sent.id)
        exported = await runtime.export_session(session.id)
        for stored in exported["messages"] if is_one_turn else ():
            stored["message"] |= {"role": "assistant", "tags": []}
        _limit_size(monkeypatch)
        copy = await runtime.import_session(exported | {"signature": ""})
        window = await store.window(DEFAULT_OWNER, copy.id)
        shown = [m.text[0] for m in window.messages]
        assert shown == ([] if is_one_turn else ["3", "D"])
        assert window.evicted_count == 8 - len(shown)
        assert len(await runtime.list_messages(copy.id, limit=10)) == 8
        sent = await runtime.send_message(copy.id, "Go on.")
        assert (await runtime.await_continuation(sent.id)).status == "completed"
