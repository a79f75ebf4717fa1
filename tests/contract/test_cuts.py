"""All stores apply the cut of a window, and the release of a lease, in the same way."""

from dataclasses import replace

import pytest

from sash.errors import SessionBusy, SessionChanged
from sash.ports.turns import Cut, Evicted
from sash.values.stats import Stats
from tests.contract.sample_values import PLAN, completed, said


def evict(*ids, turn_starts=(), digest="digest"):
    return Cut(tuple(Evicted(id, "max_tokens") for id in ids), turn_starts, digest)


@pytest.fixture
def finish(store, begin):
    async def finish(session, *messages, cut=None):
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed(*messages, cut=cut))

    return finish


async def test_a_cut_changes_the_window_and_the_memory(start, finish, now_and_later, clock):
    session, (first, second, third) = await start(), said("one", "two", "three")
    await finish(session, first, second)
    clock.advance(1)
    await finish(session, third, cut=evict(second.id, turn_starts=(third.id,)))
    async for store in now_and_later():
        window = await store.window("ann", session.id)
        assert window.messages == (first, third)
        assert (window.turn_starts, window.evicted_count) == ((third.id,), 1)
        assert await store.evicted("ann", session.id) == (Evicted(second.id, "max_tokens"),)
        memory = (await store.get_session("ann", session.id)).memory
        assert (memory.digest, memory.cut_at) == ("digest", clock.now())
        stored = await store.messages("ann", session.id)
        assert [(m.message, m.in_window) for m in stored] == [(first, True), (second, False), (third, True)]


@pytest.mark.parametrize("gone", ["an evicted one", "an unknown one"])
async def test_a_cut_may_name_a_message_that_is_not_in_the_window(start, finish, now_and_later, gone):
    session, (first, second, third) = await start(), said("one", "two", "three")
    await finish(session, first, cut=None)
    await finish(session, second, cut=evict(first.id))
    other = first.id if gone == "an evicted one" else "unknown"
    await finish(session, third, cut=evict(other, second.id))
    async for store in now_and_later():
        window = await store.window("ann", session.id)
        assert (window.messages, window.evicted_count) == ((third,), 3)


async def test_a_saved_session_may_cut_its_window(store, start, finish, now_and_later, clock):
    session, (first, second) = await start(), said("one", "two")
    await finish(session, first)
    await finish(session, second)
    session = await store.get_session("ann", session.id)
    memory = replace(session.memory, digest="", cut_at=clock.now())
    cut = evict(first.id, second.id, digest="")
    saved = await store.save_session(replace(session, memory=memory, area="hall"), cut=cut)
    async for opened in now_and_later():
        assert await opened.get_session("ann", session.id) == saved
        assert (saved.area, saved.memory, saved.version) == ("hall", memory, session.version + 1)
        window = await opened.window("ann", session.id)
        assert (window.messages, window.turn_starts, window.evicted_count) == ((), (), 2)
        assert await opened.evicted("ann", session.id) == cut.evicted
        stored = await opened.messages("ann", session.id)
        assert [(m.message, m.in_window) for m in stored] == [(first, False), (second, False)]


@pytest.mark.parametrize("refusal", [SessionBusy, SessionChanged])
async def test_a_refused_save_cuts_nothing(store, start, begin, finish, now_and_later, refusal):
    session, [first] = await start(), said("one")
    await finish(session, first)
    current = await store.get_session("ann", session.id)
    turn = (await begin(session)).turn if refusal is SessionBusy else None
    stale = current if turn else replace(current, version=current.version - 1)
    with pytest.raises(refusal):
        await store.save_session(replace(stale, area="hall"), cut=evict(first.id))
    saved = await store.save_session(replace(current, name="busy"))
    assert saved.name == "busy", "without a cut a running turn does not matter"
    async for opened in now_and_later():
        assert (await opened.get_session("ann", session.id)).area is None
        assert (await opened.window("ann", session.id)).messages == (first,)


@pytest.mark.parametrize("status", ["awaiting_approval", "interrupted"])
async def test_a_window_is_not_cut_while_a_turn_waits(store, start, begin, finish, status):
    session, [first] = await start(), said("one")
    await finish(session, first)
    await store.append((await begin(session)).turn.lease, (PLAN,), release_as=status)
    current = await store.get_session("ann", session.id)
    if status == "awaiting_approval":
        with pytest.raises(SessionBusy):
            await store.save_session(current, cut=evict(first.id))
    else:
        await store.save_session(current, cut=evict(first.id))
        assert (await store.window("ann", session.id)).messages == ()


@pytest.mark.parametrize("status", ["awaiting_approval", "interrupted"])
async def test_a_release_changes_the_status_the_time_and_the_stats(
    store, start, begin, now_and_later, clock, status
):
    session = await start()
    begun = await begin(session)
    stats = Stats(model_calls=2)
    clock.advance(1)
    await store.append(begun.turn.lease, (PLAN,), release_as=status, stats=stats)
    expected = replace(begun.continuation, status=status, updated_at=clock.now(), stats=stats)
    async for opened in now_and_later():
        assert await opened.get_continuation("ann", begun.continuation.id) == expected
        assert await opened.get_session("ann", session.id) == session
