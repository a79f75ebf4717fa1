"""`sash ask`: answers, exit codes, time limits, approvals and the session."""

import asyncio
import json
import signal

import pytest

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
)


def test_ask_prints_only_the_answer(cli):
    done = cli("ask", "Is the front door locked?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes, the front door lock is locked.\n", "")
    assert list_sessions(cli) == []


def test_ask_reads_a_pipe_and_prints_json(cli):
    done = cli("ask", "-", "--json", input="Is the front door locked?\n")
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["response"]["final_message"]) == (
        "completed",
        "Yes, the front door lock is locked.",
    )
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
    assert turn["question"] == turn["waiting_calls"][0]["question"] == "Unlock the front door lock?"
    assert done.stderr.startswith("Unlock the front door lock?\n")
    assert cli("resume", turn["continuation_id"]).returncode == 75, "there is no terminal to ask in"
    cancelled = cli("cancel", turn["continuation_id"], "--reason", "I have changed my mind")
    assert (cancelled.returncode, cancelled.stdout) == (0, "Cancelled.\n")
    shown = json.loads(cli("show", turn["continuation_id"], "--json").stdout)
    assert shown["steps"][-1]["detail"] == {"status": "cancelled", "reason": "I have changed my mind"}
    assert cli("cancel", turn["continuation_id"]).returncode == 4
    assert cli("cancel", "nonsense").returncode == 3


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
    done = cli("ask", "Is the front door locked?", SASH_HOME_URL=nowhere, SASH_HOME_TOKEN="abc")
    assert "cannot reach" in done.stdout, "the question needs the house"


def test_words_need_no_quotes(cli):
    assert (
        cli("ask", "is", "the", "front", "door", "locked?").stdout == "Yes, the front door lock is locked.\n"
    )
    assert "is the front door locked?" in cli("search", "front", "door").stdout


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


def test_ask_continues_or_starts_a_named_session(cli):
    for _ in range(2):
        assert cli("ask", SENTENCE, "--session", "home", **NO_HOME).returncode == 0
    [session] = list_sessions(cli)
    assert (session["name"], session["status"], session["stats"]["turns"]) == ("home", "active", 2)


def test_the_next_question_to_a_session_answers_its_approval_question(cli):
    assert cli("ask", "Unlock the front door", "--session", "home").returncode == 75
    done = cli("ask", "yes", "--session", "home", "--json")
    assert done.returncode == 0, done.stderr
    [action] = json.loads(done.stdout)["response"]["actions"]
    assert (action["arguments"]["service"], action["verified"]) == ("lock.unlock", True)
    assert cli("ask", "Lock the front door", "--session", "home").returncode in (0, 75)
    assert cli("ask", "Is the front door locked?", "--session", "home").returncode == 0
    assert json.loads(cli("show", list_sessions(cli)[0]["id"], "--json").stdout)["open_continuations"] == []


@pytest.mark.parametrize("session", [(), ("--session", "home")])
def test_ask_takes_a_language_and_an_area(cli, session):
    done = cli("ask", "Schließ die Haustür auf", "--language", "de", *session)
    assert done.stderr.startswith("Soll ich die Haustür aufschließen?\n")
    lit = cli("ask", "Turn on the light", "--area", "Kitchen", "--json", *session)
    assert "light.kitchen_ceiling" in json.dumps(json.loads(lit.stdout)["response"]["actions"]), lit.stderr
    assert "there is no area 'Nirwana'" in cli("ask", "Hello", "--area", "Nirwana", *session).stderr


FORBIDDEN = {"SASH_ALLOW_ACTUATION": "false"}


def list_actions(done):
    return [action["outcome"] for action in json.loads(done.stdout)["response"]["actions"]]


@pytest.mark.parametrize("allow", [("--allow", "light"), ("--allow",), ("--allow", "all"), ("--allow=*",)])
def test_allow_lets_one_question_control_devices(cli, allow):
    sentence = "Turn on the kitchen light"
    assert list_actions(cli("ask", sentence, "--json", **FORBIDDEN)) == ["denied"]
    for arguments in ((sentence, "--json", *allow), (*allow, sentence, "--json")):
        assert list_actions(cli("ask", *arguments, **FORBIDDEN)) == ["done"]
    assert list_actions(cli("ask", sentence, "--json", **FORBIDDEN)) == ["denied"]


def test_allow_allows_only_the_given_services(cli):
    done = cli("ask", "Turn on the kitchen light", "--json", "--allow", "lock,cover", **FORBIDDEN)
    assert list_actions(done) == ["denied"]
    assert cli("ask", "Hello", "--allow", "light.turn.on").returncode == 2


def test_what_the_operator_denies_stays_denied_with_allow(cli):
    denied = FORBIDDEN | {"SASH_DENYLISTED_SERVICES": "light"}
    assert list_actions(cli("ask", "Turn on the kitchen light", "--json", "--allow", **denied)) == ["denied"]
    confirmed = FORBIDDEN | {"SASH_REQUIRE_CONFIRMATION": "light"}
    done = cli("ask", "Turn on the kitchen light", "--allow", **confirmed)
    assert (done.returncode, done.stderr.splitlines()[0]) == (75, "Turn on the kitchen ceiling light?")


def test_a_session_that_does_not_allow_the_services_is_not_changed(cli):
    assert cli("ask", SENTENCE, "--session", "home", **FORBIDDEN).returncode == 0
    refused = cli("ask", "Turn on the kitchen light", "--session", "home", "--allow", "light", **FORBIDDEN)
    assert refused.returncode == 2
    assert "keeps the area and the allowed services" in refused.stderr
    assert cli("ask", SENTENCE, "--session", "other", "--allow", **FORBIDDEN).returncode == 0
    done = cli("ask", "Turn on the kitchen light", "--json", "--session", "other", "--allow", "light")
    assert list_actions(done) == ["done"]
