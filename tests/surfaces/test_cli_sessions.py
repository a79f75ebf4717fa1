"""The commands of `sash` for stored sessions: list, show, search, export, import, erase."""

import json
import stat
import subprocess

import pytest

from sash.cli.transcript import last_messages
from sash.values.ids import is_ulid
from tests.surfaces.command_line import (
    NO_HOME,
    SASH,
    SENTENCE,
    WAIT_S,
    chat_once,
    list_sessions,
)


def test_sessions_are_listed_newest_first(cli):
    assert cli("sessions").stderr == "There are no sessions: `sash chat` starts one.\n"
    cli("ask", SENTENCE, **NO_HOME)
    assert list_sessions(cli) == []
    over = json.loads(cli("ask", SENTENCE, "--keep", "--json", **NO_HOME).stdout)["session_id"]
    assert cli("end", over).stdout == "Ended.\n"
    chat = chat_once(cli)
    assert [session["status"] for session in list_sessions(cli)] == ["active", "ended"]
    assert [session["id"] for session in list_sessions(cli, "--status", "active")] == [chat]
    done = cli("sessions", "--limit", "1")
    head, row = done.stdout.splitlines()
    assert head.split() == ["id", "name", "status", "turns", "tokens", "cost", "last", "used"]
    assert row.split()[:4] == [chat, "chat", "active", "1"]
    assert "\x1b[" not in done.stdout
    assert "There are more than 1" in done.stderr
    assert cli("sessions", "--status", "nonsense").returncode == 2


def test_a_session_of_another_owner_is_not_found(cli):
    session = chat_once(cli)
    assert cli("show", session, "--owner", "eve").returncode == 3
    assert cli("export", session, "--owner", "eve").returncode == 3
    assert list_sessions(cli, "--owner", "eve") == []


def test_a_session_is_shown_with_its_messages_and_its_context(cli):
    session = chat_once(cli, "--area", "Kitchen", "--allow", "light,cover", SASH_HOME="demo")
    cli("chat", input="Which lights are on?\n")
    shown = cli("show", session, "--messages", "2", "--context")
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    for told in ("name chat", "area Kitchen", "may use light, cover", "turns 2, 2 of them without a model"):
        assert told in words
    assert "user Which lights are on?" in words
    assert "assistant No lights are on." in words
    assert "system" in words
    assert "stays the same" in words
    parts = json.loads(cli("show", session, "--context", "--json").stdout)["context"]["parts"]
    assert {"system", "tools", "window"} <= {part["name"] for part in parts}


def test_only_the_last_messages_are_shown(cli):
    cli("chat", "--new", input="".join(f"Remember that number {n} is odd\n" for n in range(1, 8)), **NO_HOME)
    session = list_sessions(cli)[0]["id"]
    shown = json.loads(cli("show", session, "--messages", "3", "--json").stdout)
    positions = [message["position"] for message in shown["messages"]]
    assert len(positions) == 3
    assert positions == list(range(positions[0], positions[0] + 3))
    everything = json.loads(cli("show", session, "--messages", "1000", "--json").stdout)["messages"]
    assert everything[-3:] == shown["messages"]
    assert len(everything) == 7 * 4, "a user, a call, its result, an answer"
    assert json.loads(cli("show", session, "--messages", "0", "--json").stdout)["messages"] == []


class CountingService:
    """A service with a transcript of `length` messages. It counts the reads."""

    def __init__(self, length):
        self._length, self.reads = length, 0

    async def list_messages(self, caller, session_id, *, after, limit):
        self.reads += 1
        return list(range(after + 1, min(self._length, after + limit) + 1))


@pytest.mark.parametrize("length", [0, 1, 3, 1023, 1024, 1025, 70_000])
async def test_the_last_messages_need_few_reads(length):
    transcript = CountingService(length)
    found = await last_messages(transcript, None, "session", 3)
    assert found == list(range(max(1, length - 2), length + 1))
    assert transcript.reads < 40


def test_a_turn_is_shown_with_its_steps_and_actions(cli):
    cli("chat", "--allow", "light", input="Turn on the kitchen light\n")
    messages = json.loads(cli("show", list_sessions(cli)[0]["id"], "--json").stdout)["messages"]
    shown = cli("show", messages[-1]["continuation_id"]).stdout
    assert "→ call_service service: light.turn_on" in shown
    assert "from          Kitchen ceiling light (light.kitchen_ceiling): on, since" in shown
    assert "next          Undo that" in shown
    assert "✓ light.turn_on light.kitchen_ceiling: on  verified" in shown


def test_a_session_can_move_to_another_data_folder(cli, tmp_path):
    session = chat_once(cli)
    file, other = tmp_path / "session.json", tmp_path / "other"
    exported = cli("export", session, "-o", file)
    assert (exported.returncode, exported.stdout) == (0, ""), exported.stderr
    assert exported.stderr == f"Wrote the session with 4 messages to {file}.\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    brought = cli("import", file, "--data", other, "--owner", "eve")
    assert brought.returncode == 0, brought.stderr
    moved = brought.stdout.strip()
    there = json.loads(cli("show", moved, "--json", "--data", other, "--owner", "eve").stdout)
    here = json.loads(cli("show", session, "--json").stdout)
    assert moved != session, "another store gives new ids"
    assert [m["content"] for m in there["messages"]] == [m["content"] for m in here["messages"]] != []
    assert cli("import", file).returncode == 4, "it is here already"


def test_an_export_goes_through_a_pipe(cli, tmp_path):
    session = chat_once(cli)
    exported = cli("export", session).stdout
    assert json.loads(exported)["session"]["id"] == session
    brought = cli("import", "-", "--data", tmp_path / "other", input=exported)
    assert is_ulid(brought.stdout.strip())


def test_an_export_replaces_a_file_only_with_force(cli, tmp_path):
    session, file = chat_once(cli), tmp_path / "session.json"
    file.write_text("mine")
    refused = cli("export", session, "-o", file)
    assert (refused.returncode, file.read_text()) == (2, "mine")
    assert "with --force" in refused.stderr
    assert cli("export", session, "-o", file, "--force").returncode == 0
    assert json.loads(file.read_text())["format"] == "sash.session"


def test_a_failed_export_leaves_no_file(cli, tmp_path):
    for session, file in (("nonsense", tmp_path / "a.json"), (chat_once(cli), tmp_path / "no" / "b.json")):
        before = set(tmp_path.rglob("*.json*"))
        failed = cli("export", session, "-o", file)
        assert failed.returncode in (2, 3)
        assert set(tmp_path.rglob("*.json*")) == before


@pytest.mark.parametrize("content", ["", "not JSON", "[1]", '{"format": "foreign"}', "[" * 100_000])
def test_a_file_that_is_not_an_export_is_refused(cli, tmp_path, content):
    file = tmp_path / "session.json"
    file.write_text(content)
    done = cli("import", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert cli("import", tmp_path / "missing.json").returncode == 2


def test_search_finds_messages(cli):
    session = chat_once(cli)
    found = json.loads(cli("search", "front door", "--json").stdout)["messages"]
    assert SENTENCE in [message["content"] for message in found]
    assert session in cli("search", "front door").stdout
    assert cli("search", "front door", "--session", session).returncode == 0
    assert cli("search", "front door", "--session", "nonsense").returncode == 3
    nothing = cli("search", "zebra")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing was found.\n")


def test_erase_deletes_only_with_confirmation(cli):
    chat_once(cli)
    cli("ask", SENTENCE, "--owner", "eve", "--keep", **NO_HOME)
    refused = cli("erase")
    assert refused.returncode == 2
    assert (
        "Erase all 1 sessions of local permanently? There is no terminal to ask in: add --yes to confirm"
        in refused.stderr
    )
    assert len(list_sessions(cli)) == 1
    assert cli("erase", "--yes").stdout == "Erased 1 sessions of local.\n"
    assert (list_sessions(cli), len(list_sessions(cli, "--owner", "eve"))) == ([], 1)


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 120])
def test_tables_fit_and_ids_stay_whole(cli, columns):
    cli("ask", SENTENCE, "--keep", **NO_HOME)
    session = chat_once(cli)
    sessions = cli("sessions", COLUMNS=str(columns)).stdout.splitlines()
    found = cli("search", "front door", "--session", session, COLUMNS=str(columns)).stdout.splitlines()
    for lines in (sessions, found):
        assert max(map(len, lines)) <= columns
        assert any(line.startswith(session) for line in lines)
        assert all(line == line.rstrip() for line in lines)
    told = " ".join(" ".join(sessions).split())
    assert "chat" in told
    assert "active" in told
    assert SENTENCE in " ".join(" ".join(found).split())
    assert (len(sessions) == 3) is (columns >= 40), "a line for each, if there is room"


def test_a_pipe_gets_no_blanks_at_the_ends_of_lines(cli):
    session = chat_once(cli)
    program = {"stdout": subprocess.PIPE, "text": True, "timeout": WAIT_S, "env": cli.environment}
    for arguments in (["doctor"], ["sessions"], ["search", "door"], ["show", session]):
        lines = subprocess.run([SASH, *arguments], **program).stdout.splitlines()
        assert lines
        assert [line for line in lines if line != line.rstrip()] == []


def test_an_unfinished_turn_is_shown_with_the_command_to_continue(cli):
    allowed = {"SASH_ALLOW_ACTUATION": "true", "SASH_ALLOWLISTED_SERVICES": "lock"}
    session = chat_once(cli, **allowed)
    asked = cli("ask", "Unlock the front door", "--session", session, "--json", **allowed)
    turn = json.loads(asked.stdout)["continuation_id"]
    shown = " ".join(cli("show", session).stdout.split())
    assert f"unfinished {turn} waits for your approval: `sash resume {turn}` asks for it" in shown


def test_importing_an_existing_session_gives_advice(cli, tmp_path):
    file = tmp_path / "session.json"
    cli("export", chat_once(cli), "-o", file)
    refused = cli("import", file)
    assert refused.returncode == 4
    assert "or import it into another folder with --data" in refused.stderr


def test_a_session_is_ended_and_deleted(cli):
    session = chat_once(cli)
    assert cli("end", "nonsense").returncode == 3
    assert cli("end", session, "--reason", "done").returncode == 0
    assert cli("ask", SENTENCE, "--session", session, **NO_HOME).returncode == 4
    refused = cli("delete", session)
    assert refused.returncode == 2
    assert "Delete the ended session chat permanently? There is no terminal to ask in" in refused.stderr
    assert len(list_sessions(cli)) == 1
    assert cli("delete", session, "--yes").stdout == "Deleted.\n"
    assert list_sessions(cli) == []
    assert cli("delete", session, "--yes").returncode == 3
    assert cli("delete", session).returncode == 3


def test_a_session_is_forked_whole_or_at_a_turn(cli):
    session = chat_once(cli)
    cli("chat", input="Remember that the cat is black\n", **NO_HOME)
    exported = json.loads(cli("export", session).stdout)
    first = exported["continuations"][0]["id"]
    whole, part = cli("fork", session).stdout.strip(), cli("fork", session, "--at", first).stdout.strip()
    texts = [cli("show", copy, "--messages", "100").stdout for copy in (whole, part)]
    assert ["the cat is black" in text for text in texts] == [True, False]
    assert all(SENTENCE in text for text in texts)
    assert cli("fork", session, "--at", "nonsense").returncode == 3
    assert len(list_sessions(cli)) == 3


def test_cleanup_deletes_sessions_that_are_over(cli):
    active = chat_once(cli)
    over = cli("fork", active).stdout.strip()
    assert cli("cleanup").stdout == "There is nothing to delete.\n"
    cli("end", over)
    cli("ask", SENTENCE, **NO_HOME)
    assert cli("cleanup", "--dry-run", "--older-than", "1").stdout == ""
    found = cli("cleanup", "--dry-run").stdout.split()
    assert found[0] == over and len(found) == 2
    refused = cli("cleanup")
    assert refused.returncode == 2
    assert "Delete 2 ended and expired sessions of local permanently?" in refused.stderr
    assert cli("cleanup", "--older-than", "1", "--yes").stdout == "Deleted 0 sessions of local.\n"
    assert cli("cleanup", "--yes").stdout == "Deleted 2 sessions of local.\n"
    assert [session["id"] for session in list_sessions(cli)] == [active]
    assert cli("cleanup", "--older-than", "-1", "--yes").returncode == 2
