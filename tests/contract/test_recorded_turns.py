"""The store contract. Turns that are recorded at once, and amended answers."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
    SessionBusy,
    SessionChanged,
    SessionEnded,
    SessionNotFound,
)
from sash.ports.store import Vector
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from sash.values.stats import Stats
from sash.values.steps import (
    Finished,
)
from tests.contract.sample_values import PLAN, completed, said, without
from tests.finding import search, word


async def answers(store, session):
    return [m.message.text for m in await store.messages("ann", session.id)]


async def test_a_recorded_turn_is_stored_whole(store, start, begin, record, clock, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first))
    clock.advance(5)
    cut = without(first[0], first[1], turn_starts=("x",), digest="- one")
    recorded, messages, written = await record(session, "the boiler?", "It leaks.", cut=cut)
    assert [(s.n, s.cursor, s.ts) for s in written] == [(1, 3, clock.now())]
    async for opened in now_and_later():
        ended, steps = await opened.journal("ann", recorded)
        assert (ended.status, ended.response.final_message) == ("completed", "It leaks.")
        assert (ended.request.metadata, ended.updated_at) == ({"source": "test"}, clock.now())
        assert (ended.stats, steps) == (Stats(turns=1, local_turns=1), written)
        assert [m.message for m in await opened.messages("ann", session.id)] == [*first, *messages]
        assert [m.continuation_id for m in await opened.messages("ann", session.id, after=2)] == [
            recorded
        ] * 2
        window = await opened.window("ann", session.id)
        assert (window.messages, window.evicted_count, window.turn_starts) == (messages, 2, ("x",))
        after = await opened.get_session("ann", session.id)
        assert (after.version, after.stats.local_turns, after.updated_at) == (3, 1, clock.now())
        assert (after.memory.digest, after.memory.cut_at) == ("- one", clock.now())
        assert [e.step.cursor for e in await opened.events("ann", session.id)] == [1, 2, 3]
    assert {m.position for m in await search(opened, "ann", "boiler leaks")} == {3, 4}
    assert [m.position for m in await search(opened, "ann", "leaks")] == [4]


async def test_several_steps_of_a_recorded_turn_are_kept(store, start, record, reopen):
    session = await start()
    steps = (PLAN, Finished("done"))
    recorded, _, _ = await record(session, "q", "a", steps=steps)
    opened = await reopen()
    assert [s.type for s in (await opened.journal("ann", recorded))[1]] == ["plan", "summary"]


async def test_a_turn_is_recorded_once_under_its_key(store, start, begin, record, now_and_later):
    session = await start()
    first, messages, _ = await record(session, "q", "a", key="k")
    await begin(session)
    for question in ("q", "another"):
        again, _, steps = await record(session, question, "b", key="k")
        assert (again, steps) == (first, ())
    async for opened in now_and_later():
        assert [m.message for m in await opened.messages("ann", session.id)] == list(messages)


async def test_a_busy_ended_or_changed_session_refuses_a_recorded_turn(store, start, begin, record):
    session = await start()
    turn = (await begin(session)).turn
    with pytest.raises(SessionBusy) as error:
        await record(session, "q", "a")
    assert error.value.continuation_id == turn.continuation.id
    await store.finish(turn.lease, completed())
    with pytest.raises(SessionNotFound):
        await record(replace(session, id=new_id()), "q", "a")
    request = ContinuationRequest("q")
    new = Continuation(
        new_id(), session.id, "ann", "running", session.created_at, session.created_at, request
    )
    with pytest.raises(SessionChanged):
        await store.record(new, completed(*said("q")), session)
    with pytest.raises(SessionNotFound):
        await store.record(replace(new, owner="bob"), completed(*said("q")), session)
    current = await store.get_session("ann", session.id)
    await store.save_session(replace(current, status="ended"))
    with pytest.raises(SessionEnded):
        await record(session, "q", "a")
    assert await store.messages("ann", session.id) == []
    assert len(await store.list_continuations("ann", session.id)) == 1
    with pytest.raises(ContinuationNotFound):
        await store.get_continuation("ann", new.id)


async def test_an_answer_is_amended_wherever_it_stands(store, start, record, reopen, clock, now_and_later):
    session = await start()
    old, gone, _ = await record(session, "one?", "first answer")
    new, kept, _ = await record(session, "two?", "second answer", cut=without(*gone))
    before = await store.get_session("ann", session.id)
    clock.advance(5)
    amended = await store.amend("ann", new, "another one", 7)
    assert amended.response.final_message == "another one"
    await store.amend("ann", old, "late words", 3)
    async for opened in now_and_later():
        assert await opened.get_continuation("ann", new) == amended
        assert (await opened.get_continuation("ann", old)).response.final_message == "late words"
        assert await answers(opened, session) == ["one?", "late words", "two?", "another one"]
        window = await opened.window("ann", session.id)
        assert window.messages == (kept[0], replace(kept[1], content="another one", token_count=7))
        after = await opened.get_session("ann", session.id)
        assert (after.version, after.updated_at) == (before.version + 2, clock.now())
        assert after.stats == before.stats
        _, steps = await opened.journal("ann", new)
        assert steps[-1].detail == {"status": "completed", "final_message": "another one", "amended": True}
        assert [e.step.cursor for e in await opened.events("ann", session.id)] == [1, 2, 3, 4]
    again = await opened.amend("ann", new, "the third", 2)
    assert again.updated_at == amended.updated_at, "when the turn ended does not change"
    assert (await (await reopen()).get_continuation("ann", new)).response.final_message == "the third"


async def test_an_amendment_makes_a_cached_window_outdated(store, start, begin, record):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    known = await store.get_session("ann", session.id)
    await store.amend("ann", recorded, "b", 1)
    turn = (await begin(session, known=known)).turn
    assert [m.text for m in turn.window.messages] == ["q", "b"]


async def test_an_amendment_keeps_concurrent_changes(store, start, begin, record, now_and_later):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    running = (await begin(session)).turn
    await store.amend("ann", recorded, "b", 1)
    await store.finish(running.lease, completed(*said("more")))
    current = await store.get_session("ann", session.id)
    await store.save_session(replace(current, preferences={"a": 1}))
    await store.amend("ann", recorded, "c", 1)
    async for opened in now_and_later():
        assert await answers(opened, session) == ["q", "c", "more"]
        assert (await opened.get_session("ann", session.id)).preferences == {"a": 1}


@pytest.mark.parametrize("indexed", [False, True])
async def test_search_and_recall_find_the_amended_words_and_not_the_old(
    store, start, record, indexed, now_and_later
):
    session = await start()
    recorded, gone, _ = await record(session, "what leaks?", "the old boiler")
    await record(session, "and then?", "the boiler again", cut=without(*gone))
    await search(store, "ann", "index" if indexed else " ")
    await store.find_words("ann", session.id, [word("index")])
    await store.amend("ann", recorded, "a new radiator", 3)
    async for opened in now_and_later():
        assert [*(await opened.find_words("ann", session.id, [word("boil*")])).found] == []
        assert [*(await opened.find_words("ann", session.id, [word("radi*")])).found] == [2]
        assert [*(await opened.find_words("ann", session.id, [word("leak*")])).found] == [1]
        assert [m.position for m in await search(opened, "ann", "boiler")] == [4]
        assert [m.message.text for m in await search(opened, "ann", "radiator")] == ["a new radiator"]


async def test_only_the_answer_of_a_completed_turn_can_be_amended(store, start, begin):
    session = await start()
    silent = (await begin(session)).turn
    await store.finish(silent.lease, completed(*said("only a question")))
    running = (await begin(session)).turn
    with pytest.raises(InvalidInput, match="running"):
        await store.amend("ann", running.continuation.id, "x", 1)
    await store.cancel("ann", running.continuation.id, "why")
    with pytest.raises(ContinuationFinal, match="cancelled"):
        await store.amend("ann", running.continuation.id, "x", 1)
    with pytest.raises(InvalidInput, match="no answer"):
        await store.amend("ann", silent.continuation.id, "x", 1)
    with pytest.raises(ContinuationNotFound):
        await store.amend("ann", new_id(), "x", 1)
    assert await answers(store, session) == ["only a question"]
    assert (await store.get_session("ann", session.id)).version == 3


async def test_an_amended_answer_is_exported_and_imported(store, start, record, reopen):
    session = await start()
    recorded, _, _ = await record(session, "q", "old words")
    await record(session, "q2", "a2")
    await store.amend("ann", recorded, "new words", 2)
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    await store.import_session(bundle)
    store = await reopen()
    assert await store.export_session("ann", session.id) == bundle
    assert await answers(store, session) == ["q", "new words", "q2", "a2"]
    assert await search(store, "ann", "old") == []
    await store.amend("ann", recorded, "newer words", 2)
    store = await reopen()
    assert await answers(store, session) == ["q", "newer words", "q2", "a2"]


async def test_a_turn_whose_steps_were_swept_can_be_amended(store, start, record, reopen, clock):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    await record(session, "q2", "a2")

    async def sweep(store):
        clock.advance(60)
        return await store.sweep(idle_before=clock.now() - timedelta(days=1), ended_before=clock.now())

    assert (await sweep(store)).steps == 2
    await store.amend("ann", recorded, "b", 1)
    store = await reopen()
    assert await answers(store, session) == ["q", "b", "q2", "a2"]
    assert [s.cursor for s in (await store.journal("ann", recorded))[1]] == [3]
    assert (await sweep(store)).steps == 1
    store = await reopen()
    assert await answers(store, session) == ["q", "b", "q2", "a2"]
    assert (await store.get_continuation("ann", recorded)).response.final_message == "b"
    assert (await store.journal("ann", recorded))[1] == ()


async def test_the_vector_of_an_amended_message_is_dropped(store, start, record, reopen):
    session = await start()
    made = [await record(session, f"q{n}", f"a{n}") for n in range(3)]
    vectors = [Vector(position, "m", b"v") for position in (1, 2, 3, 4)]
    await store.add_vectors("ann", session.id, vectors, keep=9)
    await store.amend("ann", made[2][0], "in the window, without a vector", 1)
    assert await store.vectors("ann", session.id) == vectors
    await store.amend("ann", made[0][0], "other words", 1)
    left = [vectors[0], *vectors[2:]]
    store = await reopen()
    assert await store.vectors("ann", session.id) == left


async def test_the_vector_of_a_whole_turn_is_dropped_when_its_answer_is_amended(store, start, record):
    session = await start()
    made = [await record(session, f"q{n}", f"a{n}") for n in range(2)]
    of_turns = [Vector(position, "m", b"v") for position in (1, 3)]
    await store.add_vectors("ann", session.id, of_turns, keep=9)
    await store.amend("ann", made[1][0], "other words", 1)
    assert await store.vectors("ann", session.id) == of_turns[:1]
