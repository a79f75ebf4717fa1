"""A turn, a runtime or a store that is cancelled at any await leaves no running turn, no task and no lock."""

import asyncio
from contextlib import suppress

import pytest

from sash.errors import ContinuationFinal, SessionBusy, SessionNotFound, ShuttingDown, StoreUnavailable
from sash.stores.lock import FileLock
from sash.testing import FakeClock
from tests.attacks.cancelled_world import (
    check_world,
    converse,
    opened,
    pass_loop,
    run_at_every_suspension,
    watching_turns,
)
from tests.backends import BACKENDS, DURABLE
from tests.cancelling import CancelPoint


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_turn_can_be_cancelled_at_any_of_its_awaits(kind, is_late, tmp_path):
    async with opened(kind, tmp_path) as make_world:

        async def run(n):
            world, tasks, cancels = await make_world(), asyncio.all_tasks(), []

            async def cancel():
                for turn in await world.runtime.open_continuations(world.session.id):
                    if turn.status == "running":
                        with suppress(ContinuationFinal):
                            await world.runtime.cancel(turn.id)

            point = CancelPoint(
                n + 1, is_late=is_late, act=lambda: cancels.append(asyncio.create_task(cancel()))
            )
            with watching_turns(point):
                await converse(world)
            await asyncio.gather(*cancels)
            await check_world(world, tasks)
            turns = await world.store.list_continuations("local", world.session.id)
            assert sum(turn.status == "cancelled" for turn in turns) <= 1
            return point.is_reached

        await run_at_every_suspension(run)


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_turn_whose_task_dies_at_any_of_its_awaits_is_recovered(kind, is_late, tmp_path):
    async with opened(kind, tmp_path) as make_world:

        async def run(n):
            world, tasks, point = await make_world(), asyncio.all_tasks(), CancelPoint(n + 1, is_late=is_late)
            with watching_turns(point):
                talking = asyncio.create_task(converse(world))
                while not (point.is_reached or talking.done()):
                    await asyncio.sleep(0)
                for _ in range(2):  # A turn that dies at its end may leave the queue to the next recovery.
                    await world.runtime.wait_for_turns()
                    world.clock.advance(60)
                    await world.runtime.recover()
                    for turn in await world.runtime.open_continuations(world.session.id):
                        if turn.status == "interrupted":
                            await world.runtime.wait_for_turns()  # The queued turn may run.
                            await world.runtime.resume(turn.id)
                with suppress(StoreUnavailable):  # The turn had not begun.
                    await talking
            await check_world(world, tasks)
            turns = await world.store.list_continuations("local", world.session.id)
            assert {turn.status for turn in turns} <= {"completed", "cancelled"}
            return point.is_reached

        await run_at_every_suspension(run)


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("kind", BACKENDS)
async def test_close_at_any_await_of_a_turn_leaves_no_running_turn(kind, is_late, tmp_path):
    async def run(n):
        folder, closes = tmp_path / str(n), []
        folder.mkdir()
        async with opened(kind, folder) as make_world:
            world = await make_world()
            point = CancelPoint(
                n + 1,
                is_late=is_late,
                act=lambda: closes.append(asyncio.create_task(world.runtime.close())),
            )
            with watching_turns(point), suppress(ShuttingDown, StoreUnavailable):
                await converse(world)
            await asyncio.gather(*closes)
            await world.runtime.close()
            await world.store.open()
            turns = await world.store.list_continuations("local", world.session.id)
            assert all(turn.status != "running" for turn in turns)
            await world.store.close()
            await world.runtime.open()
            for turn in await world.runtime.open_continuations(world.session.id):
                if turn.status == "interrupted":
                    await world.runtime.wait_for_turns()  # The queued turn may run.
                    with suppress(SessionBusy):
                        await world.runtime.resume(turn.id)
            await check_world(world, asyncio.all_tasks())
        return point.is_reached

    await run_at_every_suspension(run)


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("verb", ["delete_session", "erase", "close", "drain"])
@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_cancelled_stop_leaves_no_turn_and_no_lock(kind, verb, is_late, tmp_path):
    async def run(n):
        folder, point = tmp_path / str(n), CancelPoint(n, is_late=is_late)
        folder.mkdir()
        before = asyncio.all_tasks()
        async with opened(kind, folder) as make_world:
            world = await make_world()
            await world.hang()
            arguments = [world.session.id] if verb == "delete_session" else []
            await point.run(getattr(world.runtime, verb)(*arguments))
            with suppress(SessionNotFound):
                await getattr(world.runtime, verb)(*arguments)
            await world.runtime.wait_for_turns()
            assert world.runtime.running_turns == 0
            await world.runtime.close()
            other = BACKENDS[kind](folder, FakeClock())
            await other.open()
            for turn in await other.waiting():
                assert turn.status == "interrupted"
            await other.close()
        await pass_loop()
        assert asyncio.all_tasks() <= before, "a task is left"
        return point.is_reached

    await run_at_every_suspension(run)


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("verb", ["open", "close"])
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_store_that_is_cancelled_while_it_opens_or_closes_keeps_no_lock(
    kind, verb, is_late, tmp_path
):
    async def run(n):
        store, point = BACKENDS[kind](tmp_path, FakeClock()), CancelPoint(n, is_late=is_late)
        if verb == "close":
            await store.open()
        await point.run(getattr(store, verb)())
        await store.close()
        lock = FileLock(tmp_path / "sash.db.lock")
        assert lock.acquire(), "the store keeps its lock"
        lock.release()
        other = BACKENDS[kind](tmp_path, FakeClock())
        await other.open()
        await other.close()
        return point.is_reached

    await run_at_every_suspension(run)
