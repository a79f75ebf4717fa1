"""A chat, as somebody has it in a terminal, and as a script has it through a pipe."""

import asyncio
import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from sash.stores.sqlite.store import SqliteStore
from tests.models.wire import Reply, Wire, chunk, failed, said, usage
from tests.surfaces.test_cli import NO_HOUSE, SASH, SENTENCE, WAIT_S, House, listed, model_at, spoken

# After this time without an answer to Ctrl-C, Enter is pressed.
NUDGE_S = 2
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
# Keys such as Ctrl-C are for the program whose terminal it is.
IN_A_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
HANGING = Reply(chunks=[chunk("Let me "), chunk("think about "), chunk("it")], then="hang")

_escapes = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x01\x02]")


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


class Terminal:
    """The program in a terminal of its own: what it shows is waited for, and keys are pressed."""

    def __init__(self, house, *arguments, program=(SASH,), **environment):
        self._master, slave = pty.openpty()
        given = {
            "COLUMNS": "120",
            "LINES": "40",
            "TERM": "xterm-256color",
            **house.environment,
            **environment,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_A_TERMINAL, *program, *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=given,
            start_new_session=True,
        )
        os.close(slave)
        self.raw = ""
        self._read = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(WAIT_S)
        os.close(self._master)

    async def until(self, text):
        """Wait until a text is shown behind the last one that was waited for."""
        seen = await asyncio.to_thread(self._wait_for, text, WAIT_S)
        assert seen, f"{text!r} was not shown: {self.shown[self._read :]!r}"

    async def interrupt(self, text):
        """Press Ctrl-C and wait until a text is shown.

        Python notices a Ctrl-C that comes just before it waits for a line only when the line is complete. So press
        Enter if nothing happens; at the next prompt it would be an empty line.
        """
        self.press(CTRL_C)
        if not await asyncio.to_thread(self._wait_for, text, NUDGE_S):
            self.press("\r")
            await self.until(text)

    def _wait_for(self, text, within_s):
        until = time.monotonic() + within_s
        while text not in self.shown[self._read :]:
            if not self._has_more(until):
                return False
            assert self._take(), f"it ended without {text!r}: {self.shown!r}"
        self._read = self.shown.index(text, self._read) + len(text)
        return True

    def _has_more(self, until):
        """Wait for something to read, or the end, until a time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        return bool(ready)

    def _take(self):
        try:
            new = os.read(self._master, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            return False
        self.raw += self._decoder.decode(new)
        return bool(new)

    @property
    def shown(self):
        return _escapes.sub("", self.raw).replace("\r", "")

    def press(self, keys):
        os.write(self._master, keys.encode())

    def type(self, line):
        self.press(f"{line}\r")

    async def leaves(self):
        """Wait for the end, and return the exit code."""
        return await asyncio.to_thread(self._leaves)

    def _leaves(self):
        until = time.monotonic() + WAIT_S
        while self._has_more(until):
            if not self._take():
                return self.process.wait(WAIT_S)
        raise AssertionError(f"it did not leave: {self.shown!r}")


def calls(name, **arguments):
    """An answer that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return Reply(chunks=[chunk(calls=[call]), chunk(finish="tool_calls"), usage(100, 10)])


def talk(house, *lines, arguments=(), **environment):
    done = house("chat", *arguments, input="".join(f"{line}\n" for line in lines), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_line_of_a_pipe_is_a_turn(house):
    shown = talk(house, "Is the front door locked?", "", "Which lights are on?")
    greeting, *answers = shown.splitlines()
    assert greeting.startswith("Sash · session 01")
    assert greeting.endswith("(chat) · the demo house · offline model")
    assert [line for line in answers if not line.startswith("  ")] == ["Yes", "Not any"]
    assert "\x1b[" not in shown


def test_the_next_chat_goes_on_where_the_last_one_was(house):
    talk(house, "Remember that the cat is black", **NO_HOUSE)
    again = talk(house, "what did I say about the cat?", **NO_HOUSE)
    assert "> Remember that the cat is black" in again
    assert "I was asked to remember: the cat is black" in again
    [session] = listed(house)
    assert (session["name"], session["stats"]["turns"]) == ("chat", 2)


def test_another_session_is_begun_or_gone_on_with_as_it_is_wanted(house):
    first = spoken(house)
    spoken(house, "--new")
    spoken(house, "--name", "kitchen", "--area", "Kitchen")
    spoken(house, "--name", "kitchen", "--language", "en")
    kitchen, new, chat = listed(house)
    assert [s["name"] for s in (kitchen, new, chat)] == ["kitchen", None, "chat"]
    assert kitchen["context"]["area"] == "Kitchen"
    assert kitchen["preferences"] == {"language": "en"}
    assert kitchen["stats"]["turns"] == 2
    spoken(house, "--session", new["id"])
    assert [s["stats"]["turns"] for s in listed(house)] == [2, 2, 1]
    assert chat["id"] == first


def test_a_session_is_what_it_was_begun_as(house):
    session = spoken(house)
    shown = talk(house, "Turn on the kitchen light", arguments=("--allow", "light"))
    assert "✓ light.turn_on light.kitchen_ceiling: on  verified" in shown
    begun, old = listed(house)
    assert (old["id"], old["policy"]["allow_actuation"]) == (session, False)
    assert begun["policy"]["allowlisted_services"] == ["light"]
    refused = house("chat", "--session", session, "--allow", "light", input="")
    assert refused.returncode == 2
    assert "said when it begins" in refused.stderr
    assert house("chat", "--session", "nonsense", input="").returncode == 3


def test_a_session_that_is_over_is_not_gone_on_with(house):
    house("ask", SENTENCE, **NO_HOUSE)
    done = house("chat", "--session", listed(house)[0]["id"], input="Hello\n")
    assert done.returncode == 4
    assert "is ended" in done.stderr


def test_commands_begin_with_a_slash(house):
    first = spoken(house, "--allow", "light")
    shown = talk(
        house,
        "Turn on the kitchen light",
        "/undo",
        "/remember the cat is black",
        "/remember",
        "/context",
        "/sessions",
        "/resume",
        "/nonsense",
        "/api/users is a path",
        "/help",
        "/new",
        "Is the front door locked?",
        f"/switch {first}",
        "/switch nonsense",
        "/switch",
        "/quit",
        "this is not said any more",
    )
    assert "Undone. Kitchen ceiling light: off" in shown
    assert "✓ undo_last_action  verified" in shown
    assert "Noted." in shown
    assert "tokens." in shown
    assert "Nothing was interrupted." in shown
    assert "There is no /nonsense: /help lists what there is." in shown
    assert "I cannot answer that without a language model" in shown
    assert shown.count("Sash · session") == 3
    assert "> /api/users is a path" in shown
    for command in ("/undo", "/context", "/sessions", "/new", "/switch", "/remember", "/help", "/quit"):
        assert f"  {command} " in shown
    new, old = listed(house)
    assert (old["id"], new["name"]) == (first, None)
    assert old["memory"]["facts"][-1]["text"] == "the cat is black"
    assert "this is not said any more" not in house("search", "said").stdout


def test_nobody_says_yes_through_a_pipe_unless_it_is_said_before(house):
    shown = talk(house, "Unlock the front door", "y", arguments=("--allow", "lock"))
    assert "It wants to use call_service: lock.unlock Front door lock (lock.front_door, now locked)" in shown
    assert "no: nobody is there to ask, and --yes was not said" in shown
    assert "✗ lock.unlock" in shown
    shown = talk(house, "Unlock the front door", arguments=("--yes",))
    assert "✓ lock.unlock lock.front_door: unlocked  verified" in shown


async def test_a_model_that_fails_ends_the_turn_and_not_the_chat(house):
    async with Wire(failed(401, "invalid_api_key"), said("Hello ", "again.")) as wire:
        shown = await asyncio.to_thread(talk, house, "Why?", "And why?", **model_at(wire))
    assert "refused the key" in shown
    assert shown.index("refused the key") < shown.index("Hello again.")


async def test_an_answer_that_claims_what_was_not_done_is_not_left_standing(house):
    untrue = said("I have turned ", "on the ", "kitchen light.")
    async with Wire(untrue, said("I cannot ", "do that.")) as wire:
        shown = await asyncio.to_thread(
            talk, house, "Make it bright in here somehow", **model_at(wire, SASH_HOME="demo")
        )
    assert "that claims what no tool has done: it is asked again" in shown
    assert "I cannot do that." in shown


async def test_a_terminal_has_a_prompt_and_colours(house):
    with Terminal(house, "chat") as terminal:
        await terminal.until("Ctrl-D leaves.")
        await terminal.until("› ")
        terminal.type("Is the front door locked?")
        await terminal.until("Yes\n")
        await terminal.until("› ")
        terminal.press(CTRL_D)
        assert await terminal.leaves() == 0
        assert "\x1b[1;36m" in terminal.raw
        assert "\x1b[2m" in terminal.raw
    with Terminal(house, "chat", NO_COLOR="1") as terminal:
        await terminal.until("› ")
        terminal.press(UP)
        await terminal.until("Is the front door locked?")
        terminal.press("\r")
        await terminal.until("Yes\n")
        await terminal.until("› ")
        terminal.press(CTRL_D)
        assert await terminal.leaves() == 0
        assert "\x1b[1;36m" not in terminal.raw
        assert "\x1b[32m" not in terminal.raw


async def test_text_is_shown_as_it_is_written_and_ctrl_c_ends_the_turn(house):
    async with Wire(HANGING, said("Here ", "I am.")) as wire:
        with Terminal(house, "chat", **model_at(wire)) as terminal:
            await terminal.until("› ")
            terminal.type("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            await terminal.interrupt("Cancelled.")
            await terminal.until("› ")
            terminal.type("Are you there?")
            await terminal.until("Here I am.\n")
            await terminal.until("› ")
            terminal.press(CTRL_D)
            assert await terminal.leaves() == 0
    [session] = listed(house)
    assert session["stats"]["cancelled_turns"] == 1
    assert len(wire.requests) == 2
    assert "meaning" not in json.dumps(wire.requests[1].body), "what was cancelled leaves no trace"


async def test_what_was_done_before_a_turn_was_cancelled_is_spoken(house):
    acting = calls("call_service", service="light.turn_on", entity_ids=["light.kitchen_ceiling"])
    async with Wire(acting, HANGING) as wire:
        with Terminal(house, "chat", "--allow", "light", **model_at(wire, SASH_HOME="demo")) as terminal:
            await terminal.until("› ")
            terminal.type("Make it bright in here somehow")
            await terminal.until("← call_service")
            await terminal.until("Let me think about ")
            await terminal.interrupt("What it had done by then stays done:")
            await terminal.until("✓ light.turn_on light.kitchen_ceiling: on  verified")


async def test_ctrl_c_at_the_prompt_drops_the_line(house):
    with Terminal(house, "chat") as terminal:
        await terminal.until("› ")
        terminal.press("Turn everything off")
        await terminal.until("off")
        await terminal.interrupt("Ctrl-D or /quit leaves.")
        await terminal.until("› ")
        terminal.type("Is the front door locked?")
        await terminal.until("Yes\n")
        await terminal.until("› ")
        terminal.press(CTRL_D)
        assert await terminal.leaves() == 0
    assert listed(house)[0]["stats"]["turns"] == 1


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ("y", "✓ lock.unlock lock.front_door: unlocked  verified"),
        ("n", "✗ lock.unlock"),
        ("", "✗ lock.unlock"),
    ],
)
async def test_a_yes_is_asked_for_with_what_it_is_for(house, says, outcome):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until(
            "It wants to use call_service: lock.unlock Front door lock (lock.front_door, now locked)"
        )
        await terminal.until("lock.unlock needs a yes")
        await terminal.until("Shall it? [y/N] ")
        terminal.type("perhaps")
        await terminal.until("Shall it? [y/N] ")
        terminal.type(says)
        await terminal.until(outcome)
        await terminal.until("› ")


async def test_ctrl_c_at_a_question_ends_the_turn(house):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        await terminal.interrupt("Cancelled.")
        await terminal.until("› ")


async def test_a_question_can_be_left_open_and_answered_later(house):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.press(CTRL_D)
        await terminal.until("It waits for a yes: `sash resume ")
        await terminal.until("› ")
        terminal.press(CTRL_D)
        assert await terminal.leaves() == 0
    [turn] = json.loads(house("show", listed(house)[0]["id"], "--json").stdout)["open_continuations"]
    with Terminal(house, "resume", turn) as terminal:
        await terminal.until("Shall it? [y/N] ")
        terminal.type("y")
        await terminal.until("Unlocking\n")
        assert await terminal.leaves() == 0
    assert json.loads(house("show", turn, "--json").stdout)["response"]["actions"][0]["verified"] is True


async def test_the_next_chat_asks_for_the_yes_that_was_left_open(house):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        os.killpg(terminal.process.pid, signal.SIGKILL)
    with Terminal(house, "chat") as terminal:
        await terminal.until("This waits for a yes: Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.type("y")
        await terminal.until("✓ lock.unlock lock.front_door: unlocked  verified")


async def test_a_chat_whose_terminal_is_closed_marks_its_turn(house):
    async with Wire(HANGING) as wire:
        with Terminal(house, "chat", **model_at(wire)) as terminal:
            await terminal.until("› ")
            terminal.type("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            os.killpg(terminal.process.pid, signal.SIGHUP)
            assert await terminal.leaves() == 128 + signal.SIGHUP
    store = SqliteStore(house.data / "sash.db")
    await store.open()
    try:
        [session] = (await store.list_sessions("local")).items
        [turn] = await store.list_continuations("local", session.id)
        assert turn.status == "interrupted"
    finally:
        await store.close()


async def killed(house, wire, **environment):
    """Kill a chat in the middle of a turn, and return the turn."""
    with Terminal(house, "chat", **model_at(wire, **environment)) as terminal:
        await terminal.until("› ")
        terminal.type("What is the meaning of it all?")
        await terminal.until("Let me think about ")
        os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait(WAIT_S)
    shown = await asyncio.to_thread(house, "show", listed(house)[0]["id"], "--json")
    [turn] = json.loads(shown.stdout)["open_continuations"]
    return turn


async def test_a_chat_that_was_killed_goes_on(house):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await killed(house, wire)
        with Terminal(house, "chat", **model_at(wire)) as terminal:
            await terminal.until("This was interrupted: What is the meaning of it all?")
            await terminal.until("Go on with it? [Y/n] ")
            terminal.press("\r")
            await terminal.until("Forty-two.\n")
            await terminal.until("› ")
    assert json.loads(house("show", turn, "--json").stdout)["status"] == "completed"
    assert listed(house)[0]["stats"]["turns"] == 1


async def test_who_does_not_want_to_go_on_can_do_it_later(house):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        await killed(house, wire)
        with Terminal(house, "chat", **model_at(wire)) as terminal:
            await terminal.until("Go on with it? [Y/n] ")
            terminal.type("n")
            await terminal.until("/resume goes on with it.")
            terminal.type("/resume")
            await terminal.until("Forty-two.\n")


async def test_a_turn_that_was_killed_is_resumed_by_its_id(house):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await killed(house, wire)
        assert json.loads(house("show", turn, "--json").stdout)["status"] == "interrupted"
        done = await asyncio.to_thread(house, "resume", turn, "--json", **model_at(wire))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["response"]["final_message"] == "Forty-two."


async def test_a_command_does_its_own_work_and_no_other(house):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await killed(house, wire, SASH_RESUME_INTERRUPTED="true")
        other = await asyncio.to_thread(house, "ask", "What else?", **model_at(wire))
        assert other.stdout == "Forty-two.\n"
    assert json.loads(house("show", turn, "--json").stdout)["status"] == "interrupted"
    assert len(wire.requests) == 2


async def test_a_pipe_is_told_of_what_was_interrupted(house):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        await killed(house, wire)
        shown = await asyncio.to_thread(talk, house, "/resume", **model_at(wire))
    assert "This was interrupted: What is the meaning of it all?" in shown
    assert "Forty-two." in shown


async def test_a_busy_session_is_explained(house):
    async with Wire(HANGING) as wire:
        with Terminal(house, "chat", **model_at(wire)) as terminal:
            await terminal.until("› ")
            terminal.type("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            shown = await asyncio.to_thread(talk, house, "Hello", **model_at(wire))
            [session] = await asyncio.to_thread(listed, house)
            [turn] = json.loads(house("show", session["id"], "--json").stdout)["open_continuations"]
            assert shown.count(f"The session is busy: another process runs its turn {turn}.") == 2
            busy = await asyncio.to_thread(
                house, "ask", "Hello", "--session", session["id"], **model_at(wire)
            )
            assert busy.returncode == 4
            assert turn in busy.stderr
            cancelled = await asyncio.to_thread(house, "cancel", turn)
            assert cancelled.returncode == 0
            await terminal.until("This turn is cancelled.")


async def test_a_question_comes_before_everything_is_erased(house):
    spoken(house)
    for says, told, left in (("n", "Nothing was erased.", 1), ("y", "Erased 1 sessions of local.", 0)):
        with Terminal(house, "erase") as terminal:
            await terminal.until("Erase all 1 sessions of local, for good? [y/N] ")
            terminal.type(says)
            await terminal.until(told)
            assert await terminal.leaves() == (1 if says == "n" else 0)
        assert len(listed(house)) == left


async def test_what_takes_long_shows_how_far_it_is(house, tmp_path):
    session = spoken(house)
    program = "import sash.cli.progress as progress; progress.AFTER_S = 0\nfrom sash.cli import app; app()"
    file = tmp_path / "session.json"
    with Terminal(house, "export", session, "-o", file, program=(sys.executable, "-c", program)) as terminal:
        await terminal.until("Reading")
        await terminal.until("has the session with its 4 messages.")
        assert await terminal.leaves() == 0


async def test_an_error_is_red_in_a_terminal(house):
    with Terminal(house, "show", "nonsense") as terminal:
        await terminal.until("error: there is no session and no continuation 'nonsense'")
        assert await terminal.leaves() == 3
        assert "\x1b[31merror: " in terminal.raw


async def test_a_question_that_was_left_open_is_asked_again(house):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.press(CTRL_D)
        await terminal.until("or /resume asks you for it.")
        await terminal.until("› ")
        terminal.type("Is it open now?")
        await terminal.until("This waits for a yes: Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.press(CTRL_D)
        await terminal.until("This was not sent: Is it open now?")
        await terminal.until("› ")
        terminal.type("/resume")
        await terminal.until("This waits for a yes: Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.type("y")
        await terminal.until("✓ lock.unlock lock.front_door: unlocked  verified")
        await terminal.until("› ")
        terminal.type("/resume")
        await terminal.until("Nothing was interrupted.")
        assert "busy" not in terminal.shown


async def test_a_terminal_without_the_letters_of_an_earlier_line_opens(house):
    talk(house, "Remember that the café is “closed”", **NO_HOUSE)
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Terminal(house, "chat", **NO_HOUSE, **old) as terminal:
        await terminal.until("> Remember that the caf")
        await terminal.until("I will remember: the caf")
        await terminal.until("> ")
        terminal.type("/quit")
        assert await terminal.leaves() == 0


async def test_who_says_neither_yes_nor_no_is_told_what_to_type(house):
    with Terminal(house, "chat", "--allow", "lock") as terminal:
        await terminal.until("› ")
        terminal.type("Unlock the front door")
        await terminal.until("Shall it? [y/N] ")
        terminal.type("perhaps")
        await terminal.until("Type y for yes or n for no.")
        await terminal.until("Shall it? [y/N] ")


def test_the_greeting_says_what_may_be_used(house):
    assert "may use" not in talk(house)
    assert talk(house, arguments=("--allow", "light,switch.turn_off")).endswith(
        "offline model · may use light, switch.turn_off\n"
    )


async def test_a_session_beside_says_how_it_goes_on(house):
    shown = house("chat", "--help").stdout
    assert "unless it was begun with --new" in " ".join(shown.split())
    with Terminal(house, "chat", "--new") as terminal:
        await terminal.until("goes on with it later.")
        [session] = await asyncio.to_thread(listed, house)
        assert f"`sash chat --session {session['id']}` goes on with it later." in terminal.shown


@pytest.mark.parametrize("word", ["exit", "QUIT", "/Quit"])
def test_a_word_leaves(house, word):
    assert "Yes" not in talk(house, word, "Is the front door locked?")


def test_commands_are_the_same_in_capitals(house):
    assert "  /switch " in talk(house, "/HELP")


def test_what_was_not_done_is_told_with_its_reason_and_not_thrice(house):
    shown = talk(house, "Turn on the kitchen light", arguments=("--allow", "lock"))
    assert '✗ light.turn_on {"entity_ids": ["light.kitchen_ceiling"]}  not done: light.turn_on is' in shown
    assert "← call_service" not in shown
    shown = talk(house, "Unlock the front door")
    assert '✗ lock.unlock {"entity_ids": ["lock.front_door"]}  not done\n' in shown, "nobody has said no"


def test_what_costs_nothing_has_no_price(house):
    shown = talk(house, "Why is the sky blue?")
    assert " tokens · " in shown
    assert "$" not in shown
    assert "$" not in house("sessions").stdout


def test_what_may_be_used_is_named_as_a_service(house):
    for wrong in ("nonsense!!", "light.turn.on", "light, turn on"):
        refused = house("chat", "--allow", wrong, input="")
        assert refused.returncode == 2
        assert "is no domain (light) and no service" in " ".join(refused.stderr.split())
    assert listed(house) == []
    talk(house, arguments=("--allow", "light.*, switch"))


def test_an_area_and_a_language_that_nobody_knows_are_told(house):
    for right in (["--area", "Kitchen"], ["--language", "de"], ["--language", "en-GB"]):
        assert house("chat", *right, input="").stderr == ""
    assert "there is no area 'Nirwana'" in house("chat", "--area", "Nirwana", input="").stderr
    assert "klingon" in house("chat", "--language", "klingon", input="").stderr
    away = house("chat", "--area", "Nirwana", input="", **NO_HOUSE)
    assert (away.returncode, away.stderr) == (0, "")
