"""Settings change what a client of the server gets. The server is assembled as `sash serve` does it."""

from contextlib import asynccontextmanager

import httpx
import pytest

from sash.app.assembly import make_runtime
from sash.app.settings_loader import load_settings
from sash.engine.event_hub import EventHub
from sash.server.listener import listen
from sash.server.metrics import Metrics
from sash.server.timeouts import Timeouts
from tests.models.wire import Reply, Wire, said
from tests.surfaces.serve_process import ask, program
from tests.surfaces.serving import REQUEST_S, Served, problem

# An answer that never ends, so that its turn stays open.
HANG = Reply(chunks=[], then="hang")


@asynccontextmanager
async def assembled(folder, wire=None, **environ):
    """Serve with the settings of these environment variables, and with a fake model provider."""
    environ = {"SASH_DATA": str(folder), "SASH_PORT": "0", "SASH_HOME": "none"} | environ
    if wire is not None:
        environ |= {"SASH_MODEL": "gpt-test", "SASH_API_KEY": "k", "SASH_API_BASE": f"{wire.url}/v1"}
    settings = load_settings(environ=environ | {"HOME": str(folder)}).settings
    # The client gives up before the server would answer without `early_wait_enable`.
    timeouts = Timeouts(answer_s=2 * REQUEST_S)
    async with (
        make_runtime(settings) as runtime,
        listen(runtime, settings, Metrics(), None, timeouts) as url,
        httpx.AsyncClient(base_url=url, timeout=REQUEST_S) as client,
    ):
        yield Served(url, client, runtime, settings)


async def show_session(served, **body):
    session_id = await served.start(**body)
    return (await served.client.get(f"/v1/sessions/{session_id}")).json()["session"]


@pytest.mark.parametrize(
    ("environ", "window"),
    [
        ({"SASH_MAX_HISTORY_TURNS": "5"}, {"max_tokens": None, "max_turns": 5}),
        ({"SASH_MAX_HISTORY_TURNS": "0"}, {"max_tokens": 4000, "max_turns": None}),
        ({"SASH_SLIDING_WINDOW_MAX_TOKENS": "900"}, {"max_tokens": 900, "max_turns": None}),
        ({"SASH_SLIDING_WINDOW_ENABLE": "false"}, {"max_tokens": None, "max_turns": None}),
        ({"SASH_SLIDING_WINDOW_PRESERVE_SYSTEM": "false"}, {"preserve_system": False}),
        (
            {"SASH_SLIDING_WINDOW_PRESERVE_SYSTEM": "false", "SASH_SLIDING_WINDOW_MAX_TOKENS": "9"},
            {"preserve_system": False},
        ),
    ],
)
async def test_settings_of_the_window_apply_to_new_sessions(tmp_path, environ, window):
    async with assembled(tmp_path, **environ) as served:
        assert window.items() <= (await show_session(served))["window"].items()
        own = await show_session(served, window={"max_tokens": 50, "max_turns": 0})
        assert (own["window"]["max_tokens"], own["window"]["max_turns"]) == (50, None)


async def test_settings_of_turns_and_actions_bind_every_session(tmp_path):
    budgets = {
        "max_steps": 3,
        "max_tool_calls": 4,
        "max_duration_ms": 5000,
        "max_tokens_per_turn": 6000,
    }
    environ = {f"SASH_{name.upper()}": str(value) for name, value in budgets.items()}
    environ |= {"SASH_MAX_ACTIONS_PER_MINUTE": "2", "SASH_ENFORCE_FIXED_MODEL": "yes", "SASH_LAST_K": "3"}
    async with assembled(tmp_path, **environ) as served:
        session = await show_session(served)
        assert budgets.items() <= session["budgets"].items()
        assert session["policy"]["max_actions_per_minute"] == 2
        assert session["policy"]["enforce_fixed_model"] and session["memory"]["last_k"] == 3
        for body in (
            {"budgets": {"max_steps": 4}},
            {"policy": {"max_actions_per_minute": 3}},
            {"policy": {"approvers": "owner"}},
        ):
            problem(await served.client.post("/v1/sessions", json=body), 403, "policy_exceeds_operator")
        refused = await served.client.post("/v1/sessions", json={"model": {"name": "other"}})
        assert refused.json()["code"] == "model_fixed"


async def test_a_message_may_be_as_large_as_the_setting_says(tmp_path):
    async with assembled(tmp_path, SASH_MAX_MESSAGE_BYTES="100") as served:
        at = f"/v1/sessions/{await served.start()}/messages"
        refused = await served.client.post(at, json={"message": "x" * 101})
        assert refused.json()["code"] == "message_too_large"
        assert "max_message_bytes" in refused.json()["detail"]
        assert (await served.client.post(at, json={"message": "x" * 100})).status_code == 202


async def test_a_request_that_is_too_large_names_its_setting(tmp_path):
    async with assembled(tmp_path, SASH_MAX_BODY_BYTES="1000", SASH_MAX_IMPORT_BYTES="2000") as served:
        for path, option in (("/v1/ask", "max_body_bytes"), ("/v1/sessions/import", "max_import_bytes")):
            refused = await served.client.post(path, json={"message": "x" * 3000})
            assert option in problem(refused, 413, "body_too_large")["detail"]


async def test_settings_of_conversations_are_in_force(tmp_path):
    environ = {"SASH_EARLY_WAIT_ENABLE": "true", "SASH_EARLY_WAIT_SECONDS": "0.01"}
    async with Wire(HANG) as wire, assembled(tmp_path, wire, **environ) as served:
        said = (await served.client.post("/conversation", json={"text": "Why?"})).json()
        assert said["response_text"] == "I am still working on it. The answer follows."
        await served.client.post(f"/v1/continuations/{said['extra']['continuation_id']}/cancel")
    async with assembled(tmp_path / "other", SASH_AUTO_CREATE_CONVERSATION_ID="no") as served:
        said = (await served.client.post("/conversation", json={"text": "Hello"})).json()
        assert said["conversation_id"] is None


async def test_the_prompt_begins_with_the_users_text_and_keeps_the_rules(tmp_path):
    (tmp_path / "alfred.md").write_text("You are Alfred, a butler.")
    async with (
        Wire(said("Very well.")) as wire,
        assembled(tmp_path, wire, SASH_SYSTEM_PROMPT=f"@{tmp_path}/alfred.md") as served,
    ):
        await served.wait(await served.send(await served.start(), "Good evening."))
        system = wire.requests[-1].body["messages"][0]["content"]
        assert system.startswith("You are Alfred, a butler.\n- Answer in the user's language")
        assert "You are Sash" not in system


async def test_the_digest_is_as_long_as_the_setting_says(tmp_path):
    environ = {"SASH_SUMMARY_TOKENS": "64", "SASH_MAX_HISTORY_TURNS": "1"}
    async with assembled(tmp_path, **environ) as served:
        session_id = await served.start()
        for n in range(20):
            await served.wait(await served.send(session_id, f"Remember the error code E-{n:04} of the pump."))
        digest = (await served.client.get(f"/v1/sessions/{session_id}/context")).json()["digest"]
        assert "E-00" in digest and len(digest) < 64 * 5


@pytest.mark.parametrize(("setting", "kept"), [("true", ["The user is called Anna."]), ("false", [])])
async def test_the_model_finds_facts_if_the_setting_says_so(tmp_path, setting, kept):
    async with (
        Wire(said("Hello Anna."), said("- The user is called Anna.")) as wire,
        assembled(tmp_path, wire, SASH_FACT_EXTRACTION=setting) as served,
    ):
        await served.wait(await served.send(await served.start(), "I am Anna."))
        await served.runtime.wait_for_background()
        facts = (await served.client.get("/v1/facts")).json()["facts"]
        assert [fact["text"] for fact in facts] == kept
        assert len(wire.requests) == 1 + len(kept)


@pytest.mark.parametrize("source", ["file", "environment"])
async def test_as_many_turns_run_in_a_session_as_the_setting_says(tmp_path, source):
    (tmp_path / "sash.toml").write_text("max_open_continuations_per_session = 2\n")
    environ = {
        "file": {"SASH_CONFIG": f"{tmp_path}/sash.toml"},
        "environment": {"SASH_MAX_OPEN_CONTINUATIONS_PER_SESSION": "2"},
    }[source]
    async with Wire(HANG) as wire, assembled(tmp_path, wire, **environ) as served:
        session_id = await served.start()
        opened = [await served.send(session_id, f"Question {n}.") for n in range(2)]
        refused = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": "And?"})
        problem(refused, 409, "session_busy")
        for continuation_id in opened:
            await served.client.post(f"/v1/continuations/{continuation_id}/cancel")


async def test_vectors_come_from_the_embedder_of_the_settings(tmp_path):
    async with (
        Wire(said("ok")) as wire,
        assembled(
            tmp_path, SASH_EMBEDDER_MODEL="e-small", SASH_EMBEDDER_API_BASE=f"{wire.url}/v1",
            SASH_EMBEDDER_API_KEY="key-of-the-embedder", SASH_MAX_HISTORY_TURNS="1",
        ) as served,
    ):  # fmt: skip
        session_id = await served.start()
        for text in ("The cat is black.", "The dog is white."):
            await served.wait(await served.send(session_id, text))
        await served.runtime.wait_for_background()
        [request, *_] = [one for one in wire.requests if one.path.endswith("/embeddings")]
        assert request.body["model"] == "e-small"
        assert request.headers["authorization"] == "Bearer key-of-the-embedder"


def test_the_first_command_in_the_demo_house_works(tmp_path):
    with program(tmp_path / "data") as (_, address, _):
        said = ask(address, "/conversation", {"text": "turn on the kitchen lights"})
        [action] = said["extra"]["actions"]
        assert (action["outcome"], action["verified"]) == ("done", True), said
        said = ask(address, "/conversation", {"text": "unlock the front door"})
        assert said["response_text"].endswith("?") or "yes or no" in said["response_text"]
    with program(tmp_path / "other", SASH_ALLOW_ACTUATION="false") as (_, address, _):
        said = ask(address, "/conversation", {"text": "turn on the kitchen lights"})
        assert said["response_text"] == (
            "I am not allowed to control devices in this conversation. You can allow it in the settings of Sash."
        )


def test_an_unknown_variable_is_warned_about_by_the_program(cli):
    done = cli("sessions", SASH_MAX_STEP="4")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: SASH_MAX_STEP is not a setting: did you mean SASH_MAX_STEPS?\n")
    shown = cli("doctor", "--json", SASH_MAX_STEP="4")
    assert "did you mean SASH_MAX_STEPS?" in shown.stdout and shown.stderr == ""


async def test_partial_texts_have_the_interval_of_the_setting(tmp_path, monkeypatch):
    intervals = []

    class RecordedHub(EventHub):
        def __init__(self, interval_s):
            intervals.append(interval_s)
            super().__init__(interval_s)

    monkeypatch.setattr("sash.engine.runtime.EventHub", RecordedHub)
    async with assembled(tmp_path, SASH_PARTIAL_UPDATE_INTERVAL_MS="250"):
        assert intervals == [0.25]
