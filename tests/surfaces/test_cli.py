"""The commands of `sash`: help, tokens, servers, completion and output."""

import inspect
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import sash
from sash import errors
from sash.cli.exit_codes import EPILOG, exit_code
from sash.cli.main import COMMANDS
from tests.surfaces.command_line import (
    NO_HOME,
    SASH,
    WAIT_S,
    chat_once,
    list_sessions,
    run,
)
from tests.surfaces.process import killed_if_late, running

NO_CLIENT = "There are no tokens: no client can use the server. `sash token create` creates one.\n"
# Errors of wrong input whose exit code is the one of a conflict.
CONFLICTS = (errors.ContinuationOpen, errors.NotAwaitingApproval)


def test_the_version():
    assert run("--version").stdout == f"sash {sash.__version__}\n"


def test_a_wrong_command_is_explained():
    done = run("nonsense")
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr


def test_the_help_names_all_commands_and_exit_codes():
    shown = run("--help").stdout
    for command in (*COMMANDS, "token"):
        assert f" {command.rstrip('_')} " in shown
    assert EPILOG.endswith("130 interrupted, 143 terminated.")
    assert "75 unfinished" in " ".join(shown.split())


def test_a_module_is_the_same_program():
    done = subprocess.run(
        [sys.executable, "-m", "sash", "--version"], capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.stdout == f"sash {sash.__version__}\n"


def test_the_shell_completes_nothing_without_a_store(cli):
    shown = cli(_SASH_COMPLETE="complete_bash", COMP_WORDS="sash show ", COMP_CWORD="2")
    assert (shown.stdout.strip(), shown.stderr) == ("", "")
    assert not cli.data.exists()


def test_every_error_has_an_exit_code():
    raised = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SashError)
    ]
    by_code = {kind.code: exit_code(kind.code) for kind in raised}
    assert {code for code, number in by_code.items() if number == 1} == {"error", "tool_failed"}
    for kind in raised:
        if issubclass(kind, errors.InvalidInput):
            assert by_code[kind.code] == (4 if kind in CONFLICTS else 2)
        if issubclass(kind, errors.ModelError):
            assert by_code[kind.code] == 5
        if issubclass(kind, errors.HomeError) and kind is not errors.EntityNotFound:
            assert by_code[kind.code] == 6
        if kind.code.endswith("_not_found"):
            assert by_code[kind.code] == 3


def test_a_closed_pipe_prints_no_error(cli):
    chat_once(cli)
    for arguments in (["sessions"], ["sessions", "--json"], ["export", list_sessions(cli)[0]["id"]]):
        gone, closed = os.pipe()
        os.close(gone)
        done = subprocess.run(
            [SASH, *arguments], stdout=closed, stderr=subprocess.PIPE, timeout=WAIT_S, env=cli.environment
        )
        os.close(closed)
        assert (done.returncode, done.stderr) == (1, b"")


def test_output_has_no_control_characters(cli):
    assert (
        cli("ask", "--keep", "Remember that \x1b]0;owned\x07 the \x1b[31mcat is red", **NO_HOME).returncode
        == 0
    )
    shown = cli("show", list_sessions(cli)[0]["id"])
    assert "cat is red" in shown.stdout
    assert not {"\x1b", "\x07"} & set(shown.stdout)


def test_a_token_is_shown_only_once(cli):
    made = cli(
        "token", "create", "--scope", "read,act", "--scope", "admin", "--name", "phone", "--owner", "eve"
    )
    secret = made.stdout.strip()
    assert secret.startswith("sash_")
    assert secret not in made.stderr
    assert "may read, act, admin" in made.stderr
    shown = cli("token", "list").stdout + cli("token", "list", "--json").stdout
    assert "phone" in shown
    assert "eve" in shown
    assert secret.split("_", 2)[2] not in shown
    assert "hash" not in shown
    assert secret.split("_", 2)[2] not in (cli.data / "tokens.json").read_text()
    assert stat.S_IMODE((cli.data / "tokens.json").stat().st_mode) == 0o600


def test_a_token_has_scopes_and_an_expiry_and_can_be_revoked(cli):
    assert cli("token", "list").stderr == "There are no tokens: every local user may use the server.\n"
    cli("token", "create", "--expires-days", "2")
    [token] = json.loads(cli("token", "list", "--json").stdout)["tokens"]
    assert token["scopes"] == ["read", "converse"]
    assert token["expires_at"] > token["created_at"]
    assert cli("token", "create", "--scope", "everything").returncode == 2
    revoked = cli("token", "revoke", token["id"])
    assert (revoked.returncode, revoked.stderr) == (0, NO_CLIENT)
    assert json.loads(cli("token", "list", "--json").stdout)["tokens"] == []
    assert cli("token", "list").stderr == NO_CLIENT
    assert "no client could get in" in " ".join(cli("doctor").stdout.split())
    assert cli("token", "revoke", token["id"]).returncode == 3


def test_mcp_ends_with_its_input(cli):
    done = cli("mcp", input="", **NO_HOME)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_wrong_flags_are_explained(cli):
    for arguments in (
        ["serve", "--port", "70000"],
        ["serve", "--log-level", "loud"],
        ["sessions", "--store", "oracle"],
    ):
        done = cli(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_command_works_without_unicode(cli, encoding):
    environment = {"PYTHONIOENCODING": encoding}
    talk = cli(
        "chat", "--allow", "light", input="Turn on the kitchen light\n/context\n/sessions\n", **environment
    )
    assert talk.returncode == 0, talk.stderr
    assert "Turned on the kitchen ceiling light." in talk.stdout
    cli("ask", "--keep", "Remember that the café is “closed”", **NO_HOME)
    assert "café is “closed”" in cli("facts", "list", PYTHONIOENCODING="utf-8").stdout
    for arguments in (["sessions"], ["doctor"], ["search", "kitchen"], ["show", list_sessions(cli)[0]["id"]]):
        done = cli(*arguments, **environment)
        assert done.returncode == 0, done.stderr
    whole = cli("show", list_sessions(cli)[0]["id"], "--json", **environment).stdout
    assert "café is “closed”" in json.dumps(json.loads(whole), ensure_ascii=False)


def test_closed_input_and_a_full_disk_give_no_traceback(cli):
    for command in ("ask -", "chat"):
        done = subprocess.run(
            ["bash", "-c", f"{SASH} {command} <&-"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=cli.environment | NO_HOME,
        )
        assert "Traceback" not in done.stderr
    done = subprocess.run(
        ["bash", "-c", f"{SASH} sessions --json > /dev/full"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=cli.environment | NO_HOME,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_a_full_disk_is_reported_once(cli):
    chat_once(cli)
    for arguments in (["sessions"], ["sessions", "--json"], ["doctor"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [SASH, *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=WAIT_S,
                env=cli.environment | NO_HOME,
            )
        assert (done.returncode, done.stderr) == (1, "error: No space left on device: the output\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "--limit", "9" * 20],
        ["search", "cat", "--limit", "9" * 20],
        ["show", "nonsense", "--messages", "9" * 20],
        ["token", "create", "--expires-days", "9" * 11],
    ],
)
def test_a_number_that_is_too_large_is_refused(cli, arguments):
    done = cli(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert arguments[-2] in done.stderr


def test_the_help_shows_a_flag_without_a_value(cli):
    for command in (["sessions"], ["chat"], ["token", "list"], []):
        shown = cli(*command, "--help").stdout
        assert "--help" in shown
        assert "<bool>" not in shown


def test_the_shell_completes_stores(cli):
    words = {"COMP_WORDS": "sash sessions --store ", "COMP_CWORD": "3"}
    shown = cli(_SASH_COMPLETE="complete_bash", **words)
    assert shown.stdout.split() == ["sqlite", "files", "memory"]


def test_a_folder_as_configuration_file_is_refused(cli, tmp_path):
    refused = cli("sessions", "--config", tmp_path)
    assert refused.returncode == 2
    assert f"{tmp_path} is a folder" in refused.stderr


def test_the_help_and_the_version_import_nothing_heavy():
    program = (
        "import sys, runpy; sys.argv = ['sash', '--help']\n"
        "try: runpy.run_module('sash', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([name for name in ('sash.engine.runtime', 'pydantic', 'openai', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_public_names_can_be_imported():
    assert sash.Runtime.__name__ == "Runtime"
    assert {name for name in sash.__all__ if getattr(sash, name, None) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sash.nonsense


def test_the_shell_completes_commands_and_sessions(cli):
    session = chat_once(cli)
    complete = {"_SASH_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert "resume" in cli(COMP_WORDS="sash re", **complete).stdout.split()
    shown = cli(**{**complete, "COMP_WORDS": "sash show ", "COMP_CWORD": "2"})
    assert (shown.stdout.split(), shown.stderr) == ([session], "")


def test_the_server_serves_the_sessions_of_the_commands(cli):
    session = chat_once(cli)
    pipe = subprocess.PIPE
    environment = cli.environment | {"COLUMNS": "200"}
    with running(SASH, "serve", "--port", "0", stdout=pipe, stderr=pipe, env=environment) as server:
        with killed_if_late(server):
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        with urlopen(f"{address}/v1/sessions", timeout=WAIT_S) as answer:
            assert [s["id"] for s in json.load(answer)["sessions"]] == [session]
        run_in_thread = cli("ask", "Is the front door locked?", "--session", session)
        assert (run_in_thread.returncode, run_in_thread.stdout) == (
            0,
            "Yes, the front door lock is locked.\n",
        )
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=WAIT_S)
    assert (server.returncode, errors) == (0, "")
