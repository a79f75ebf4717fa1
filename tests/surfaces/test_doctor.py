"""`sash doctor` finds problems and changes nothing."""

import asyncio
import json
import os
import socket
import sqlite3
import subprocess

import pytest

from sash.app.settings import Settings
from sash.cli.doctor.connections import check_embedder
from sash.stores.files.records import SYNCED_FILE
from tests.models.wire import Wire, embedded, failed, said
from tests.surfaces.command_line import (
    NO_HOME,
    SASH,
    WAIT_S,
    chat_once,
    closed_port,
    model_at,
    snapshot,
)
from tests.surfaces.process import killed_if_late, running
from tests.surfaces.serving import serving


def diagnose(cli, *arguments, **environment):
    done = cli("doctor", "--json", *arguments, **environment)
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert done.returncode == (0 if report["ok"] else 1)
    return report, {check["check"]: check for check in report["checks"]}


def test_a_healthy_setup_passes_and_nothing_changes(cli):
    report, checks = diagnose(cli)
    assert report["ok"]
    assert "will be created" in checks["data"]["found"]
    assert "47 exposed entities" in checks["house"]["found"]
    assert not cli.data.exists()
    chat_once(cli)
    before = snapshot(cli.data)
    report, checks = diagnose(cli)
    assert "is intact, schema" in checks["store"]["found"]
    assert report["ok"]
    assert snapshot(cli.data) == before
    shown = cli("doctor")
    assert "✓ ok    store" in shown.stdout
    assert "\x1b[" not in shown.stdout


def test_the_settings_in_force_are_shown_with_their_origin(cli, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('port = 9999\nhome = "none"\napi_key = "sk-from-the-file"\n')
    report, _ = diagnose(cli, "--config", file, "--store", "files", SASH_HOME="demo")
    settings = {row["name"]: (row["value"], row["from"]) for row in report["settings"]}
    assert settings["port"] == ("9999", str(file))
    assert settings["home"] == ("demo", "environment")
    assert settings["store"] == ("files", "flag")
    assert settings["host"] == ("127.0.0.1", "default")
    assert settings["api_key"] == ("set", str(file))
    assert "sk-from-the-file" not in cli("doctor", "--config", file).stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("port = 'many'", "port"),
        ("prot = 1", "did you mean port?"),
        ("= what", "cannot be read"),
        ("home_url = 'http://localhost:1'", "home_url needs home_token"),
    ],
)
def test_a_wrong_configuration_is_found(cli, tmp_path, content, says):
    file = tmp_path / "my.toml"
    file.write_text(content)
    report, checks = diagnose(cli, "--config", file)
    assert not report["ok"]
    assert says in checks["configuration"]["found"]
    refused = cli("sessions", "--config", file)
    assert refused.returncode == 2
    assert says in refused.stderr


def test_an_unreachable_home_and_model_are_found(cli):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    report, checks = diagnose(
        cli,
        SASH_HOME_URL=nowhere,
        SASH_HOME_TOKEN="abc",
        SASH_MODEL="gpt-test",
        SASH_API_BASE=nowhere,
        SASH_API_KEY="sk-test",
    )
    assert not report["ok"]
    assert "nothing listens there" in checks["house"]["found"]
    assert "cannot be reached" in checks["model"]["found"]
    assert checks["house"]["status"] == checks["model"]["status"] == "wrong"
    assert "sk-test" not in json.dumps(report)


async def test_a_refused_api_key_is_found(cli):
    async with Wire(failed(401, "invalid_api_key"), said("ok")) as wire:
        report, checks = await asyncio.to_thread(diagnose, cli, **model_at(wire))
        assert not report["ok"]
        assert "refused the key" in checks["model"]["found"]
        _, checks = await asyncio.to_thread(diagnose, cli, **model_at(wire))
        assert (checks["model"]["status"], checks["model"]["found"]) == ("ok", "gpt-test answers")


async def test_the_embedder_is_asked_for_a_vector(cli):
    async with Wire(failed(404, "model_not_found"), embedded([0.5, 0.5, 0.7])) as wire:
        environment = {"SASH_EMBEDDER_MODEL": "e-small", "SASH_EMBEDDER_API_BASE": f"{wire.url}/v1"}
        report, checks = await asyncio.to_thread(diagnose, cli, SASH_EMBEDDER_API_KEY="sk-e", **environment)
        assert not report["ok"]
        assert "e-small" in checks["embedder"]["found"]
        assert "embedder_model" in checks["embedder"]["advice"]
        assert "sk-e" not in json.dumps(report)
        report, checks = await asyncio.to_thread(
            diagnose, cli, SASH_EMBEDDER_DIMENSIONS="0", SASH_API_KEY="of-the-model", **environment
        )
        assert checks["embedder"]["found"] == "e-small answers with 3 dimensions"
        settings = {row["name"]: row["value"] for row in report["settings"]}
        assert (settings["embedder_model"], settings["embedder_dimensions"]) == ("e-small", "0")
        assert "dimensions" not in wire.requests[-1].body
        assert "of-the-model" not in wire.requests[-1].headers["authorization"]


async def test_an_embedder_that_a_look_up_does_not_wait_for_is_too_slow(monkeypatch):
    async with Wire(embedded([0.5, 0.5])) as wire:
        settings = Settings(embedder_model="e-small", embedder_api_base=f"{wire.url}/v1")
        assert (await check_embedder(settings)).status == "ok"
        monkeypatch.setattr("sash.cli.doctor.connections.EMBED_TIMEOUT_S", 0.0)
        slow = await check_embedder(settings)
    assert slow.status == "wrong" and slow.advice
    assert "too slow" in slow.found and "a look-up waits 0 s" in slow.found


async def test_an_embedder_that_is_not_there_is_found_with_its_own_setting():
    settings = Settings(embedder_model="e", embedder_api_base=f"http://127.0.0.1:{closed_port()}/v1")
    dead = await check_embedder(settings)
    assert dead.status == "wrong"
    assert dead.found.endswith("the address (embedder_api_base)")


def test_a_folder_that_cannot_be_written_is_found(cli, tmp_path):
    (tmp_path / "file").write_text("")
    report, checks = diagnose(cli, "--data", tmp_path / "file" / "data")
    assert not report["ok"]
    assert "is not a folder" in checks["data"]["found"]
    refused = cli("sessions", "--data", tmp_path / "file" / "data")
    assert refused.returncode in (2, 7)
    assert "Traceback" not in refused.stderr
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        _, checks = diagnose(cli, "--data", tmp_path / "locked" / "data")
        assert "cannot be written" in checks["data"]["found"]


def test_a_folder_that_others_can_read_is_noted(cli):
    cli.data.mkdir(mode=0o755)
    cli.data.chmod(0o755)
    report, checks = diagnose(cli)
    assert report["ok"]
    assert (checks["data"]["status"], checks["data"]["advice"]) == ("note", f"chmod 700 {cli.data}")


def test_an_unusable_store_is_found(cli):
    chat_once(cli)
    file = cli.data / "sash.db"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    _, checks = diagnose(cli)
    assert "was written by a newer Sash (schema 99" in checks["store"]["found"]
    assert cli("sessions").returncode == 7
    file.write_bytes(b"this is no database, and was never one" * 100)
    _, checks = diagnose(cli)
    assert (checks["store"]["status"], "cannot be read" in checks["store"]["found"]) == ("wrong", True)
    assert cli("sessions").returncode == 7


def test_a_files_store_allows_one_program_at_a_time(cli):
    chat_once(cli, SASH_STORE="files")
    report, checks = diagnose(cli, SASH_STORE="files")
    assert "can be read, layout 1" in checks["store"]["found"]
    before = snapshot(cli.data)
    pipe = subprocess.PIPE
    environment = cli.environment | {"SASH_STORE": "files"}
    with running(SASH, "chat", stdin=pipe, stdout=pipe, env=environment) as holder:
        with killed_if_late(holder):
            assert holder.stdout.readline().startswith("Sash")
        refused = cli("sessions", SASH_STORE="files")
        _, checks = diagnose(cli, SASH_STORE="files")
        holder.communicate(timeout=WAIT_S)
    assert refused.returncode == 7
    assert "in use by another process" in refused.stderr
    assert "`sash serve`" in refused.stderr
    assert "is open in another program" in checks["store"]["found"]
    assert report["ok"]
    assert _list_files(cli.data) == [path for path in before if path.name != SYNCED_FILE]


def _list_files(folder):
    """Return the files of a store, without the copy that a store deletes when it syncs a session."""
    return [path for path in snapshot(folder) if path.name != SYNCED_FILE]


def test_a_server_that_others_can_reach_needs_a_token(cli):
    report, checks = diagnose(cli, SASH_HOST="0.0.0.0")
    assert not report["ok"]
    assert "`sash serve` would refuse to start" in checks["server"]["found"]
    refused = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "sash token create" in refused.stderr
    cli("token", "create")
    report, checks = diagnose(cli, SASH_HOST="0.0.0.0", SASH_PORT=str(closed_port()))
    assert report["ok"], checks
    (cli.data / "tokens.json").write_text("[")
    assert not diagnose(cli)[0]["ok"]


def test_a_port_that_is_taken_is_noted(cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        report, checks = diagnose(cli, SASH_PORT=port)
        assert report["ok"]
        assert (checks["server"]["status"], "in use" in checks["server"]["found"]) == ("note", True)
        assert cli("serve", "--port", port).returncode == 2


async def test_the_port_of_a_running_server_is_no_problem(cli, tmp_path):
    async with serving(tmp_path / "server") as served:
        port = str(served.client.base_url.port)
        _, checks = await asyncio.to_thread(diagnose, cli, SASH_PORT=port)
    assert checks["server"]["status"] == "ok"
    assert checks["server"]["found"].startswith(f"Sash runs at 127.0.0.1:{port}; ")


def test_doctor_knows_every_loopback_address(cli):
    assert cli("doctor", SASH_HOST="127.0.0.2", SASH_PORT=str(closed_port()), **NO_HOME).returncode == 0
    assert cli("doctor", SASH_HOST="0.0.0.0", SASH_PORT=str(closed_port()), **NO_HOME).returncode == 1


def test_doctor_finds_a_damaged_session(cli):
    session = chat_once(cli, SASH_STORE="files")
    [file] = cli.data.glob(f"sessions/{session}/session.json")
    file.write_bytes(file.read_bytes()[:-50])
    done = cli("doctor", SASH_STORE="files", **NO_HOME)
    assert done.returncode == 1 and "cannot be read" in done.stdout


def test_doctor_finds_a_damaged_line_of_a_log_before_and_after_the_repair(cli):
    session = chat_once(cli, SASH_STORE="files")
    [log] = cli.data.glob(f"sessions/{session}/logs/*.log")
    log.write_bytes(log.read_bytes() + b"{}\n")
    done = cli("doctor", SASH_STORE="files", **NO_HOME)
    assert done.returncode == 1 and log.name in done.stdout
    assert cli("sessions", SASH_STORE="files").returncode == 0
    done = cli("doctor", SASH_STORE="files", **NO_HOME)
    assert done.returncode == 0 and ".damaged" in done.stdout


def test_doctor_does_not_fail_if_only_its_first_line_is_read(cli):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {SASH} doctor | head -1"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=cli.environment | {"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_default_data_folder_is_shown(cli, tmp_path):
    report, _ = diagnose(cli, SASH_DATA="", XDG_DATA_HOME=str(tmp_path / "own"))
    settings = {row["name"]: (row["value"], row["from"]) for row in report["settings"]}
    assert settings["data"] == (str(tmp_path / "own" / "sash"), "default")


@pytest.mark.parametrize(
    ("settings", "check", "says"),
    [
        ({"SASH_VOCABULARY": "/nope.toml"}, "configuration", "SASH_VOCABULARY must be the path of a file"),
        ({"SASH_VOCABULARY": __file__}, "vocabulary", "it is not TOML"),
        ({"SASH_OTEL_ENDPOINT": "nope"}, "configuration", "SASH_OTEL_ENDPOINT must begin with http://"),
        ({"SASH_SYSTEM_PROMPT": "@/nope.md"}, "configuration", "SASH_SYSTEM_PROMPT must name a file"),
        ({"SASH_STORE": "redis"}, "configuration", "SASH_STORE must be sqlite, files or memory"),
        ({"SASH_HOST": "nonsense host"}, "server", "'nonsense host' is not an address"),
    ],
)
def test_settings_that_prevent_a_start_are_found(cli, settings, check, says):
    report, checks = diagnose(cli, **settings)
    assert not report["ok"]
    assert checks[check]["status"] == "wrong"
    assert says in checks[check]["found"]


def test_doctor_says_how_long_data_is_kept(cli):
    assert diagnose(cli, **NO_HOME)[1]["retention"]["found"] == (
        "transcripts are kept until you delete them; the steps of a turn, and the sessions of `sash ask`, are "
        "deleted 24 hours after their end, except what `undo` needs; a session expires after 7 days without a "
        "change"
    )
    own = {
        "SASH_TRANSCRIPT_RETENTION_DAYS": "30",
        "SASH_CONTINUATION_RETENTION_HOURS": "1.5",
        "SASH_SESSION_IDLE_DAYS": "2",
    }
    assert diagnose(cli, **NO_HOME, **own)[1]["retention"]["found"] == (
        "ended and expired sessions are deleted after 30 days; the steps of a turn, and the sessions of `sash "
        "ask`, are deleted 1.5 hours after their end, except what `undo` needs; a session expires after 2 days "
        "without a change"
    )


def test_missing_tracing_packages_are_found(cli, tmp_path):
    (tmp_path / "lacking" / "opentelemetry").mkdir(parents=True)
    (tmp_path / "lacking" / "opentelemetry" / "__init__.py").write_text("raise ImportError('not here')")
    there = {"SASH_OTEL_ENDPOINT": "http://127.0.0.1:4318"}
    assert diagnose(cli, **there)[1]["spans"]["status"] == "ok"
    report, checks = diagnose(cli, PYTHONPATH=str(tmp_path / "lacking"), **there)
    assert not report["ok"]
    assert "sash[otel]" in checks["spans"]["found"]


def test_actions_without_an_allowlist_are_noted(cli):
    assert diagnose(cli)[1]["sessions"]["found"] == "agents may use all services"
    report, checks = diagnose(cli, SASH_ALLOW_ACTUATION="true", SASH_HOME="none")
    assert report["ok"]
    assert (checks["sessions"]["status"], "allowlist" in checks["sessions"]["found"]) == ("note", True)
    _, checks = diagnose(cli, SASH_ALLOW_ACTUATION="true", SASH_ALLOWLISTED_SERVICES="light")
    assert checks["sessions"]["found"] == "agents may use light"
