"""The store contract. The transcript from its end: the last messages before a position."""

import pytest

from sash.errors import SessionNotFound
from sash.values.messages import MessageEntry
from tests.contract.sample_values import completed

NEWEST = 2**53


def positions(found):
    return [stored.position for stored in found]


async def test_the_last_messages_before_a_position_come_in_order(store, start, say, now_and_later):
    session = await start()
    await say(session, *"abcdefg")
    async for opened in now_and_later():
        everything = await opened.messages("ann", session.id)
        for before, limit, expected in (
            (NEWEST, 3, [5, 6, 7]),
            (5, 3, [2, 3, 4]),
            (8, 1, [7]),
            (3, 10, [1, 2]),
            (2, 1, [1]),
            (1, 5, []),
        ):
            found = await opened.messages("ann", session.id, before=before, limit=limit)
            assert positions(found) == expected, (before, limit)
            assert found == [everything[position - 1] for position in expected]
        between = await opened.messages("ann", session.id, after=2, before=6, limit=2)
        assert positions(between) == [4, 5]
        assert positions(await opened.messages("ann", session.id, after=4, before=6, limit=9)) == [5]
        with pytest.raises(SessionNotFound):
            await opened.messages("bob", session.id, before=NEWEST)


async def test_older_pages_have_each_message_once_while_new_ones_are_added(store, start, say):
    session = await start()
    await say(session, *map(str, range(10)))
    seen, before = [], NEWEST
    while page := await store.messages("ann", session.id, before=before, limit=3):
        seen = positions(page) + seen
        before = page[0].position
        await say(session, "new")
    assert seen == list(range(1, 11))


async def test_older_messages_can_be_chosen_by_their_tags(store, start, begin, now_and_later):
    session = await start()
    tags = ["a", "b", "a", "c", "b", "a"]
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*(MessageEntry("user", "x", tags={tag}) for tag in tags)))
    async for opened in now_and_later():

        async def found(opened=opened, **options):
            return positions(await opened.messages("ann", session.id, **options))

        assert await found(before=NEWEST, limit=2, tags={"a"}) == [3, 6]
        assert await found(before=6, limit=2, tags={"a", "c"}) == [3, 4]
        assert await found(before=6, limit=9, tags={"b"}) == [2, 5]
        assert await found(before=6, after=2, limit=9, tags={"b"}) == [5]
        assert await found(before=NEWEST, limit=2, tags={"z"}) == []
