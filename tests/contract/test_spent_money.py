"""Spent money stays counted when its turns are deleted, erased, exported and imported."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import LeaseLost, SessionNotFound
from sash.stores import disk
from sash.stores.files.store import FilesStore
from sash.values.stats import Bill, Stats
from sash.values.steps import Plan, ToolResult
from tests.contract.sample_values import completed

BILLED = Plan("", (), Bill("dear", 10, 0, 1, 0, 10, False, 0.25))


@pytest.fixture
def pay(store, begin):
    async def pay(session, usd):
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed(stats=Stats(turns=1, cost_usd=usd)))

    return pay


async def add_up(store, owner, since):
    return sum(stats.cost_usd for _, stats in await store.turn_stats(owner, since))


async def test_a_deleted_session_leaves_its_cost(store, start, pay, clock, now_and_later):
    began_at = clock.now()
    first, second, other = await start(), await start(), await start("bob")
    for session, usd in ((first, 0.5), (second, 1.0), (other, 2.0)):
        await pay(session, usd)
    clock.advance(3600)
    await pay(first, 4.0)
    await store.delete_session("ann", first.id)
    async for again in now_and_later():
        assert await add_up(again, "ann", began_at) == pytest.approx(5.5)
        assert await add_up(again, "ann", clock.now() - timedelta(minutes=30)) == pytest.approx(4.0)
        assert await add_up(again, "bob", began_at) == pytest.approx(2.0)


async def test_an_erased_owner_leaves_only_a_number(store, start, pay, clock, now_and_later):
    for usd in (0.5, 1.0):
        session = await start()
        await pay(session, usd)
    await pay(await start("bob"), 2.0)
    before = clock.now() - timedelta(hours=1)
    assert await store.erase("ann") == 2
    async for again in now_and_later():
        [(_, stats)] = await again.turn_stats("ann", before)
        assert stats == Stats(cost_usd=1.5)
        assert await again.erase("ann") == 0
        assert await add_up(again, "ann", before) == pytest.approx(1.5)
        assert await add_up(again, "bob", before) == pytest.approx(2.0)
        assert (await again.list_sessions("ann")).items == ()


async def test_money_can_be_spent_without_a_turn(store, clock, now_and_later):
    await store.spend("ann", 0.25)
    await store.spend("ann", 0.5)
    async for again in now_and_later():
        assert await add_up(again, "ann", clock.now() - timedelta(hours=1)) == pytest.approx(0.75)
        assert await add_up(again, "bob", clock.now() - timedelta(hours=1)) == 0


async def test_the_money_of_all_owners_adds_up_and_stays_counted(store, start, pay, clock, now_and_later):
    began_at, first, second = clock.now(), await start(), await start("bob")
    await pay(first, 0.5)
    await pay(second, 1.0)
    await store.spend("carl", 0.25)
    clock.advance(3600)
    await pay(await start("bob"), 4.0)
    await store.delete_session("bob", second.id)
    await store.erase("ann")
    async for again in now_and_later():
        assert await add_up(again, None, began_at) == pytest.approx(5.75)
        assert await add_up(again, None, clock.now() - timedelta(minutes=30)) == pytest.approx(4.0)
        ends = [ended_at for ended_at, stats in await again.turn_stats(None, began_at) if stats.turns]
        assert ends == [clock.now()]


async def test_a_running_turn_that_is_deleted_leaves_the_cost_of_its_steps(
    store, start, begin, clock, now_and_later
):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [BILLED, ToolResult("c1", "look", "seen", cost_usd=0.5)])
    await store.delete_session("ann", session.id)
    with pytest.raises(LeaseLost):
        await store.finish(turn.lease, completed(stats=Stats(cost_usd=9.0)))
    async for again in now_and_later():
        assert await add_up(again, "ann", clock.now() - timedelta(hours=1)) == pytest.approx(0.75)


async def test_a_turn_whose_process_died_costs_what_its_steps_cost(store, start, begin, clock, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [BILLED])
    clock.advance(3600)
    await store.interrupt_lost()
    async for again in now_and_later():
        assert await add_up(again, "ann", session.created_at) == pytest.approx(0.25)


@pytest.mark.parametrize("forged_usd", [None, 0.0, 1e6])
async def test_an_import_spends_nothing_and_repays_nothing(
    store, start, begin, pay, clock, now_and_later, forged_usd
):
    session = await start()
    await pay(session, 1.0)
    waiting = (await begin(session)).turn
    spent = Stats(turns=1, cost_usd=0.25)
    await store.append(waiting.lease, [BILLED], release_as="awaiting_approval", stats=spent)
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    if forged_usd is not None:
        forged = replace(bundle.continuations[0], stats=Stats(cost_usd=forged_usd))
        bundle = replace(bundle, continuations=(forged, *bundle.continuations[1:]))
    await store.import_session(bundle)
    async for again in now_and_later():
        assert await add_up(again, "ann", session.created_at) == pytest.approx(1.25)
        [_, step_costs] = [
            [s.body.bill.cost_usd for s in steps if isinstance(s.body, Plan)]
            for _, steps in [await again.journal("ann", c.id) for c in bundle.continuations]
        ]
        assert step_costs == [0.0]
    await again.delete_session("ann", session.id)
    assert await add_up(again, "ann", session.created_at) == pytest.approx(1.25)


async def test_a_sweep_drops_old_costs_of_deleted_turns(store, start, pay, clock, now_and_later):
    session = await start()
    await pay(session, 1.0)
    await store.delete_session("ann", session.id)
    clock.advance(24 * 3600)
    await store.spend("ann", 0.5)
    day_ago = clock.now() - timedelta(hours=20)
    await store.sweep(idle_before=day_ago, ended_before=day_ago)
    async for again in now_and_later():
        assert await add_up(again, "ann", session.created_at - timedelta(days=1)) == pytest.approx(0.5)


async def test_a_deletion_that_is_refused_spends_nothing(store, start, pay, clock):
    session = await start()
    await pay(session, 1.0)
    with pytest.raises(SessionNotFound):
        await store.delete_session("bob", session.id)
    since = clock.now() - timedelta(hours=1)
    assert (await add_up(store, "ann", since), await add_up(store, "bob", since)) == (1.0, 0)


@pytest.mark.parametrize("backend", ["files"])
@pytest.mark.parametrize("crashes_at", ["before the money is written", "before the folder is removed"])
async def test_a_crash_during_a_deletion_counts_the_money_once(
    store, start, pay, clock, tmp_path, monkeypatch, crashes_at
):
    class CrashError(BaseException):
        pass

    def crash(*_, **__):
        raise CrashError

    session, other = await start(), await start()
    await pay(session, 1.0)
    await pay(other, 0.5)
    with monkeypatch.context() as patched:
        if crashes_at == "before the money is written":
            patched.setattr(disk, "replace", crash)
        else:
            patched.setattr("shutil.rmtree", crash)
        with pytest.raises(CrashError):
            await store.delete_session("ann", session.id)
    await store.close()
    for _ in range(2):
        again = FilesStore(tmp_path / "data", clock=clock)
        await again.open()
        assert await add_up(again, "ann", session.created_at) == pytest.approx(1.5)
        assert [s.id for s in (await again.list_sessions("ann")).items] == [other.id]
        assert not list((tmp_path / "data" / "sessions").glob(".*"))
        await again.close()
