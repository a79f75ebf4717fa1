"""The work of a turn does not grow with the number of earlier turns, counted in SQLite's instructions."""

from sash import Runtime
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.sessions import WindowLimits


async def test_the_four_hundredth_turn_costs_what_the_tenth_cost(tmp_path):
    store = SqliteStore(tmp_path / "sash.db", synchronous="NORMAL")
    count = 0

    def tick():
        nonlocal count
        count += 1

    async with Runtime(store, ScriptedModel(lambda request: "ok")) as runtime:
        session = await runtime.start_session(window=WindowLimits(max_turns=4))
        await store.database.write(lambda db: db.set_progress_handler(tick, 1))

        async def cost_of_turns(turns):
            nonlocal count
            count = 0
            for _ in range(turns):
                sent = await runtime.send_message(session.id, "hi")
                await runtime.await_continuation(sent.id, timeout_s=10)
            return count / turns

        await cost_of_turns(8)
        early = await cost_of_turns(12)
        await cost_of_turns(400)
        late = await cost_of_turns(12)
        assert late <= 1.1 * early
