"""`sash serve` as a process: its output, its address and its shutdown."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.surfaces.serve_process import WAIT_S, ask, program

STOP_S = 30


def test_the_banner_names_address_home_and_model(tmp_path):
    with program(tmp_path / "data") as (process, address, printed):
        for told in (
            "listens at",
            "the demo house",
            "SASH_HOME_URL",
            "offline",
            "SASH_MODEL",
            str(tmp_path / "data"),
        ):
            assert told in printed
        assert ask(address, "/health")["status"] == "ok"
        asked = ask(address, "/v1/ask", {"message": "Is the front door locked?"})
        assert asked["response"]["final_message"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert "Stopped." in process.stdout.read()


def test_the_transcript_survives_a_kill(tmp_path):
    with program(tmp_path / "data") as (process, address, _):
        session_id = ask(address, "/v1/sessions", {})["session_id"]
        sent = ask(
            address, f"/v1/sessions/{session_id}/messages", {"message": "Remember that the code is 4711"}
        )
        ask(address, f"/v1/continuations/{sent['continuation_id']}?wait_ms=45000")
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_S)
    with program(tmp_path / "data") as (_, address, _):
        messages = ask(address, f"/v1/sessions/{session_id}/messages")["messages"]
        assert messages[0]["content"] == "Remember that the code is 4711"


def test_a_debug_log_has_no_conversation_text(tmp_path):
    with (
        (tmp_path / "log").open("w+") as log,
        program(tmp_path / "data", stderr=log, SASH_LOG_LEVEL="debug") as (_, address, _),
    ):
        session_id = ask(address, "/v1/sessions", {})["session_id"]
        message = {"message": "Remember that the treasure is in Xanadupolis"}
        sent = ask(address, f"/v1/sessions/{session_id}/messages", message)["continuation_id"]
        ask(address, f"/v1/continuations/{sent}?wait_ms=45000")
        with urlopen(f"{address}/events/{session_id}?after=0", timeout=WAIT_S) as stream:
            assert any(b"Xanadupolis" in line for line in stream)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call["params"] = {"name": "ha_agent_ask", "arguments": message}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        with urlopen(Request(f"{address}/mcp", json.dumps(call).encode(), headers), timeout=WAIT_S) as answer:
            answer.read()
        log.seek(0)
        assert "xanadupolis" not in log.read().casefold()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_running_turn_is_interrupted_and_can_be_resumed(tmp_path, how):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(WAIT_S)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environment = {
            "SASH_MODEL": "gpt-test",
            "SASH_API_BASE": url,
            "SASH_API_KEY": "k",
            "SASH_HOME": "none",
        }
        with program(tmp_path / "data", **environment) as (process, address, _):
            session_id = ask(address, "/v1/sessions", {})["session_id"]
            sent = ask(address, f"/v1/sessions/{session_id}/messages", {"message": "hi"})["continuation_id"]
            asking, _ = silent.accept()
            process.send_signal(how)
            assert process.wait(STOP_S) == 0
            asking.close()
    with program(tmp_path / "data", SASH_HOME="none") as (_, address, _):
        assert ask(address, f"/v1/continuations/{sent}")["status"] == "interrupted"
        ask(address, f"/v1/continuations/{sent}/resume", method="POST")
        assert ask(address, f"/v1/continuations/{sent}?wait_ms=45000")["status"] == "completed"


def refused(folder: Path, *arguments, **environment) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sash", "serve", "--data", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        cwd=folder.parent,
        env={"HOME": str(folder.parent), "PATH": "/usr/bin:/bin", "COLUMNS": "200", **environment},
    )


def test_a_public_address_needs_a_token(tmp_path):
    done = refused(tmp_path / "data", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "sash token create" in done.stderr and "Traceback" not in done.stderr


def test_a_port_in_use_is_reported(tmp_path):
    with program(tmp_path / "one") as (_, address, _):
        done = refused(tmp_path / "two", "--port", address.rpartition(":")[2])
    assert done.returncode == 2
    assert "choose another port with --port" in done.stderr and "Traceback" not in done.stderr


def test_a_store_that_cannot_be_opened_is_reported(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "sash.db").write_bytes(b"this is no database, and never was" * 100)
    done = refused(folder, "--port", "0")
    assert done.returncode == 7
    assert "sash.db" in done.stderr and "Traceback" not in done.stderr
