"""The store contract. The beginning of the first user message of several sessions, for their titles."""

from sash.ports.store import FIRST_MESSAGES
from sash.values.messages import MessageEntry
from tests.contract.sample_values import completed


async def test_each_session_has_the_beginning_of_its_first_user_message(store, start, say, now_and_later):
    asked, empty, answered = await start(), await start(), await start()
    await say(asked, "a system", role="system")
    await say(asked, "Turn on the light", "another one")
    await say(asked, "later")
    await say(answered, "only an answer", role="assistant")
    mine = [asked.id, empty.id, answered.id, "unknown"]
    async for opened in now_and_later():
        assert await opened.first_texts("ann", mine, max_chars=200) == {asked.id: "Turn on the light"}
        assert await opened.first_texts("ann", mine, max_chars=7) == {asked.id: "Turn on"}
        assert await opened.first_texts("ann", [empty.id], max_chars=7) == {}
        assert await opened.first_texts("ann", [], max_chars=7) == {}


async def test_the_texts_of_other_owners_are_left_out(store, start, say, now_and_later):
    mine, foreign = await start(), await start("bob")
    await say(mine, "mine")
    await say(foreign, "the secret of bob")
    async for opened in now_and_later():
        assert await opened.first_texts("ann", [mine.id, foreign.id], max_chars=200) == {mine.id: "mine"}
        assert await opened.first_texts("carl", [mine.id, foreign.id], max_chars=200) == {}


async def test_images_are_no_text_of_a_title(store, start, begin, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xxxx"}}
    message = MessageEntry("user", [picture, {"type": "text", "text": "What is this?"}])
    await store.finish(turn.lease, completed(message))
    async for opened in now_and_later():
        assert await opened.first_texts("ann", [session.id], max_chars=200) == {session.id: "What is this?"}


async def test_only_the_first_messages_of_a_session_are_searched(store, start, say):
    near, far = await start(), await start()
    for session, count in ((near, FIRST_MESSAGES - 1), (far, FIRST_MESSAGES)):
        await say(session, *map(str, range(count)), role="assistant")
        await say(session, "a question")
    assert await store.first_texts("ann", [near.id, far.id], max_chars=99) == {near.id: "a question"}


async def test_an_evicted_message_still_gives_the_title(store, start, say):
    session = await start()
    first = await say(session, "the first one")
    await say(session, "the second one", evicted=first)
    assert await store.first_texts("ann", [session.id], max_chars=99) == {session.id: "the first one"}


async def test_a_deleted_session_gives_no_title(store, start, say):
    session = await start()
    await say(session, "gone")
    await store.delete_session("ann", session.id)
    assert await store.first_texts("ann", [session.id], max_chars=99) == {}
