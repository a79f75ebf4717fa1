"""A window without limits does not grow until the memory is full: it is read as a whole with every turn."""

import pytest

from sash import Runtime
from sash.engine import window_cache
from sash.testing import ScriptedModel
from sash.values.sessions import DEFAULT_OWNER, WindowLimits

UNLIMITED_WINDOW = WindowLimits(max_tokens=None, max_turns=None)


@pytest.fixture
def max_size(monkeypatch):
    monkeypatch.setattr(window_cache, "MAX_WINDOW_CHARS", 1000)
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
        monkeypatch.setattr(window_cache, "MAX_WINDOW_CHARS", 1000)
        copy = await runtime.fork_session(session.id, at=sent.id)
        window = await store.window(DEFAULT_OWNER, copy.id)
        assert [m.text[0] for m in window.messages] == ["4", "D"]
        assert window.evicted_count == 8
