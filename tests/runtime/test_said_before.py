"""Questions about the conversation without a model and without a home, on each store."""

from datetime import timedelta

from sash.models.offline import OfflineModel
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer

CELLO = "I bought a cello for Mira for 1450 euros"


async def test_a_fork_knows_what_was_said_before(run, clock):
    runtime = await run(model=OfflineModel())
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "Hello from the garden", CELLO)
    clock.advance(timedelta(days=1).total_seconds())
    fork = await runtime.fork_session(session.id)
    assert await answer(runtime, fork, "What did I say about the cello?") == (
        f"You said yesterday at 0:00: “{CELLO}”."
    )
    assert CELLO in await answer(runtime, fork, "What did we talk about yesterday?")
    assert "garden" in await answer(runtime, fork, "What was the first thing I said?")
    assert "talked about yesterday" not in await answer(runtime, fork, "What did we talk about yesterday?")


async def test_what_a_fresh_start_has_hidden_is_not_quoted(run, clock):
    runtime = await run(model=OfflineModel())
    session = await runtime.start_session()
    await answer(runtime, session, CELLO)
    clock.advance(60)
    await answer(runtime, session, "let's start over")
    clock.advance(60)
    assert "cello for" not in await answer(runtime, session, "What did I say about the cello?")
    assert "cello for" not in await answer(runtime, session, "What was the first thing I said?")
