"""The store contract. Sessions: versions, names, owners, lists."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    SessionChanged,
    SessionEnded,
    SessionExists,
    SessionNotFound,
)
from sash.ports.store import Artifact
from sash.ports.turns import ClaimRequest
from sash.values.continuations import ArtifactRef
from sash.values.ids import new_id
from sash.values.sessions import Pin, SessionMemory
from tests.contract.sample_values import completed, said, without


async def test_a_session_is_stored_unchanged(store, start):
    session = await start(preferences={"language": "de", "deep": [1, {"a": None}]})
    assert await store.get_session("ann", session.id) == session
    with pytest.raises(SessionExists):
        await store.create_session(session)


async def test_a_change_needs_the_version_that_was_read(store, start, clock):
    session = await start()
    clock.advance(5)
    saved = await store.save_session(replace(session, preferences={"a": 1}))
    assert (saved.version, saved.updated_at) == (2, clock.now())
    assert await store.get_session("ann", session.id) == saved
    with pytest.raises(SessionChanged):
        await store.save_session(replace(session, preferences={"b": 2}))
    assert (await store.get_session("ann", session.id)).preferences == {"a": 1}


async def test_sessions_are_listed_newest_first_page_by_page(store, start):
    made = [await start() for _ in range(5)]
    await start("bob")
    first = await store.list_sessions("ann", limit=2)
    second = await store.list_sessions("ann", limit=2, cursor=first.next_cursor)
    third = await store.list_sessions("ann", limit=2, cursor=second.next_cursor)
    listed = [*first.items, *second.items, *third.items]
    assert listed == made[::-1]
    assert third.next_cursor is None
    await store.save_session(replace(made[0], status="ended"))
    assert [s.id for s in (await store.list_sessions("ann", status="ended")).items] == [made[0].id]


async def test_a_change_during_a_turn_is_kept(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    pins = (Pin("p", "always", clock.now()),)
    await store.save_session(replace(session, memory=SessionMemory(pins=pins)))
    await store.finish(turn.lease, completed(*said("one"), cut=without(digest="- gone")))
    after = await store.get_session("ann", session.id)
    assert after.memory == SessionMemory(digest="- gone", pins=pins, cut_at=clock.now())
    assert after.version == 3


async def test_no_call_returns_data_of_another_owner(store, start, begin):
    session = await start("ann")
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    for attempt in (
        store.get_session("bob", session.id),
        store.delete_session("bob", session.id),
        store.save_session(replace(session, owner="bob")),
        store.events("bob", session.id),
        store.window("bob", session.id),
        store.messages("bob", session.id),
        store.list_continuations("bob", session.id),
        store.window_turns("bob", session.id),
        store.export_session("bob", session.id),
        store.put_artifact(replace(artifact, owner="bob")),
        begin(replace(session, owner="bob")),
    ):
        with pytest.raises(SessionNotFound):
            await attempt
    for attempt in (
        store.get_continuation("bob", turn.continuation.id),
        store.journal("bob", turn.continuation.id),
        store.cancel("bob", turn.continuation.id, "mine"),
        store.claim("bob", turn.continuation.id, ClaimRequest("w")),
        store.amend("bob", turn.continuation.id, "mine", 1),
    ):
        with pytest.raises(ContinuationNotFound):
            await attempt
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("bob", artifact.ref.id)
    assert (await store.list_sessions("bob")).items == ()
    assert await store.erase("bob") == 0
    assert await store.get_artifact("ann", artifact.ref.id) == artifact


async def test_an_owner_has_one_active_session_of_a_name(store, start, reopen):
    first = await start(name="default")
    assert await store.find_session("ann", "default") == first
    with pytest.raises(SessionExists):
        await start(name="default")
    other = await start("bob", name="default")
    assert (await start(name="another")).name == "another"
    store = await reopen()
    assert await store.find_session("ann", "default") == first
    assert await store.find_session("bob", "default") == other
    assert await store.find_session("ann", "nothing") is None
    with pytest.raises(SessionExists):
        await store.create_session(replace(first, id=new_id()))
    assert len((await store.list_sessions("ann")).items) == 2


async def test_a_name_finds_the_active_session_or_the_newest(store, start, reopen):
    first = await start(name="default")
    ended = await store.save_session(replace(first, status="ended"))
    assert await store.find_session("ann", "default") == ended
    second = await start(name="default")
    assert await store.find_session("ann", "default") == second
    with pytest.raises(SessionExists):
        await store.save_session(replace(ended, status="active"))
    assert (await store.get_session("ann", first.id)).status == "ended"
    over = await store.save_session(replace(second, status="ended"))
    assert await store.find_session("ann", "default") == over
    again = await store.save_session(replace(ended, status="active"))
    store = await reopen()
    assert await store.find_session("ann", "default") == again
    await store.delete_session("ann", first.id)
    assert await store.find_session("ann", "default") == over
    await store.delete_session("ann", second.id)
    assert await store.find_session("ann", "default") is None


async def test_a_session_can_be_named_and_renamed(store, start, reopen):
    session, other = await start(), await start(name="taken")
    named = await store.save_session(replace(session, name="mine"))
    assert await store.find_session("ann", "mine") == named
    renamed = await store.save_session(replace(named, name="yours"))
    with pytest.raises(SessionExists):
        await store.save_session(replace(renamed, name="taken"))
    assert await store.find_session("ann", "mine") is None
    store = await reopen()
    assert await store.find_session("ann", "mine") is None
    assert await store.find_session("ann", "yours") == renamed
    assert await store.find_session("ann", "taken") == other


async def test_only_one_of_many_concurrent_calls_gets_a_name(store, start):
    results = await asyncio.gather(*(start(name="default") for _ in range(20)), return_exceptions=True)
    [begun] = [r for r in results if not isinstance(r, SessionExists)]
    assert await store.find_session("ann", "default") == begun
    assert (await store.list_sessions("ann")).items == (begun,)


async def test_active_sessions_are_counted(store, start):
    first = await start()
    await start()
    await start(owner="other")
    assert [await store.count_active(owner) for owner in (first.owner, "other", "nobody")] == [2, 1, 0]
    await store.save_session(replace(first, status="ended"))
    assert await store.count_active(first.owner) == 1


async def test_sessions_are_listed_by_name(store, start):
    old = await start(name="default")
    old = await store.save_session(replace(old, status="ended"))
    new = await start(name="default")
    await start(name="other")
    await start("bob", name="default")
    assert (await store.list_sessions("ann", name="default")).items == (new, old)
    assert (await store.list_sessions("ann", name="default", status="ended")).items == (old,)


async def test_an_import_loses_a_name_that_is_taken(store, start):
    session = await start(name="default")
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    assert (await store.import_session(bundle)).name == "default"
    assert await store.find_session("ann", "default") == bundle.session
    copy = replace(bundle, session=replace(bundle.session, id=new_id()))
    imported = await store.import_session(copy)
    assert imported.name is None
    assert await store.get_session("ann", imported.id) == imported
    assert await store.find_session("ann", "default") == bundle.session
    over = replace(bundle, session=replace(bundle.session, id=new_id(), status="ended"))
    assert (await store.import_session(over)).name == "default"


async def test_an_invalid_id_is_not_found(store):
    for odd in ("x" * 1000, "..", "a/b", "\0", "é" * 300):
        with pytest.raises(SessionNotFound):
            await store.get_session("ann", odd)
        with pytest.raises(ArtifactNotFound):
            await store.get_artifact("ann", odd)


async def test_an_ended_session_refuses_a_turn(store, start, begin):
    session = await start()
    await store.save_session(replace(session, status="ended"))
    with pytest.raises(SessionEnded):
        await begin(session)


@pytest.mark.parametrize("how", ["finish", "cancel"])
async def test_a_session_for_one_question_ends_with_it_in_one_commit(store, start, begin, how, now_and_later):
    asked = await start(is_one_question=True)
    other = await start(context={"is_one_question": True})
    for session in (asked, other):
        turn = (await begin(session)).turn
        if how == "finish":
            await store.finish(turn.lease, completed(*said("q")))
        else:
            await store.cancel("ann", turn.continuation.id, "enough")
    async for opened in now_and_later():
        over = await opened.get_session("ann", asked.id)
        assert (over.status, over.version) == ("ended", 2)
        assert (await opened.get_session("ann", other.id)).status == "active"
        assert await opened.count_active("ann") == 1


async def test_a_saved_session_keeps_the_time_of_its_cut(store, start, say, clock):
    session = await start()
    messages = await say(session, "one")
    clock.advance(60)
    cut_at = clock.now()
    await say(session, "two", evicted=messages)
    clock.advance(60)
    saved = await store.get_session("ann", session.id)
    await store.save_session(replace(saved, preferences={"a": 1}))
    assert (await store.get_session("ann", session.id)).memory.cut_at == cut_at


async def test_the_last_id_is_known(store, start, begin, reopen):
    assert await store.last_id() is None
    session = await start()
    assert await store.last_id() == session.id
    begun = await begin(session)
    store = await reopen()
    assert await store.last_id() == begun.continuation.id
