"""Input that starts no turn and no session, and values that are refused."""

import pytest

from sash import Runtime
from sash.engine.redaction import MARK
from sash.errors import (
    ContinuationNotFound,
    InvalidInput,
    SashError,
    SessionNotFound,
)
from sash.ports.tools import ToolSpec
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import Budgets, ModelConfig, SessionPolicy, WindowLimits
from tests.tools import ANY


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("", {}),
        (None, {}),
        ("\ud800", {}),
        ("x" * (2**20 + 1), {}),
        ("x", {"busy": "wait"}),
        ("x", {"max_steps": -1}),
        ("x", {"allow_tools": "yes"}),
        ("x", {"idempotency_key": ""}),
        ("x", {"planner_hints": ["not", "an", "object"]}),
        ("x", {"planner_hints": {"a": object()}}),
    ],
)
async def test_bad_input_starts_no_turn(run, message, options):
    runtime = await run("ok")
    session = await runtime.start_session()
    with pytest.raises(SashError):
        await runtime.send_message(session.id, message, **options)
    assert await runtime.store.list_continuations("local", session.id) == []


@pytest.mark.parametrize(
    "options",
    [
        lambda: {"owner": ""},
        lambda: {"preferences": {"a": object()}},
        lambda: {"preferences": {"a": float("nan")}},
        lambda: {"preferences": "dark mode"},
        lambda: {"budgets": Budgets(max_steps=-1)},
        lambda: {"budgets": Budgets(max_tokens_per_turn="many")},
        lambda: {"window": WindowLimits(max_tokens=0)},
        lambda: {"window": WindowLimits(evict_to=2)},
    ],
)
async def test_bad_input_starts_no_session(run, options):
    runtime = await run("ok")
    with pytest.raises(SashError):
        await runtime.start_session(**options())
    assert (await runtime.list_sessions()).items == ()


async def test_what_does_not_exist_is_said_not_to(run):
    runtime = await run("ok")
    with pytest.raises(SessionNotFound):
        await runtime.send_message("nowhere", "hi")
    with pytest.raises(ContinuationNotFound):
        await runtime.await_continuation("nothing", timeout_s=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolSpec("", "no name", ANY, print),
        lambda: ToolSpec("f", "no function", ANY, None),
        lambda: ToolSpec("f", "a typo", ANY, print, safety="Unsafe"),
        lambda: ToolSpec("f", "no verify", ANY, print, safety="verify"),
        lambda: SessionPolicy(allowlisted_services="light.*"),
        lambda: SessionPolicy(allow_actuation="no"),
        lambda: ModelConfig(temperature="hot"),
        lambda: ModelConfig(name=""),
        lambda: WindowLimits(max_turns=-1),
    ],
)
def test_values_that_would_fail_open_are_refused(make):
    with pytest.raises(SashError):
        make()


@pytest.mark.parametrize("schema", [None, "x", {"type": "nothing"}, {"type": "string", "pattern": "("}])
def test_a_tool_with_a_wrong_schema_is_refused(schema):
    with pytest.raises(InvalidInput, match="schema of tool f"):
        Runtime(
            SqliteStore("unused.db"),
            ScriptedModel("x"),
            [ToolSpec("f", "f", schema, print)],
            clock=FakeClock(),
        )


async def test_odd_options_start_no_session(run):
    runtime = await run("ok")
    for options in ({"model": "gpt-4"}, {"budgets": 5}, {"window": 4000}):
        with pytest.raises(InvalidInput):
            await runtime.start_session(**options)
    with pytest.raises(InvalidInput, match="secret"):
        session = await runtime.start_session()
        await runtime.send_message(session.id, "hi", idempotency_key="api_key=abcdefgh")
    with pytest.raises(SashError):
        await runtime.list_sessions(limit=0)
    session = await runtime.start_session(
        model=ModelConfig(options={"api_key": "sk-abcdefghijklmnopqrstuvwx"})
    )
    assert session.model.options == {"api_key": MARK}
