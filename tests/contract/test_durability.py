"""The store contract. Durability: restarts, export and import, artifacts, deletion without a trace."""

from dataclasses import replace

import pytest

from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    LeaseLost,
    SessionExists,
    SessionNotFound,
)
from sash.ports.store import Artifact, Bundle
from sash.ports.turns import ClaimRequest
from sash.values.continuations import ArtifactRef
from sash.values.ids import new_id
from sash.values.steps import (
    Plan,
)
from tests.contract.sample_values import PLAN, completed, said, without
from tests.finding import search


async def test_a_late_write_does_not_restore_a_deleted_session(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    await store.delete_session("ann", session.id)
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(SessionNotFound):
        await store.save_session(session)
    with pytest.raises(SessionNotFound):
        await store.get_session("ann", session.id)
    with pytest.raises(ContinuationNotFound):
        await store.get_continuation("ann", turn.continuation.id)
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("ann", artifact.ref.id)
    assert await store.renew("w1", [turn.continuation.id]) == frozenset()


async def test_erasing_an_owner_leaves_no_word(store, start, begin):
    for owner in ("ann", "ann", "bob"):
        turn = (await begin(await start(owner))).turn
        await store.finish(turn.lease, completed(*said("secret words")))
    assert len(await search(store, "ann", "secret")) == 2
    assert await store.erase("ann") == 2
    assert (await store.list_sessions("ann")).items == ()
    assert await search(store, "ann", "secret") == []
    assert len(await search(store, "bob", "secret")) == 1


async def test_an_import_cannot_take_records_of_another_session(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    bob = replace(session, id=new_id(), owner="bob")
    stolen = replace(turn.continuation, session_id=bob.id, owner="bob", status="cancelled")
    copy = replace(artifact, session_id=bob.id, owner="bob", data=b"y")
    for parts in ({"continuations": (stolen,)}, {"artifacts": (copy,)}):
        with pytest.raises(SessionExists):
            await store.import_session(Bundle(bob, **parts))
    assert (await store.list_sessions("bob")).items == ()
    assert await store.get_artifact("ann", artifact.ref.id) == artifact
    await store.finish(turn.lease, completed(*said("mine")))


async def test_no_byte_of_erased_data_is_left_on_the_disk(store, start, begin, tmp_path):
    for owner in ("ann", "bob"):
        session = await start(owner, preferences={"of": f"xylophone-{owner}"})
        turn = (await begin(session, f"xylophone-{owner}")).turn
        await store.append(turn.lease, [Plan(f"xylophone-{owner}")])
        await store.finish(turn.lease, completed(*said(f"xylophone-{owner} plays")))
        ref = ArtifactRef(new_id(), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, owner, f"xylophone-{owner}".encode()))
        assert await search(store, owner, "xylophone")
    await store.erase("ann")
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"xylophone-ann" not in left
    assert len(await search(store, "bob", "xylophone")) == 1


async def test_messages_after_an_erasure_are_found(store, start, begin):
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("secret words", "more secrets")))
    assert len(await search(store, "ann", "secret")) == 2
    await store.erase("ann")
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("new words")))
    assert [m.message.text for m in await search(store, "ann", "words")] == ["new words"]


async def test_an_export_comes_back_whole(store, start, begin):
    session = await start()
    turn = (await begin(session, key="k")).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first, cut=without(first[0], turn_starts=("x",))))
    await store.put_artifact(
        Artifact(ArtifactRef(new_id(), "image/png", 3, "plot"), session.id, "ann", b"png")
    )
    bundle = await store.export_session("ann", session.id)
    with pytest.raises(SessionExists):
        await store.import_session(bundle)
    await store.delete_session("ann", session.id)
    await store.import_session(bundle)
    assert await store.export_session("ann", session.id) == bundle
    assert [m.message.text for m in await search(store, "ann", "one")] == ["one"]
    again = await begin(session, key="k")
    assert not again.created
    turn = (await begin(session)).turn
    [step] = await store.append(turn.lease, [PLAN])
    assert step.cursor == 3
    await store.finish(turn.lease, completed(*said("three")))
    assert [m.position for m in await store.messages("ann", session.id)] == [1, 2, 3]


async def test_all_data_is_there_when_the_store_is_opened_again(store, start, begin, reopen, clock):
    session, other = await start(preferences={"a": 1}), await start("bob")
    turn = (await begin(session, key="k")).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first, cut=without(first[0], digest="- one")))
    waiting = (await begin(session)).turn
    await store.append(waiting.lease, [PLAN], release_as="awaiting_approval")
    pending = await begin(session, enqueue=True)
    await store.put_artifact(Artifact(ArtifactRef(new_id(), "image/png", 3), session.id, "ann", b"png"))
    before = await store.export_session("ann", session.id)
    store = await reopen()
    assert await store.export_session("ann", session.id) == before
    assert await store.get_session("bob", other.id) == other
    assert await store.interrupt_lost() == []
    assert [m.message.text for m in await search(store, "ann", "one")] == ["one"]
    again = await store.claim("ann", waiting.continuation.id, ClaimRequest("w2"), steps=[PLAN])
    assert [s.cursor for s in again.steps] == [3, 4]
    await store.finish(again.lease, completed(*said("three")))
    assert (await store.claim_next(session.id, ClaimRequest("w2"))).continuation.id == pending.continuation.id
    store = await reopen()
    assert [m.position for m in await store.messages("ann", session.id)] == [1, 2, 3]


async def test_artifacts_are_kept_byte_for_byte(store, start):
    session = await start()
    artifact = Artifact(
        ArtifactRef(new_id(), "application/octet-stream", 256, "all"), session.id, "ann", bytes(range(256))
    )
    await store.put_artifact(artifact)
    assert await store.get_artifact("ann", artifact.ref.id) == artifact
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("ann", "nothing")
    with pytest.raises(SessionNotFound):
        await store.put_artifact(replace(artifact, session_id="nowhere"))


@pytest.mark.parametrize("end", ["delete", "erase"])
async def test_no_byte_of_a_deleted_session_is_left_on_the_disk(store, start, record, end, tmp_path):
    words = {"ann": ("quokka", "zephyr", "marimba"), "bob": ("wombat", "cyclone", "piano")}
    sessions = {}
    for owner, (asked, first, amended) in words.items():
        session = sessions[owner] = await start(owner, name=asked)
        recorded, _, _ = await record(session, f"a {asked}?", f"a {first}")
        assert await search(store, owner, first)
        await store.amend(owner, recorded, f"a {amended}", 3)
        ref = ArtifactRef(new_id(), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, owner, asked.encode()))
        assert await search(store, owner, amended)
    if end == "delete":
        await store.delete_session("ann", sessions["ann"].id)
    else:
        await store.erase("ann")
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    # A full-text index writes a word without the letters that it shares with the one before.
    assert not [word for word in words["ann"] if word.encode()[1:] in left]
    assert len(await search(store, "bob", "piano")) == 1
    assert await search(store, "bob", "cyclone") == []
    assert await store.find_session("ann", "quokka") is None
