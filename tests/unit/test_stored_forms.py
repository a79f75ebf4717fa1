"""Stored values are read leniently, input is checked strictly."""

import json
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from sash.errors import InvalidInput, StoreUnavailable
from sash.ports.turns import TurnEnd
from sash.stores.files.records import Commit, SessionFile
from sash.values.codec import decode, encode
from sash.values.continuations import Action, ArtifactRef, Continuation, ContinuationRequest
from sash.values.requests import SendMessage, StartSession
from sash.values.sessions import Budgets, ModelConfig, Session, SessionPolicy, WindowLimits
from sash.values.stats import Bill
from sash.values.steps import (
    AnswerSentBack,
    ApprovalRequested,
    Finished,
    Interrupted,
    Plan,
    Step,
    ToolResult,
    UnknownStep,
)
from sash.values.validated import parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = Session("id", "ann", NOW, NOW, model=ModelConfig("m"), area="kitchen")
TURN = Continuation("id", "id", "ann", "running", NOW, NOW, ContinuationRequest("hi", model=ModelConfig("m")))
BILL = Bill("m", 1, 2, 3, 4, 5, False, 0.5)


def stored_with(value, *path, **fields):
    """Return the JSON of a value with more fields in the object at `path`."""
    data = json.loads(encode(value))
    at = data
    for name in path:
        at = at[name]
    at |= fields
    return json.dumps(data)


@pytest.mark.parametrize(
    "path", [(), ("budgets",), ("policy",), ("window",), ("model",), ("memory",)], ids=str
)
def test_unknown_fields_of_a_stored_session_are_ignored(path):
    assert decode(Session, stored_with(SESSION, *path, later=1, much_later={"a": 1})) == SESSION


def test_unknown_fields_in_several_places_are_ignored():
    text = stored_with(SESSION, "budgets", later=1)
    data = json.loads(text)
    data["policy"]["later"] = 2
    assert decode(Session, json.dumps(data)) == SESSION


def test_unknown_fields_are_ignored_below_other_values():
    assert decode(Continuation, stored_with(TURN, "request", "model", later=1)) == TURN
    record = SessionFile(SESSION, 0)
    assert decode(SessionFile, stored_with(record, "session", "window", later=1)) == record
    commit = Commit(TURN, TurnEnd("completed", (Finished("done"),)))
    assert decode(Commit, stored_with(commit, "continuation", "request", "model", later=1)) == commit


def test_the_fields_that_a_stored_value_lacks_have_their_defaults():
    data = json.loads(encode(SESSION))
    del data["policy"]["grounded_answers"], data["budgets"]["max_steps"], data["window"]["evict_to"]
    assert decode(Session, json.dumps(data)) == SESSION


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("observed_event", {"event": "from_the_future", "code": 7}),
        ("observed_event", {"event": ["x"]}),
        ("observed_event", {}),
        ("summary", {"status": "paused"}),
    ],
    ids=str,
)
def test_a_step_of_a_kind_that_only_another_version_knows_is_kept(kind, detail):
    text = json.dumps({"n": 1, "ts": NOW.isoformat(), "type": kind, "detail": detail, "cursor": 3})
    step = decode(Step, text)
    assert step == Step(1, NOW, UnknownStep(kind, detail), 3)
    assert (step.type, step.detail, step.final_status) == (kind, detail, None)
    assert decode(Step, encode(step)) == step


@pytest.mark.parametrize("kind", [Budgets, SessionPolicy, WindowLimits, ModelConfig])
def test_unknown_fields_of_input_are_refused(kind):
    with pytest.raises(InvalidInput, match="later"):
        kind(later=1)
    with pytest.raises(InvalidInput, match="later"):
        parse(kind, {"later": 1})


def test_unknown_fields_below_a_request_are_refused():
    with pytest.raises(InvalidInput, match=r"policy\.later"):
        parse(StartSession, {"policy": {"later": 1}})
    with pytest.raises(InvalidInput, match=r"model\.later"):
        parse(SendMessage, {"message": "hi", "model": {"later": 1}})


@pytest.mark.parametrize(
    "text",
    [
        stored_with(SESSION, "budgets", later=1, max_steps=-1),
        stored_with(SESSION, "policy", dry_run="no"),
        stored_with(SESSION, context=["x"]),
        stored_with(SESSION, "model", options={"a": "b" * 3, "c": [[]]} | {"n": [float("nan")]}),
        "{}",
        "{",
        "",
    ],
    ids=range(7),
)
def test_a_damaged_value_is_reported_as_damaged(text):
    with pytest.raises(StoreUnavailable, match="a stored Session is damaged"):
        decode(Session, text)


def test_a_stored_value_that_a_check_refuses_is_damaged():
    deep = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(StoreUnavailable, match="a stored Session is damaged"):
        decode(Session, stored_with(SESSION, "model", options=deep))


STEPS = [
    (Plan("I look", ({"id": "c"},), BILL), ("usage",)),
    (AnswerSentBack("done", BILL), ("usage",)),
    (Finished("done", None, BILL), ("usage",)),
    (Interrupted("model_error", "no", (BILL,)), ("lost", 0)),
    (ToolResult("c", "look", "x", 0.0, Action("c", "look", {}, "done")), ("action",)),
    (ToolResult("c", "look", "x", 0.0, None, (ArtifactRef("a", "text/plain", 1),)), ("artifacts", 0)),
    (Finished("done"), ()),
    (ToolResult("c", "look", "x"), ()),
]


@pytest.mark.parametrize(("body", "path"), STEPS, ids=lambda value: str(value)[:40])
def test_unknown_fields_of_a_stored_step_are_ignored(body, path):
    step = Step(1, NOW, body, 1)
    assert decode(Step, stored_with(step, "detail", *path, later=1)) == step


@pytest.mark.parametrize(
    ("body", "path", "names"),
    [
        (Plan("I look", (), None), (), ("usage",)),
        (AnswerSentBack("done"), (), ("usage",)),
        (Finished("done"), (), ("usage", "stopped_by")),
        (ApprovalRequested("c", "look", "", None), (), ("reason", "would")),
        (
            ToolResult("c", "look", "x", 0.0, Action("c", "look", {}, "done")),
            ("action",),
            ("undoes", "after"),
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_fields_that_a_stored_step_lacks_have_their_defaults(body, path, names):
    step = Step(1, NOW, body, 1)
    data = json.loads(encode(step))
    at = data["detail"]
    for name in path:
        at = at[name]
    for name in names:
        del at[name]
    assert decode(Step, json.dumps(data)) == step


def test_a_step_without_what_makes_it_up_is_damaged():
    data = json.loads(encode(Step(1, NOW, Plan("I look", (), BILL), 1)))
    del data["detail"]["usage"]["input_tokens"]
    with pytest.raises(StoreUnavailable, match="a stored Step is damaged"):
        decode(Step, json.dumps(data))


def test_a_stored_value_is_what_was_written():
    assert decode(Session, encode(SESSION)) == SESSION
    assert asdict(decode(Continuation, encode(TURN))) == asdict(TURN)
