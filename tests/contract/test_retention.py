"""The store contract. Retention: what a sweep deletes, what it keeps, and what a crash leaves."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import ArtifactNotFound, ContinuationNotFound, SessionNotFound
from sash.ports.store import Artifact, SweepCounts
from sash.values.continuations import Action, ArtifactRef
from sash.values.ids import Ulids
from sash.values.stats import Stats
from sash.values.steps import Plan, ToolResult
from tests.backends import DURABLE
from tests.contract.sample_values import completed, said
from tests.finding import search

DAY = timedelta(days=1)


@pytest.fixture
def sweep(store, clock):
    async def sweep(*, store=store, delete_days=None):
        now = clock.now()
        return await store.sweep(
            idle_before=now - 365 * DAY,
            ended_before=now - DAY,
            delete_before=None if delete_days is None else now - delete_days * DAY,
        )

    return sweep


@pytest.fixture
def end(store):
    async def end(session, status="ended"):
        return await store.save_session(replace(await store.get_session("ann", session.id), status=status))

    return end


@pytest.fixture
def keep(store, clock):
    ids = Ulids()

    async def keep(session):
        ref = ArtifactRef(ids.new(clock.now()), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, "ann", b"x"))
        return ref

    return keep


@pytest.mark.parametrize("status", ["ended", "expired"])
async def test_inactive_sessions_are_deleted_after_their_time(
    store, start, begin, clock, sweep, end, keep, status, now_and_later
):
    old, active = await start(), await start()
    turn = (await begin(old)).turn
    artifact = await keep(old)
    spent = completed(*said("gone"), artifacts=(artifact,), stats=Stats(turns=1, cost_usd=0.5))
    await store.finish(turn.lease, spent)
    await end(old, status)
    clock.advance(10 * DAY.total_seconds())
    fresh = await start()
    await end(fresh, status)
    assert (await sweep(delete_days=None)).deleted_sessions == 0
    assert (await sweep(delete_days=11)).deleted_sessions == 0
    assert (await sweep(delete_days=9)).deleted_sessions == 1
    async for again in now_and_later():
        with pytest.raises(SessionNotFound):
            await again.get_session("ann", old.id)
        with pytest.raises(ContinuationNotFound):
            await again.get_continuation("ann", turn.continuation.id)
        with pytest.raises(ArtifactNotFound):
            await again.get_artifact("ann", artifact.id)
        assert await search(again, "ann", "gone") == []
        assert {s.id for s in (await again.list_sessions("ann")).items} == {active.id, fresh.id}
        stats = await again.turn_stats("ann", old.created_at - DAY)
        assert sum(found.cost_usd for _, found in stats) == pytest.approx(0.5)
    assert await sweep(store=again, delete_days=9) == SweepCounts()


async def test_a_session_for_one_question_is_not_listed_and_is_deleted_with_its_steps(
    store, start, begin, clock, sweep
):
    asked, other = await start(is_one_question=True), await start(context={"is_one_question": True})
    assert [s.id for s in (await store.list_sessions("ann")).items] == [other.id, asked.id]
    turn = (await begin(asked)).turn
    await store.finish(turn.lease, completed(*said("42")))
    assert [s.id for s in (await store.list_sessions("ann")).items] == [other.id]
    everything = await store.list_sessions("ann", with_questions=True)
    assert [s.id for s in everything.items] == [other.id, asked.id]
    clock.advance(DAY.total_seconds() / 2)
    assert (await sweep()).deleted_sessions == 0
    assert (await store.journal("ann", turn.continuation.id))[1]
    clock.advance(DAY.total_seconds())
    assert (await sweep()).deleted_sessions == 1
    with pytest.raises(SessionNotFound):
        await store.get_session("ann", asked.id)
    assert (await store.get_session("ann", other.id)).status == "active"


async def test_pages_of_a_list_do_not_count_questions(store, start, end):
    shown = []
    for n in range(7):
        session = await start(is_one_question=n % 2 == 1)
        await end(session)
        if n % 2 == 0:
            shown.insert(0, session.id)
    first = await store.list_sessions("ann", limit=3)
    rest = await store.list_sessions("ann", limit=3, cursor=first.next_cursor)
    assert [s.id for s in (*first.items, *rest.items)] == shown
    assert rest.next_cursor is None


async def test_unused_artifacts_are_deleted(store, start, begin, clock, sweep, keep, now_and_later):
    session = await start()
    unused, of_turn, of_message = [await keep(session) for _ in range(3)]
    turn = (await begin(session)).turn
    text = f"the full result is artifact {of_message.id}"
    await store.finish(turn.lease, completed(*said(text), artifacts=(of_turn,)))
    clock.advance(2 * DAY.total_seconds())
    recent = await keep(session)
    of_step = await keep(session)
    running = (await begin(session)).turn
    await store.append(running.lease, [Plan(f"see {of_step.id}")])
    assert (await sweep()).artifacts == 1
    clock.advance(2 * DAY.total_seconds())
    assert (await sweep()).artifacts == 1
    async for again in now_and_later():
        for gone in (unused, recent):
            with pytest.raises(ArtifactNotFound):
                await again.get_artifact("ann", gone.id)
        for kept in (of_turn, of_message, of_step):
            assert (await again.get_artifact("ann", kept.id)).data == b"x"


async def test_the_actions_of_an_expired_turn_outlive_its_steps(store, start, begin, clock, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    action = Action("call", "call_service", {}, "done", True, before={"light.a": {"state": "off"}})
    await store.append(
        turn.lease, [ToolResult("call", "call_service", "ok", 0.0, action)], release_as="awaiting_approval"
    )
    for _ in range(2):
        clock.advance(2 * DAY.total_seconds())
        await store.sweep(idle_before=clock.now() - 365 * DAY, ended_before=clock.now() - DAY)
    async for again in now_and_later():
        expired, steps = await again.journal("ann", turn.continuation.id)
        assert (expired.status, steps) == ("expired", ())
        assert expired.response.actions == (action,)


async def test_an_owner_deletes_only_his_own_inactive_sessions(store, start, clock, end):
    mine, active = await start(), await start()
    await end(mine)
    other = await start(owner="ben")
    await store.save_session(replace(other, status="ended"))
    clock.advance(60)
    assert await store.list_inactive("ann", clock.now()) == [mine.id]
    assert await store.list_inactive("ann", clock.now() - DAY) == []
    assert await store.delete_inactive("ann", clock.now()) == 1
    assert await store.list_inactive("ann", clock.now()) == []
    assert (await store.get_session("ann", active.id)).status == "active"
    assert (await store.get_session("ben", other.id)).status == "ended"


async def test_many_sessions_are_deleted_in_several_writes(store, start, clock, end, sweep):
    for _ in range(120):
        await end(await start())
    clock.advance(2 * DAY.total_seconds())
    assert (await sweep(delete_days=1)).deleted_sessions == 120
    assert (await store.list_sessions("ann")).items == ()


async def test_a_crash_in_the_middle_of_a_sweep_leaves_no_half_deleted_session(
    backend, store, start, begin, clock, end, sweep, reopen, monkeypatch
):
    if backend not in DURABLE:
        pytest.skip("a crash ends the data of this store")
    sessions = [await start() for _ in range(3)]
    for session in sessions:
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed(*said("gone"), stats=Stats(turns=1, cost_usd=0.5)))
        await end(session)
    clock.advance(3 * DAY.total_seconds())

    def crash(*args, **kwargs):
        raise RuntimeError("the process dies here")

    place = {
        "sqlite": "sash.stores.sqlite.hidden_sessions.delete_hidden",
        "files": "sash.stores.files.deleted_sessions.shutil.rmtree",
    }[backend]
    with monkeypatch.context() as patch:
        patch.setattr(place, crash)
        with pytest.raises(RuntimeError):
            await sweep(delete_days=1)
    again = await reopen()
    await sweep(store=again, delete_days=1)
    for session in sessions:
        with pytest.raises(SessionNotFound):
            await again.get_session("ann", session.id)
    assert await search(again, "ann", "gone") == []
    stats = await again.turn_stats("ann", sessions[0].created_at - DAY)
    assert sum(found.cost_usd for _, found in stats) == pytest.approx(1.5)
