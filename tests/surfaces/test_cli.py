"""The commands of `sash`: help, questions, tokens, servers and output."""

import asyncio
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
from tests.home.fake_home_assistant import FakeHomeAssistant
from tests.models.wire import Reply, Wire, chunk, failed, said
from tests.surfaces.command_line import (
    NO_HOME,
    SASH,
    SENTENCE,
    WAIT_S,
    chat_once,
    closed_port,
    list_sessions,
    model_at,
    run,
)
from tests.surfaces.process import killed_if_late, running

# Errors of wrong input whose exit code is the one of a conflict.
CONFLICTS = (errors.ContinuationOpen, errors.NotAwaitingApproval)


def test_the_demo_shows_evicted_and_kept_identifiers():
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "5/5 turns" in done.stdout
    assert "← evicted: I'm debugging a function" in done.stdout
    for name in ("/api/users/123", "error code 500", "db.example.com:5432", "config.py line 45"):
        assert name in done.stdout
    assert done.stdout.count("✓ verbatim") == done.stdout.count("✗ lost") == 4
    assert "$0.00, no model was called" in done.stdout
    assert "\x1b[" not in done.stdout


def test_the_demo_talks_to_the_demo_home():
    shown = run("demo").stdout
    assert "Turned on the light  ✓ read back" in shown
    assert "Undone. Kitchen ceiling light: off" in shown
    assert "it flickers when the mains voltage dips" in shown
    assert "6 of 7 turns needed no model at all. The bill: $0.00." in shown


def test_the_demo_has_colour_in_a_terminal():
    assert "\x1b[" in run("demo", "--pause", "0", FORCE_COLOR="1", TERM="xterm-256color").stdout


def test_the_demo_plays_without_unicode():
    done = run("demo", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "config.py line 45" in done.stdout


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


def test_ask_prints_only_the_answer(cli):
    done = cli("ask", "Is the front door locked?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes\n", "")
    assert list_sessions(cli) == []


def test_ask_reads_a_pipe_and_prints_json(cli):
    done = cli("ask", "-", "--json", input="Is the front door locked?\n")
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["response"]["final_message"]) == ("completed", "Yes")
    assert answer["request"]["message"] == "Is the front door locked?"


def test_an_empty_question_is_refused(cli):
    done = cli("ask", "-", input="\n")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_an_error_has_a_traceback_only_with_debug(cli):
    done = cli("show", "nonsense")
    assert done.returncode == 3
    assert done.stderr == "error: there is no session and no continuation 'nonsense'\n"
    assert "Traceback" in cli("--debug", "show", "nonsense").stderr


@pytest.mark.parametrize(
    ("reply", "exits", "says"),
    [
        (said("Four."), 0, ""),
        (failed(401, "invalid_api_key"), 5, "refused the key"),
        (failed(404, "model_not_found"), 5, "check its name"),
    ],
)
async def test_the_exit_code_reports_model_errors(cli, reply, exits, says):
    async with Wire(reply) as wire:
        done = await asyncio.to_thread(cli, "ask", "Two and two?", "--no-tools", **model_at(wire))
    assert done.returncode == exits, done.stderr
    assert says in done.stderr
    assert done.stdout == ("Four.\n" if exits == 0 else "")


async def test_ask_can_name_the_model(cli):
    async with Wire(said("Four.")) as wire:
        done = await asyncio.to_thread(cli, "ask", "Two and two?", "--model", "gpt-other", **model_at(wire))
    assert done.stdout == "Four.\n"
    assert wire.requests[0].body["model"] == "gpt-other"


async def test_a_question_without_tools_offers_none(cli):
    async with Wire(said("Four.")) as wire:
        await asyncio.to_thread(cli, "ask", "Two and two?", "--no-tools", **model_at(wire))
        assert "tools" not in wire.requests[-1].body
        await asyncio.to_thread(cli, "ask", "Two and two?", **model_at(wire))
        assert wire.requests[-1].body["tools"]


async def test_a_question_that_takes_too_long_can_be_resumed(cli):
    async with Wire(Reply(chunks=[chunk("Fo")], then="hang")) as wire:
        late = await asyncio.to_thread(
            cli, "ask", "Two and two?", "--timeout", "1", "--json", **model_at(wire)
        )
        assert late.returncode == 75
        turn = json.loads(late.stdout)
        assert turn["status"] == "interrupted"
        assert f"`sash resume {turn['continuation_id']}` continues it" in late.stderr
        # Nothing hangs now, also if it was too late for the first question to be asked.
        wire.replies = [said("Four.")]
        done = await asyncio.to_thread(cli, "resume", turn["continuation_id"], **model_at(wire))
    assert (done.returncode, done.stdout) == (0, "Four.\n"), done.stderr
    again = cli("resume", turn["continuation_id"])
    assert (again.returncode, again.stdout) == (4, "")


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_cancels_the_question(cli, by, code):
    async with Wire(Reply(chunks=[chunk("Fo")], then="hang")) as wire:
        environment = cli.environment | model_at(wire)
        program = await asyncio.create_subprocess_exec(SASH, "ask", "--keep", "Two and two?", env=environment)
        try:
            async with asyncio.timeout(WAIT_S):
                while not wire.requests:
                    await asyncio.sleep(0.01)
                program.send_signal(by)
                assert await program.wait() == code
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
    [session] = list_sessions(cli)
    assert (session["status"], session["stats"]["cancelled_turns"]) == ("active", 1)


def test_an_action_that_needs_approval_waits_for_it(cli):
    allowed = {"SASH_ALLOW_ACTUATION": "true", "SASH_ALLOWLISTED_SERVICES": "lock"}
    done = cli("ask", "Unlock the front door", "--json", **allowed)
    assert done.returncode == 75
    turn = json.loads(done.stdout)
    assert turn["status"] == "awaiting_approval"
    assert "The agent wants to unlock Front door lock (lock.front_door, now locked)" in done.stderr
    assert cli("resume", turn["continuation_id"]).returncode == 75, "there is no terminal to ask in"
    cancelled = cli("cancel", turn["continuation_id"], "--reason", "I have changed my mind")
    assert (cancelled.returncode, cancelled.stdout) == (0, "Cancelled.\n")
    shown = json.loads(cli("show", turn["continuation_id"], "--json").stdout)
    assert shown["steps"][-1]["detail"] == {"status": "cancelled", "reason": "I have changed my mind"}
    assert cli("cancel", turn["continuation_id"]).returncode == 4
    assert cli("cancel", "nonsense").returncode == 3


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
    assert cli("token", "revoke", token["id"]).returncode == 0
    assert json.loads(cli("token", "list", "--json").stdout)["tokens"] == []
    assert cli("token", "list").stderr == "There are no tokens: no client can use the server.\n"
    assert "no client could get in" in " ".join(cli("doctor").stdout.split())
    assert cli("token", "revoke", token["id"]).returncode == 3


async def test_a_question_with_a_wrong_token_for_the_home_exits_with_its_code(cli):
    async with FakeHomeAssistant() as home:
        where = {"SASH_HOME_URL": home.url, "SASH_HOME_TOKEN": "wrong"}
        done = await asyncio.to_thread(cli, "ask", "Is the front door locked?", **where)
    assert done.returncode == 6, done.stderr
    assert "token" in done.stderr


def test_an_unreachable_home_does_not_prevent_a_question(cli):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    done = cli("ask", "Remember that the cat is black", SASH_HOME_URL=nowhere, SASH_HOME_TOKEN="abc")
    assert done.returncode == 0
    assert "nothing listens there" in done.stderr
    assert "black" in cli("facts", "list", **NO_HOME).stdout


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
    assert "+ light.turn_on light.kitchen_ceiling: on  verified" in talk.stdout
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


def test_words_need_no_quotes(cli):
    assert cli("ask", "is", "the", "front", "door", "locked?").stdout == "Yes\n"
    assert "is the front door locked?" in cli("search", "front", "door").stdout


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


def test_the_shell_completes_the_turns_of_the_session_to_fork(cli):
    session, other = chat_once(cli), chat_once(cli, "--new")
    turn = json.loads(cli("show", session, "--json").stdout)["messages"][0]["continuation_id"]
    line = f"sash fork {session} --at "
    complete = {"_SASH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    shown = cli(**complete)
    assert shown.stdout.count(turn) == 1 and SENTENCE in shown.stdout and shown.stderr == ""
    assert turn not in cli(**complete | {"_TYPER_COMPLETE_ARGS": f"sash fork {other} --at "}).stdout
    assert turn not in cli(**complete | {"_TYPER_COMPLETE_ARGS": "sash fork --at "}).stdout


def test_ask_can_continue_a_session(cli):
    session = chat_once(cli)
    black = "Remember that the cat is black"
    assert cli("ask", black, "--session", session, **NO_HOME).returncode == 0
    shown = json.loads(cli("show", session, "--json").stdout)
    assert shown["session"]["status"] == "active"
    facts = json.loads(cli("facts", "list", "--json").stdout)["facts"]
    assert [fact["text"] for fact in facts] == [
        "the front door is green",
        "the cat is black",
    ]
    assert cli("ask", "Again?", "--session", "01ARZ3NDEKTSV4RRFFQ69G5FAV").returncode == 3


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
        assert (run_in_thread.returncode, run_in_thread.stdout) == (0, "Yes\n")
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=WAIT_S)
    assert (server.returncode, errors) == (0, "")
