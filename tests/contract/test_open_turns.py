"""The store contract. Several open turns of one session: the claim says how many."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import SessionBusy, SessionChanged
from sash.ports.turns import ClaimRequest, Cut, Evicted
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from tests.contract.sample_values import PLAN, completed, said

TWO = ClaimRequest("w", max_open=2)


@pytest.fixture
def begin_two(store, clock):
    """Return a function that begins a turn in a session in which two turns may be open."""

    async def begin_two(session, **options):
        now, request = clock.now(), ContinuationRequest("hi")
        new = Continuation(new_id(), session.id, session.owner, "pending", now, now, request)
        return await store.begin(new, TWO, **options)

    return begin_two


async def test_a_claim_says_how_many_turns_hold_a_session(store, start, begin_two):
    session = await start()
    first, second = [await begin_two(session) for _ in range(2)]
    assert first.turn and second.turn
    with pytest.raises(SessionBusy) as busy:
        await begin_two(session)
    assert busy.value.continuation_id == first.continuation.id
    queued = await begin_two(session, enqueue=True)
    assert queued.turn is None and await store.claim_next(session.id, TWO) is None
    assert await store.waiting(2) == [] and len(await store.waiting(3)) == 1
    assert (await store.finish(second.turn.lease, completed())).next_waits
    claimed = await store.claim_next(session.id, TWO)
    assert claimed.continuation.id == queued.continuation.id
    with pytest.raises(SessionBusy):
        await store.claim("ann", first.continuation.id, replace(TWO, max_open=9))


async def test_only_as_many_of_many_concurrent_turns_are_accepted(store, start, begin_two):
    session = await start()
    results = await asyncio.gather(*(begin_two(session) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(result, SessionBusy) for result in results) == 2


async def test_turns_are_kept_in_the_order_of_their_ends(store, start, begin_two, reopen):
    session = await start()
    first, second = [(await begin_two(session)).turn for _ in range(2)]
    for turn in (first, second, first):
        await store.append(turn.lease, [PLAN])
    one, two = said("one", "1"), said("two", "2")
    await store.finish(second.lease, completed(*two))
    await store.finish(first.lease, completed(*one))
    store = await reopen()
    assert [item.message for item in await store.messages("ann", session.id)] == [*two, *one]
    assert (await store.window("ann", session.id)).messages == (*two, *one)
    assert [item.step.cursor for item in await store.events("ann", session.id)] == [1, 2, 3, 4, 5]


async def test_an_end_that_was_computed_from_an_older_session_is_refused(store, start, begin_two):
    session = await start()
    first, second = [(await begin_two(session)).turn for _ in range(2)]
    await store.finish(second.lease, completed(*said("two", "2")), based_on=session)
    end = completed(*said("one", "1"))
    with pytest.raises(SessionChanged):
        await store.finish(first.lease, end, based_on=session)
    assert len(await store.messages("ann", session.id)) == 2
    current = await store.get_session("ann", session.id)
    gone = tuple(Evicted(item.message.id, "max_turns") for item in await store.messages("ann", session.id))
    cut = Cut(gone, (end.messages[0].id,), "digest")
    await store.finish(first.lease, replace(end, cut=cut), based_on=current)
    assert (await store.window("ann", session.id)).messages == end.messages
