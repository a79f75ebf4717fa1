"""Numbers at the limits of what Sash accepts: Sash adds to them, and must be able to read the sums."""

import pytest

from sash.errors import InvalidExport
from sash.ports.model import MAX_TOKENS, Answer, Usage
from sash.values.bounds import MAX_COUNT
from sash.values.requests import StartSession
from sash.values.validation import MAX_DOLLARS
from tests.attacks.test_hostile_exports import change
from tests.runtime.talk import transcript, turn


@pytest.fixture
def restart(run, make_store):
    """Return a function that closes the open runtime, and opens another one on the same data."""
    opened, kept = [], []

    async def restart(*lines):
        if opened:
            await opened[-1].close()
        kept.append(make_store())
        opened.append(await run(*lines, store=kept[-1] if kept[-1].is_durable else kept[0]))
        return opened[-1]

    return restart


async def make_export(runtime):
    session = await runtime.start_session(name="den")
    await turn(runtime, session, "hello")
    export = await runtime.export_session(session.id)
    del export["signature"]  # so that an import gets new ids
    return export


def list_counters(export):
    """Return the path and the limit of each number that Sash adds to."""
    stats = export["session"]["stats"]
    counts = [("session", "stats", name) for name, value in stats.items() if isinstance(value, int)]
    counts += [("session", "stats", "durations", key) for key in stats["durations"]]
    counts += [("continuations", 0, "stats", path[2]) for path in counts if len(path) == 3]
    counts += [("session", "version"), ("session", "turns_before"), ("evicted_count",)]
    counts += [("steps", -1, "step", "cursor"), ("steps", -1, "step", "n")]
    counts += [("steps", -1, "step", "detail", "usage", "input_tokens")]
    return [(path, MAX_COUNT) for path in counts] + [(("session", "stats", "cost_usd"), float(MAX_DOLLARS))]


async def test_a_session_with_all_counters_at_their_limits_goes_on_after_a_restart(restart):
    runtime = await restart()
    export = await make_export(runtime)
    for path, limit in list_counters(export):
        export = change(export, path, limit)
    session = await runtime.import_session(export)
    for n in range(3):
        assert (await turn(runtime, session, f"message {n}")).status == "completed"
        await runtime.set_preferences(session.id, {"n": n})
        runtime = await restart()
        assert (await transcript(runtime, session))[-2:] == [("user", f"message {n}"), ("assistant", "ok")]
        assert (await runtime.get_session(session.id)).stats.turns == MAX_COUNT + n + 1
        assert (await runtime.statistics())["total_requests"] >= MAX_COUNT
        await runtime.export_session(session.id)


async def test_a_counter_above_its_limit_is_refused(run):
    runtime = await run()
    export = await make_export(runtime)
    for path, limit in list_counters(export):
        with pytest.raises(InvalidExport):
            await runtime.import_session(change(export, path, limit * 2))


async def test_more_failed_turns_than_turns_do_not_make_the_next_session_unreadable(restart):
    runtime = await restart()
    export = await make_export(runtime)
    await runtime.end_session(export["session"]["id"])
    export["session"] |= {"name": "shed", "status": "ended"}
    await runtime.import_session(change(export, ("session", "stats", "failed_turns"), 1000))
    opened = await runtime.open_session(StartSession(name="shed"))
    runtime = await restart()
    assert (await turn(runtime, opened, "hello")).status == "completed"


async def test_a_provider_that_reports_the_most_tokens_leaves_a_readable_session(restart):
    runtime = await restart(Answer("ok", usage=Usage(MAX_TOKENS - 1, MAX_TOKENS - 1)))
    session = await runtime.start_session()
    for _ in range(3):
        assert (await turn(runtime, session, "hello")).status == "completed"
    runtime = await restart()
    assert (await runtime.get_session(session.id)).stats.input_tokens == 3 * (MAX_TOKENS - 1)


async def test_a_clock_that_is_set_back_during_a_turn_leaves_a_readable_session(restart, clock):
    def set_back(request):
        clock.advance(-3600)
        return "ok"

    runtime = await restart(set_back)
    session = await runtime.start_session()
    assert (await turn(runtime, session, "hello")).status == "completed"
    runtime = await restart()
    assert (await transcript(runtime, session)) == [("user", "hello"), ("assistant", "ok")]
    assert (await turn(runtime, session, "hello again")).status == "completed"
