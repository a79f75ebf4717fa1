"""The store contract. The tags of messages."""

import pytest

from sash.errors import InvalidInput, MessageNotFound, SessionNotFound
from sash.ports.store import Bundle, StoredMessage
from sash.values.ids import new_id
from sash.values.sessions import Session
from tests.contract.sample_values import said
from tests.finding import search


async def test_a_message_gets_other_tags_in_the_transcript_and_in_the_window(
    start, say, clock, now_and_later, store
):
    session = await start()
    [first, _] = await say(session, "the boiler leaks", "and drips")
    [later] = await say(session, "thanks")
    before = await store.get_session("ann", session.id)
    clock.advance(5)
    changed, stored = await store.tag_message("ann", session.id, first.id, frozenset({"pinned", "input"}))
    assert stored.message.tags == {"input", "pinned"} and (stored.position, stored.in_window) == (1, True)
    assert (changed.version, changed.updated_at) == (before.version + 1, clock.now())
    await store.tag_message("ann", session.id, later.id, frozenset({"context:lights"}))
    async for opened in now_and_later():
        assert (await opened.get_session("ann", session.id)).version == before.version + 2
        messages = [m.message for m in await opened.messages("ann", session.id)]
        assert [m.tags - {"input"} for m in messages] == [{"pinned"}, set(), {"context:lights"}]
        assert [m.text for m in messages] == ["the boiler leaks", "and drips", "thanks"]
        assert (await opened.window("ann", session.id)).messages == tuple(messages)
        assert [m.position for m in await search(opened, "ann", "leaks")] == [1]


async def test_messages_are_filtered_by_their_tags(start, say, store):
    session = await start()
    messages = [(await say(session, f"number {n}"))[0] for n in range(6)]
    for n, tag in ((0, "a"), (2, "b"), (3, "c"), (5, "a")):
        await store.tag_message("ann", session.id, messages[n].id, frozenset({tag}))

    async def positions(*tags, **page):
        return [m.position for m in await store.messages("ann", session.id, tags=tags, **page)]

    assert await positions("a") == [1, 6]
    assert await positions("a", "b") == [1, 3, 6]
    assert await positions("a", "b", limit=2) == [1, 3]
    assert await positions("a", "b", after=1, limit=1) == [3]
    assert await positions("input") == [1, 2, 3, 4, 5, 6]
    assert await positions("none") == []


async def test_an_imported_message_gets_other_tags(store, clock, now_and_later):
    session = Session(new_id(), "ann", clock.now(), clock.now())
    stored = [StoredMessage(session.id, n, m, True) for n, m in enumerate(said("one", "two"), 1)]
    await store.import_session(Bundle(session, messages=tuple(stored)))
    await store.tag_message("ann", session.id, stored[1].message.id, frozenset({"important"}))
    async for opened in now_and_later():
        found = await opened.messages("ann", session.id, tags={"important"})
        assert [(m.position, m.message.text) for m in found] == [(2, "two")]


async def test_reserved_tags_stay_and_cannot_be_added(start, say, store):
    session = await start()
    [message] = await say(session, "one")
    with pytest.raises(InvalidInput, match="'output'"):
        await store.tag_message("ann", session.id, message.id, frozenset({"output"}))
    _, stored = await store.tag_message("ann", session.id, message.id, frozenset())
    assert stored.message.tags == {"input"}


async def test_a_message_of_another_session_or_owner_is_unknown(start, say, store):
    session, other = await start(), await start()
    [message] = await say(session, "one")
    with pytest.raises(MessageNotFound):
        await store.tag_message("ann", other.id, message.id, frozenset())
    with pytest.raises(SessionNotFound):
        await store.tag_message("bob", session.id, message.id, frozenset())


async def test_the_windows_of_an_owner_are_added_up(store, start, say, now_and_later):
    session, other = await start(), await start()
    [first, *_] = await say(session, "one", "two", "three")
    await say(session, "four", evicted=(first,))
    [five] = await say(other, "five")
    await store.tag_message("ann", other.id, five.id, frozenset({"mine"}))
    await start("bob")
    async for opened in now_and_later():
        totals = await opened.window_totals("ann")
        assert (totals.windows, totals.message_count, totals.current_tokens) == (2, 4, 20)
        assert (totals.evicted_count, dict(totals.tag_distribution)) == (1, {"input": 4, "mine": 1})
        assert (await opened.window_totals("bob")).windows == 1
        assert (await opened.window_totals("eve")).windows == 0
