"""The command line, run as a user runs it."""

import asyncio
import inspect
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

import sash
from sash import errors
from sash.cli.exits import EPILOG, exit_code
from sash.cli.transcript import last_messages
from tests.models.wire import Reply, Wire, chunk, failed, said
from tests.surfaces.process import killed_if_late, running

SASH = str(Path(sys.executable).with_name("sash"))
COMMANDS = [
    "serve",
    "chat",
    "ask",
    "sessions",
    "show",
    "resume",
    "cancel",
    "export",
    "import",
    "search",
    "erase",
    "token",
    "mcp",
    "doctor",
    "demo",
]
WAIT_S = 60
# When nothing happens in the demo house: all is off, and locked.
NIGHT = datetime(2026, 1, 15, 3, tzinfo=UTC)
# The data folder that the tests copy was written a minute before they begin.
MINUTE_S = 60
AT_NIGHT = Path(__file__).with_name("at_night")
SENTENCE = "Remember that the front door is green"
NO_HOUSE = {"SASH_HOME": "none"}
# Input that is wrong only because of how things stand.
STATES = (errors.ContinuationOpen, errors.NotAwaitingApproval)


def run(*arguments, input=None, **environment):
    return subprocess.run(
        [SASH, *map(str, arguments)],
        input=input,
        capture_output=True,
        timeout=WAIT_S,
        env={"COLUMNS": "120", **environment},
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
    )


@dataclass
class House:
    """The program with a data folder of its own, a home without settings, and the demo house, at night."""

    folder: Path
    shift_s: float = field(default_factory=lambda: (NIGHT - datetime.now(UTC)).total_seconds())

    def __call__(self, *arguments, input=None, **environment):
        return run(*arguments, input=input, **self.environment | environment)

    @property
    def data(self):
        return self.folder / "data"

    @property
    def environment(self):
        clock = {"PYTHONPATH": str(AT_NIGHT), "CLOCK_SHIFT_S": str(self.shift_s)}
        return {"HOME": str(self.folder), "SASH_DATA": str(self.data), **clock}


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def spoken(house, *arguments, **environment):
    """Say something in a session that goes on, and return its id."""
    if arguments or environment or house.data.exists():
        return speak(house, *arguments, **environment)
    template = House(house.folder.parent / "spoken", house.shift_s - MINUTE_S)
    noted = template.folder / "session_id"
    if not noted.exists():
        template.folder.mkdir(exist_ok=True)
        noted.write_text(speak(template))
    shutil.copytree(template.data, house.data)
    return noted.read_text()


def speak(house, *arguments, **environment):
    done = house("chat", *arguments, input=f"{SENTENCE}\n", **NO_HOUSE | environment)
    assert done.returncode == 0, done.stderr
    return listed(house, **environment)[0]["id"]


def listed(house, *arguments, **environment):
    return json.loads(house("sessions", "--json", *arguments, **environment).stdout)["sessions"]


def kept(folder):
    """All that is in a folder, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


async def beside(*arguments, **options):
    """Run a call in a thread, for a server of the same test to go on."""
    return await asyncio.to_thread(*arguments, **options)


def model_at(wire, **others):
    at = {"SASH_MODEL": "gpt-test", "SASH_API_KEY": "sk-test", "SASH_API_BASE": f"{wire.url}/v1"}
    return {**at, **NO_HOUSE, **others}


def test_the_demo_shows_what_was_evicted_kept_and_lost():
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "5/5 turns" in done.stdout
    assert "← evicted: I'm debugging a function" in done.stdout
    for name in ("/api/users/123", "error code 500", "db.example.com:5432", "config.py line 45"):
        assert name in done.stdout
    assert done.stdout.count("✓ verbatim") == done.stdout.count("✗ lost") == 4
    assert "$0.00, no model was called" in done.stdout
    assert "\x1b[" not in done.stdout


def test_the_demo_talks_to_the_house():
    shown = run("demo").stdout
    assert "Turned on the light  ✓ read back" in shown
    assert "Undone. Kitchen ceiling light: off" in shown
    assert "it flickers when the mains voltage dips" in shown
    assert "6 of 7 turns needed no model at all. The bill: $0.00." in shown


def test_the_demo_has_colour_in_a_terminal():
    assert "\x1b[" in run("demo", "--pause", "0", FORCE_COLOR="1", TERM="xterm-256color").stdout


def test_the_demo_plays_where_there_is_no_unicode():
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
    for command in COMMANDS:
        assert f" {command} " in shown
    assert EPILOG.endswith("130 interrupted, 143 told to stop.")
    assert "75 not over yet" in " ".join(shown.split())


def test_the_help_and_the_version_import_nothing_heavy():
    program = (
        "import sys, runpy; sys.argv = ['sash', '--help']\n"
        "try: runpy.run_module('sash', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([name for name in ('sash.engine.runtime', 'pydantic', 'openai', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_module_is_the_same_program():
    done = subprocess.run(
        [sys.executable, "-m", "sash", "--version"], capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.stdout == f"sash {sash.__version__}\n"


def test_the_public_names_are_there_when_they_are_asked_for():
    assert sash.Runtime.__name__ == "Runtime"
    assert {name for name in sash.__all__ if getattr(sash, name, None) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sash.nonsense


def test_the_shell_completes_commands_and_sessions(house):
    session = spoken(house)
    complete = {"_SASH_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert "resume" in house(COMP_WORDS="sash re", **complete).stdout.split()
    shown = house(**{**complete, "COMP_WORDS": "sash show ", "COMP_CWORD": "2"})
    assert (shown.stdout.split(), shown.stderr) == ([session], "")


def test_the_shell_completes_nothing_where_nothing_is(house):
    shown = house(_SASH_COMPLETE="complete_bash", COMP_WORDS="sash show ", COMP_CWORD="2")
    assert (shown.stdout.strip(), shown.stderr) == ("", "")
    assert not house.data.exists()


def test_every_error_has_an_exit_code():
    raised = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SashError)
    ]
    by_code = {kind.code: exit_code(kind.code) for kind in raised}
    assert {code for code, number in by_code.items() if number == 1} == {"error", "tool_failed"}
    for kind in raised:
        if issubclass(kind, errors.InvalidInput):
            assert by_code[kind.code] == (4 if kind in STATES else 2)
        if issubclass(kind, errors.ModelError):
            assert by_code[kind.code] == 5
        if issubclass(kind, errors.HomeError) and kind is not errors.EntityNotFound:
            assert by_code[kind.code] == 6
        if kind.code.endswith("_not_found"):
            assert by_code[kind.code] == 3


def test_a_question_is_answered_with_the_answer_alone(house):
    done = house("ask", "Is the front door locked?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes\n", "")
    [session] = listed(house)
    assert (session["status"], session["stats"]["turns"]) == ("ended", 1)


def test_a_question_can_come_from_a_pipe_and_the_answer_be_json(house):
    done = house("ask", "-", "--json", input="Is the front door locked?\n")
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["response"]["final_message"]) == ("completed", "Yes")
    assert answer["request"]["message"] == "Is the front door locked?"


def test_a_question_in_a_session_is_part_of_it(house):
    session = spoken(house)
    black = "Remember that the cat is black"
    assert house("ask", black, "--session", session, **NO_HOUSE).returncode == 0
    shown = json.loads(house("show", session, "--json").stdout)
    assert shown["session"]["status"] == "active"
    assert [fact["text"] for fact in shown["session"]["memory"]["facts"]] == [
        "the front door is green",
        "the cat is black",
    ]
    assert house("ask", "Again?", "--session", "01ARZ3NDEKTSV4RRFFQ69G5FAV").returncode == 3


def test_an_empty_question_is_refused(house):
    done = house("ask", "-", input="\n")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_an_error_has_no_traceback_unless_it_is_asked_for(house):
    done = house("show", "nonsense")
    assert done.returncode == 3
    assert done.stderr == "error: there is no session and no continuation 'nonsense'\n"
    assert "Traceback" in house("--debug", "show", "nonsense").stderr


@pytest.mark.parametrize(
    ("reply", "exits", "says"),
    [
        (said("Four."), 0, ""),
        (failed(401, "invalid_api_key"), 5, "refused the key"),
        (failed(404, "model_not_found"), 5, "check its name"),
    ],
)
async def test_the_exit_code_says_how_the_model_did(house, reply, exits, says):
    async with Wire(reply) as wire:
        done = await beside(house, "ask", "Two and two?", "--no-tools", **model_at(wire))
    assert done.returncode == exits, done.stderr
    assert says in done.stderr
    assert done.stdout == ("Four.\n" if exits == 0 else "")


async def test_a_question_names_its_model(house):
    async with Wire(said("Four.")) as wire:
        done = await beside(house, "ask", "Two and two?", "--model", "gpt-other", **model_at(wire))
    assert done.stdout == "Four.\n"
    assert wire.requests[0].body["model"] == "gpt-other"


async def test_a_question_without_tools_offers_none(house):
    async with Wire(said("Four.")) as wire:
        await beside(house, "ask", "Two and two?", "--no-tools", **model_at(wire))
        assert "tools" not in wire.requests[-1].body
        await beside(house, "ask", "Two and two?", **model_at(wire))
        assert wire.requests[-1].body["tools"]


async def test_a_question_that_takes_too_long_can_be_resumed(house):
    async with Wire(Reply(chunks=[chunk("Fo")], then="hang")) as wire:
        late = await beside(house, "ask", "Two and two?", "--timeout", "1", "--json", **model_at(wire))
        assert late.returncode == 75
        turn = json.loads(late.stdout)
        assert turn["status"] == "interrupted"
        assert f"`sash resume {turn['continuation_id']}` goes on with it" in late.stderr
        # Nothing hangs now, also if it was too late for the first question to be asked.
        wire.replies = [said("Four.")]
        done = await beside(house, "resume", turn["continuation_id"], **model_at(wire))
    assert (done.returncode, done.stdout) == (0, "Four.\n"), done.stderr
    again = house("resume", turn["continuation_id"])
    assert (again.returncode, again.stdout) == (4, "")


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_question_that_is_broken_off_is_cancelled(house, by, code):
    async with Wire(Reply(chunks=[chunk("Fo")], then="hang")) as wire:
        environment = house.environment | model_at(wire)
        program = await asyncio.create_subprocess_exec(SASH, "ask", "Two and two?", env=environment)
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
    [session] = listed(house)
    assert (session["status"], session["stats"]["cancelled_turns"]) == ("ended", 1)


def test_what_needs_a_yes_waits_for_it(house):
    allowed = {"SASH_ALLOW_ACTUATION": "true", "SASH_ALLOWLISTED_SERVICES": "lock"}
    done = house("ask", "Unlock the front door", "--json", **allowed)
    assert done.returncode == 75
    turn = json.loads(done.stdout)
    assert turn["status"] == "awaiting_approval"
    assert (
        "It wants to use call_service: lock.unlock Front door lock (lock.front_door, now locked)"
        in done.stderr
    )
    assert house("resume", turn["continuation_id"]).returncode == 75, "nobody is there to say yes"
    cancelled = house("cancel", turn["continuation_id"], "--reason", "I have changed my mind")
    assert (cancelled.returncode, cancelled.stdout) == (0, "Cancelled.\n")
    shown = json.loads(house("show", turn["continuation_id"], "--json").stdout)
    assert shown["steps"][-1]["detail"] == {"status": "cancelled", "reason": "I have changed my mind"}
    assert house("cancel", turn["continuation_id"]).returncode == 4
    assert house("cancel", "nonsense").returncode == 3


def test_sessions_are_listed_newest_first(house):
    assert house("sessions").stderr == "There are no sessions: `sash chat` begins one.\n"
    house("ask", SENTENCE, **NO_HOUSE)
    chat = spoken(house)
    assert [session["status"] for session in listed(house)] == ["active", "ended"]
    assert [session["id"] for session in listed(house, "--status", "active")] == [chat]
    done = house("sessions", "--limit", "1")
    head, row = done.stdout.splitlines()
    assert head.split() == ["id", "name", "status", "turns", "tokens", "cost", "last", "used"]
    assert row.split()[:4] == [chat, "chat", "active", "1"]
    assert "\x1b[" not in done.stdout
    assert "There are more than 1" in done.stderr
    assert house("sessions", "--status", "nonsense").returncode == 2


def test_a_session_of_another_owner_is_not_there(house):
    session = spoken(house)
    assert house("show", session, "--owner", "eve").returncode == 3
    assert house("export", session, "--owner", "eve").returncode == 3
    assert listed(house, "--owner", "eve") == []


def test_who_stops_reading_gets_no_error(house):
    spoken(house)
    for arguments in (["sessions"], ["sessions", "--json"], ["export", listed(house)[0]["id"]]):
        gone, closed = os.pipe()
        os.close(gone)
        done = subprocess.run(
            [SASH, *arguments], stdout=closed, stderr=subprocess.PIPE, timeout=WAIT_S, env=house.environment
        )
        os.close(closed)
        assert (done.returncode, done.stderr) == (1, b"")


def test_what_is_shown_does_nothing_to_the_terminal(house):
    assert house("ask", "Remember that \x1b]0;owned\x07 the \x1b[31mcat is red", **NO_HOUSE).returncode == 0
    shown = house("show", listed(house)[0]["id"])
    assert "cat is red" in shown.stdout
    assert not {"\x1b", "\x07"} & set(shown.stdout)


def test_a_session_is_shown_with_its_messages_and_its_context(house):
    session = spoken(house, "--area", "Kitchen", "--allow", "light,cover", SASH_HOME="demo")
    house("chat", input="Which lights are on?\n")
    shown = house("show", session, "--messages", "2", "--context")
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    for told in ("name chat", "area Kitchen", "may use light, cover", "turns 2, 2 of them without a model"):
        assert told in words
    assert "user Which lights are on?" in words
    assert "assistant Not any" in words
    assert "system" in words
    assert "stays the same" in words
    parts = json.loads(house("show", session, "--context", "--json").stdout)["context"]["parts"]
    assert {"system", "tools", "window"} <= {part["name"] for part in parts}


def test_only_the_last_messages_are_shown(house):
    house(
        "chat", "--new", input="".join(f"Remember that number {n} is odd\n" for n in range(1, 8)), **NO_HOUSE
    )
    session = listed(house)[0]["id"]
    shown = json.loads(house("show", session, "--messages", "3", "--json").stdout)
    positions = [message["position"] for message in shown["messages"]]
    assert len(positions) == 3
    assert positions == list(range(positions[0], positions[0] + 3))
    everything = json.loads(house("show", session, "--messages", "1000", "--json").stdout)["messages"]
    assert everything[-3:] == shown["messages"]
    assert len(everything) == 7 * 4, "a user, a call, its result, an answer"
    assert json.loads(house("show", session, "--messages", "0", "--json").stdout)["messages"] == []


class Transcript:
    """A desk with a transcript of so many messages, which counts how often it is read."""

    def __init__(self, length):
        self._length, self.reads = length, 0

    async def list_messages(self, caller, session_id, *, after, limit):
        self.reads += 1
        return SimpleNamespace(messages=tuple(range(after + 1, min(self._length, after + limit) + 1)))


@pytest.mark.parametrize("length", [0, 1, 3, 1023, 1024, 1025, 70_000])
async def test_the_end_of_a_long_transcript_is_found_at_once(length):
    transcript = Transcript(length)
    found = await last_messages(transcript, None, "session", 3)
    assert found == tuple(range(max(1, length - 2), length + 1))
    assert transcript.reads < 40


def test_a_turn_is_shown_with_its_steps_and_actions(house):
    house("chat", "--allow", "light", input="Turn on the kitchen light\n")
    messages = json.loads(house("show", listed(house)[0]["id"], "--json").stdout)["messages"]
    shown = house("show", messages[-1]["continuation_id"]).stdout
    assert "→ call_service" in shown
    assert "✓ light.turn_on light.kitchen_ceiling: on  verified" in shown


def test_a_session_goes_to_another_house(house, tmp_path):
    session = spoken(house)
    file, other = tmp_path / "session.json", tmp_path / "other"
    exported = house("export", session, "-o", file)
    assert (exported.returncode, exported.stdout) == (0, ""), exported.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    brought = house("import", file, "--data", other, "--owner", "eve")
    assert (brought.returncode, brought.stdout) == (0, f"{session}\n"), brought.stderr
    there = json.loads(house("show", session, "--json", "--data", other, "--owner", "eve").stdout)
    here = json.loads(house("show", session, "--json").stdout)
    assert there["messages"] == here["messages"] != []
    assert house("import", file).returncode == 4, "it is here already"


def test_an_export_goes_through_a_pipe(house, tmp_path):
    session = spoken(house)
    exported = house("export", session).stdout
    assert json.loads(exported)["session"]["id"] == session
    brought = house("import", "-", "--data", tmp_path / "other", input=exported)
    assert brought.stdout == f"{session}\n"


def test_an_export_replaces_nothing_unless_it_is_told_to(house, tmp_path):
    session, file = spoken(house), tmp_path / "session.json"
    file.write_text("mine")
    refused = house("export", session, "-o", file)
    assert (refused.returncode, file.read_text()) == (2, "mine")
    assert "say --force" in refused.stderr
    assert house("export", session, "-o", file, "--force").returncode == 0
    assert json.loads(file.read_text())["format"] == "sash.session"


def test_an_export_that_fails_leaves_no_file(house, tmp_path):
    for session, file in (("nonsense", tmp_path / "a.json"), (spoken(house), tmp_path / "no" / "b.json")):
        before = set(tmp_path.rglob("*.json*"))
        failed = house("export", session, "-o", file)
        assert failed.returncode in (2, 3)
        assert set(tmp_path.rglob("*.json*")) == before


@pytest.mark.parametrize("content", ["", "not JSON", "[1]", '{"format": "foreign"}', "[" * 100_000])
def test_what_is_no_export_is_refused(house, tmp_path, content):
    file = tmp_path / "session.json"
    file.write_text(content)
    done = house("import", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert house("import", tmp_path / "missing.json").returncode == 2


def test_what_was_said_is_found(house):
    session = spoken(house)
    found = json.loads(house("search", "front door", "--json").stdout)["messages"]
    assert SENTENCE in [message["content"] for message in found]
    assert session in house("search", "front door").stdout
    assert house("search", "front door", "--session", session).returncode == 0
    assert house("search", "front door", "--session", "nonsense").returncode == 3
    nothing = house("search", "zebra")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing was found.\n")


def test_everything_is_erased_when_it_is_said_so(house):
    spoken(house)
    house("ask", SENTENCE, "--owner", "eve", **NO_HOUSE)
    refused = house("erase")
    assert refused.returncode == 2
    assert "Erase all 1 sessions of local, for good? Nobody is there to ask: say --yes" in refused.stderr
    assert len(listed(house)) == 1
    assert house("erase", "--yes").stdout == "Erased 1 sessions of local.\n"
    assert (listed(house), len(listed(house, "--owner", "eve"))) == ([], 1)


def test_a_token_is_shown_once_and_alone(house):
    made = house(
        "token", "create", "--scope", "read,act", "--scope", "admin", "--name", "phone", "--owner", "eve"
    )
    secret = made.stdout.strip()
    assert secret.startswith("sash_")
    assert secret not in made.stderr
    assert "may read, act, admin" in made.stderr
    shown = house("token", "list").stdout + house("token", "list", "--json").stdout
    assert "phone" in shown
    assert "eve" in shown
    assert secret.split("_", 2)[2] not in shown
    assert "hash" not in shown
    assert secret.split("_", 2)[2] not in (house.data / "tokens.json").read_text()
    assert stat.S_IMODE((house.data / "tokens.json").stat().st_mode) == 0o600


def test_a_token_has_scopes_an_end_and_can_be_revoked(house):
    assert house("token", "list").stderr == "There are no tokens: on this machine everybody is let in.\n"
    house("token", "create", "--expires-days", "2")
    [token] = json.loads(house("token", "list", "--json").stdout)["tokens"]
    assert token["scopes"] == ["read", "converse"]
    assert token["expires_at"] > token["created_at"]
    assert house("token", "create", "--scope", "everything").returncode == 2
    assert house("token", "revoke", token["id"]).returncode == 0
    assert json.loads(house("token", "list", "--json").stdout)["tokens"] == []
    assert house("token", "revoke", token["id"]).returncode == 3


def findings(house, *arguments, **environment):
    done = house("doctor", "--json", *arguments, **environment)
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert done.returncode == (0 if report["ok"] else 1)
    return report, {check["check"]: check for check in report["checks"]}


def test_a_healthy_house_is_found_so_and_nothing_is_changed(house):
    report, checks = findings(house)
    assert report["ok"]
    assert "will be made" in checks["data"]["found"]
    assert "46 exposed entities" in checks["house"]["found"]
    assert not house.data.exists()
    spoken(house)
    before = kept(house.data)
    report, checks = findings(house)
    assert "is sound, schema" in checks["store"]["found"]
    assert report["ok"]
    assert kept(house.data) == before
    shown = house("doctor")
    assert "✓ ok    store" in shown.stdout
    assert "\x1b[" not in shown.stdout


def test_the_settings_in_force_are_shown_with_where_they_come_from(house, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('port = 9999\nhome = "none"\napi_key = "sk-from-the-file"\n')
    report, _ = findings(house, "--config", file, "--store", "files", SASH_HOME="demo")
    settings = {row["name"]: (row["value"], row["from"]) for row in report["settings"]}
    assert settings["port"] == ("9999", str(file))
    assert settings["home"] == ("demo", "environment")
    assert settings["store"] == ("files", "flag")
    assert settings["host"] == ("127.0.0.1", "default")
    assert settings["api_key"] == ("set", str(file))
    assert "sk-from-the-file" not in house("doctor", "--config", file).stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("port = 'many'", "port"),
        ("prot = 1", "did you mean port?"),
        ("= what", "cannot be read"),
        ("home_url = 'http://localhost:1'", "home_url needs home_token"),
    ],
)
def test_a_wrong_configuration_is_found(house, tmp_path, content, says):
    file = tmp_path / "my.toml"
    file.write_text(content)
    report, checks = findings(house, "--config", file)
    assert not report["ok"]
    assert says in checks["configuration"]["found"]
    refused = house("sessions", "--config", file)
    assert refused.returncode == 2
    assert says in refused.stderr


def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_house_and_a_model_that_are_not_there_are_found(house):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    report, checks = findings(
        house,
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


def test_a_house_that_is_away_keeps_nobody_from_asking(house):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    done = house("ask", "Remember that the cat is black", SASH_HOME_URL=nowhere, SASH_HOME_TOKEN="abc")
    assert done.returncode == 0
    assert "nothing listens there" in done.stderr
    assert "black" in house("show", listed(house)[0]["id"]).stdout


async def test_a_wrong_key_and_a_right_one_are_told_apart(house):
    async with Wire(failed(401, "invalid_api_key"), said("ok")) as wire:
        report, checks = await beside(findings, house, **model_at(wire))
        assert not report["ok"]
        assert "refused the key" in checks["model"]["found"]
        _, checks = await beside(findings, house, **model_at(wire))
        assert (checks["model"]["status"], checks["model"]["found"]) == ("ok", "gpt-test answers")


def test_a_folder_that_cannot_be_written_is_found(house, tmp_path):
    (tmp_path / "file").write_text("")
    report, checks = findings(house, "--data", tmp_path / "file" / "data")
    assert not report["ok"]
    assert "is no folder" in checks["data"]["found"]
    refused = house("sessions", "--data", tmp_path / "file" / "data")
    assert refused.returncode in (2, 7)
    assert "Traceback" not in refused.stderr
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        _, checks = findings(house, "--data", tmp_path / "locked" / "data")
        assert "cannot be written" in checks["data"]["found"]


def test_a_folder_that_others_can_read_is_noted(house):
    house.data.mkdir(mode=0o755)
    house.data.chmod(0o755)
    report, checks = findings(house)
    assert report["ok"]
    assert (checks["data"]["status"], checks["data"]["advice"]) == ("note", f"chmod 700 {house.data}")


def test_a_store_that_cannot_be_used_is_found(house):
    spoken(house)
    file = house.data / "sash.db"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    _, checks = findings(house)
    assert "was written by a newer Sash (schema 99" in checks["store"]["found"]
    assert house("sessions").returncode == 7
    file.write_bytes(b"this is no database, and was never one" * 100)
    _, checks = findings(house)
    assert (checks["store"]["status"], "cannot be read" in checks["store"]["found"]) == ("wrong", True)
    assert house("sessions").returncode == 7


def test_the_files_store_is_for_one_program_at_a_time(house):
    spoken(house, SASH_STORE="files")
    report, checks = findings(house, SASH_STORE="files")
    assert "can be read, layout 1" in checks["store"]["found"]
    before = kept(house.data)
    pipe = subprocess.PIPE
    environment = house.environment | {"SASH_STORE": "files"}
    with running(SASH, "chat", stdin=pipe, stdout=pipe, env=environment) as holder:
        with killed_if_late(holder):
            assert holder.stdout.readline().startswith("Sash")
        refused = house("sessions", SASH_STORE="files")
        _, checks = findings(house, SASH_STORE="files")
        holder.communicate(timeout=WAIT_S)
    assert refused.returncode == 7
    assert "in use by another process" in refused.stderr
    assert "`sash serve`" in refused.stderr
    assert "is open in another program" in checks["store"]["found"]
    assert report["ok"]
    assert kept(house.data).keys() == before.keys()


def test_a_server_that_others_can_reach_needs_a_token(house):
    report, checks = findings(house, SASH_HOST="0.0.0.0")
    assert not report["ok"]
    assert "`sash serve` would be refused" in checks["server"]["found"]
    refused = house("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "sash token create" in refused.stderr
    house("token", "create")
    report, checks = findings(house, SASH_HOST="0.0.0.0", SASH_PORT=str(closed_port()))
    assert report["ok"], checks
    (house.data / "tokens.json").write_text("[")
    assert not findings(house)[0]["ok"]


def test_a_port_that_is_taken_is_noted(house):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        report, checks = findings(house, SASH_PORT=port)
        assert report["ok"]
        assert (checks["server"]["status"], "in use" in checks["server"]["found"]) == ("note", True)
        assert house("serve", "--port", port).returncode == 2


def test_the_server_serves_the_sessions_of_the_commands(house):
    session = spoken(house)
    pipe = subprocess.PIPE
    environment = house.environment | {"COLUMNS": "200"}
    with running(SASH, "serve", "--port", "0", stdout=pipe, stderr=pipe, env=environment) as server:
        with killed_if_late(server):
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        with urlopen(f"{address}/v1/sessions", timeout=WAIT_S) as answer:
            assert [s["id"] for s in json.load(answer)["sessions"]] == [session]
        beside = house("ask", "Is the front door locked?", "--session", session)
        assert (beside.returncode, beside.stdout) == (0, "Yes\n")
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=WAIT_S)
    assert (server.returncode, errors) == (0, "")


def test_mcp_is_over_when_its_client_has_gone(house):
    done = house("mcp", input="", **NO_HOUSE)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_wrong_flags_are_refused_in_words(house):
    for arguments in (
        ["serve", "--port", "70000"],
        ["serve", "--log-level", "loud"],
        ["sessions", "--store", "oracle"],
    ):
        done = house(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_all_is_shown_where_there_is_no_unicode(house, encoding):
    environment = {"PYTHONIOENCODING": encoding}
    talk = house(
        "chat", "--allow", "light", input="Turn on the kitchen light\n/context\n/sessions\n", **environment
    )
    assert talk.returncode == 0, talk.stderr
    assert "+ light.turn_on light.kitchen_ceiling: on  verified" in talk.stdout
    house("ask", "Remember that the café is “closed”", **NO_HOUSE)
    assert "café is “closed”" in json.dumps(listed(house), ensure_ascii=False)
    for arguments in (["sessions"], ["doctor"], ["search", "kitchen"], ["show", listed(house)[0]["id"]]):
        done = house(*arguments, **environment)
        assert done.returncode == 0, done.stderr
    whole = house("show", listed(house)[0]["id"], "--json", **environment).stdout
    assert "café is “closed”" in json.dumps(json.loads(whole), ensure_ascii=False)


def test_doctor_knows_all_of_loopback(house):
    assert house("doctor", SASH_HOST="127.0.0.2", SASH_PORT=str(closed_port()), **NO_HOUSE).returncode == 0
    assert house("doctor", SASH_HOST="0.0.0.0", SASH_PORT=str(closed_port()), **NO_HOUSE).returncode == 1


def test_doctor_finds_a_session_that_cannot_be_read(house):
    session = spoken(house, SASH_STORE="files")
    [file] = house.data.glob(f"sessions/{session}/session.json")
    file.write_bytes(file.read_bytes()[:-50])
    done = house("doctor", SASH_STORE="files", **NO_HOUSE)
    assert done.returncode == 1 and "cannot be read" in done.stdout


def test_closed_input_and_a_full_disk_are_told_in_a_line(house):
    for command in ("ask -", "chat"):
        done = subprocess.run(
            ["bash", "-c", f"{SASH} {command} <&-"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=house.environment | NO_HOUSE,
        )
        assert "Traceback" not in done.stderr
    done = subprocess.run(
        ["bash", "-c", f"{SASH} sessions --json > /dev/full"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=house.environment | NO_HOUSE,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_what_cannot_be_written_is_told_once(house):
    spoken(house)
    for arguments in (["sessions"], ["sessions", "--json"], ["doctor"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [SASH, *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=WAIT_S,
                env=house.environment | NO_HOUSE,
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
def test_a_number_that_is_too_large_is_refused(house, arguments):
    done = house(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert arguments[-2] in done.stderr


def test_words_need_no_quotes(house):
    assert house("ask", "is", "the", "front", "door", "locked?").stdout == "Yes\n"
    assert "is the front door locked?" in house("search", "front", "door").stdout


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 120])
def test_tables_fit_and_ids_stay_whole(house, columns):
    house("ask", SENTENCE, **NO_HOUSE)
    session = spoken(house)
    sessions = house("sessions", COLUMNS=str(columns)).stdout.splitlines()
    found = house("search", "front door", "--session", session, COLUMNS=str(columns)).stdout.splitlines()
    for lines in (sessions, found):
        assert max(map(len, lines)) <= columns
        assert any(line.startswith(session) for line in lines)
        assert all(line == line.rstrip() for line in lines)
    told = " ".join(" ".join(sessions).split())
    assert "chat" in told
    assert "active" in told
    assert SENTENCE in " ".join(" ".join(found).split())
    assert (len(sessions) == 3) is (columns >= 40), "a line for each, if there is room"


def test_a_pipe_gets_no_blanks_at_the_ends_of_lines(house):
    session = spoken(house)
    program = {"stdout": subprocess.PIPE, "text": True, "timeout": WAIT_S, "env": house.environment}
    for arguments in (["doctor"], ["sessions"], ["search", "door"], ["show", session]):
        lines = subprocess.run([SASH, *arguments], **program).stdout.splitlines()
        assert lines
        assert [line for line in lines if line != line.rstrip()] == []


def test_who_reads_only_the_first_line_of_a_diagnosis_hears_no_alarm(house):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {SASH} doctor | head -1"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=house.environment | {"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_help_shows_a_flag_without_a_value(house):
    for command in (["sessions"], ["chat"], ["token", "list"], []):
        shown = house(*command, "--help").stdout
        assert "--help" in shown
        assert "<bool>" not in shown


def test_the_shell_completes_stores(house):
    words = {"COMP_WORDS": "sash sessions --store ", "COMP_CWORD": "3"}
    shown = house(_SASH_COMPLETE="complete_bash", **words)
    assert shown.stdout.split() == ["sqlite", "files", "memory"]


def test_a_folder_is_no_configuration(house, tmp_path):
    refused = house("sessions", "--config", tmp_path)
    assert refused.returncode == 2
    assert f"{tmp_path} is a folder" in refused.stderr


def test_the_folder_is_shown_also_if_nobody_chose_it(house, tmp_path):
    report, _ = findings(house, SASH_DATA="", XDG_DATA_HOME=str(tmp_path / "own"))
    settings = {row["name"]: (row["value"], row["from"]) for row in report["settings"]}
    assert settings["data"] == (str(tmp_path / "own" / "sash"), "default")


@pytest.mark.parametrize(
    ("settings", "check", "says"),
    [
        ({"SASH_VOCABULARY": "/nope.toml"}, "vocabulary", "/nope.toml"),
        ({"SASH_MAX_HISTORY_TURNS": "0"}, "sessions", "max_turns must be"),
        ({"SASH_OTEL_ENDPOINT": "nope"}, "spans", "nope"),
        ({"SASH_HOST": "nonsense host"}, "server", "'nonsense host' is no address"),
    ],
)
def test_what_keeps_the_server_from_starting_is_found(house, settings, check, says):
    report, checks = findings(house, **settings)
    assert not report["ok"]
    assert checks[check]["status"] == "wrong"
    assert says in checks[check]["found"]


def test_packages_that_spans_need_are_missed(house, tmp_path):
    (tmp_path / "lacking" / "opentelemetry").mkdir(parents=True)
    (tmp_path / "lacking" / "opentelemetry" / "__init__.py").write_text("raise ImportError('not here')")
    there = {"SASH_OTEL_ENDPOINT": "http://127.0.0.1:4318"}
    assert findings(house, **there)[1]["spans"]["status"] == "ok"
    report, checks = findings(house, PYTHONPATH=str(tmp_path / "lacking"), **there)
    assert not report["ok"]
    assert "sash[otel]" in checks["spans"]["found"]


def test_actions_without_an_allowlist_are_noted(house):
    report, checks = findings(house, SASH_ALLOW_ACTUATION="true")
    assert report["ok"]
    assert (checks["sessions"]["status"], "allowlist" in checks["sessions"]["found"]) == ("note", True)
    _, checks = findings(house, SASH_ALLOW_ACTUATION="true", SASH_ALLOWLISTED_SERVICES="light")
    assert checks["sessions"]["found"] == "agents may use light"


def test_a_turn_that_is_not_over_is_shown_with_what_to_do(house):
    allowed = {"SASH_ALLOW_ACTUATION": "true", "SASH_ALLOWLISTED_SERVICES": "lock"}
    session = spoken(house, **allowed)
    asked = house("ask", "Unlock the front door", "--session", session, "--json", **allowed)
    turn = json.loads(asked.stdout)["continuation_id"]
    shown = " ".join(house("show", session).stdout.split())
    assert f"not over {turn} waits for a yes: `sash resume {turn}` asks you for it" in shown


def test_a_session_that_is_there_already_says_what_to_do(house, tmp_path):
    file = tmp_path / "session.json"
    house("export", spoken(house), "-o", file)
    refused = house("import", file)
    assert refused.returncode == 4
    assert "or import it into another folder with --data" in refused.stderr
