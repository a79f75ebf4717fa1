"""Turns that wait for approval, were interrupted, or run in another process."""

import asyncio
import json
import os
import signal

import pytest

from sash.stores.sqlite.store import SqliteStore
from tests.models.wire import Wire, said
from tests.surfaces.command_line import WAIT_S, list_sessions, model_at, talk
from tests.surfaces.terminal import CTRL_D, HANGING, Terminal

QUESTION = "Unlock the front door lock?\n"


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ("y", "· unlocked Front door lock"),
        ("n", "✗ unlock front door  not done"),
        ("never mind", "✗ unlock front door  not done"),
        ("Is the front door locked?", "Yes"),
    ],
)
async def test_the_next_line_answers_or_drops_an_approval_question(cli, says, outcome):
    with Terminal(cli, "chat", "--allow", "lock") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.until("Any other message drops the question.")
        await terminal.say(says)
        await terminal.until(outcome)
        await terminal.until("› ")


async def test_a_verbose_chat_says_why_it_asks(cli):
    with Terminal(cli, "chat", "--allow", "lock", "--verbose") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.until("Why it is asked: lock.unlock needs an approval")


async def test_ctrl_c_at_a_question_cancels_the_turn(cli):
    with Terminal(cli, "chat", "--allow", "lock") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.until("› ")
        await terminal.interrupt("Cancelled.")
        await terminal.until("› ")


async def test_an_approval_can_be_given_later(cli):
    with Terminal(cli, "chat", "--allow", "lock") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.until("› ")
        terminal.press(CTRL_D)
        await terminal.until("The turn waits for your approval: `sash resume ")
        assert await terminal.leaves() == 0
    [turn] = json.loads(cli("show", list_sessions(cli)[0]["id"], "--json").stdout)["open_continuations"]
    with Terminal(cli, "resume", turn) as terminal:
        await terminal.until("Unlock the front door lock? [y/N] ")
        terminal.type("perhaps")
        await terminal.until("Type y for yes or n for no.")
        await terminal.until("Unlock the front door lock? [y/N] ")
        terminal.type("y")
        await terminal.until("Unlocked the front door lock.")
        assert await terminal.leaves() == 0
    assert json.loads(cli("show", turn, "--json").stdout)["response"]["actions"][0]["verified"] is True


async def test_the_next_chat_asks_for_the_missing_approval(cli):
    with Terminal(cli, "chat", "--allow", "lock") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        os.killpg(terminal.process.pid, signal.SIGKILL)
    with Terminal(cli, "chat") as terminal:
        await terminal.until("This turn waits for your approval: Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.say("y")
        await terminal.until("· unlocked Front door lock")


async def test_closing_the_terminal_interrupts_the_turn(cli):
    async with Wire(HANGING) as wire:
        with Terminal(cli, "chat", **model_at(wire)) as terminal:
            await terminal.say("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            os.killpg(terminal.process.pid, signal.SIGHUP)
            assert await terminal.leaves() == 128 + signal.SIGHUP
    store = SqliteStore(cli.data / "sash.db")
    await store.open()
    try:
        [session] = (await store.list_sessions("local")).items
        [turn] = await store.list_continuations("local", session.id)
        assert turn.status == "interrupted"
    finally:
        await store.close()


async def kill_during_turn(cli, wire, **environment):
    """Kill a chat during a turn, and return the id of the turn."""
    with Terminal(cli, "chat", **model_at(wire, **environment)) as terminal:
        await terminal.say("What is the meaning of it all?")
        await terminal.until("Let me think about ")
        os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait(WAIT_S)
    shown = await asyncio.to_thread(cli, "show", list_sessions(cli)[0]["id"], "--json")
    [turn] = json.loads(shown.stdout)["open_continuations"]
    return turn


async def test_the_next_chat_continues_a_killed_turn(cli):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await kill_during_turn(cli, wire)
        with Terminal(cli, "chat", **model_at(wire)) as terminal:
            await terminal.until("This turn was interrupted: What is the meaning of it all?")
            await terminal.until("Continue it? [Y/n] ")
            terminal.press("\r")
            await terminal.until("Forty-two.\n")
            await terminal.until("› ")
    assert json.loads(cli("show", turn, "--json").stdout)["status"] == "completed"
    assert list_sessions(cli)[0]["stats"]["turns"] == 1


async def test_a_killed_turn_can_be_continued_later(cli):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        await kill_during_turn(cli, wire)
        with Terminal(cli, "chat", **model_at(wire)) as terminal:
            await terminal.until("Continue it? [Y/n] ")
            terminal.type("n")
            await terminal.until("/resume continues it.")
            terminal.type("/resume")
            await terminal.until("Forty-two.\n")


async def test_resume_continues_a_killed_turn(cli):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await kill_during_turn(cli, wire)
        assert json.loads(cli("show", turn, "--json").stdout)["status"] == "interrupted"
        done = await asyncio.to_thread(cli, "resume", turn, "--json", **model_at(wire))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["response"]["final_message"] == "Forty-two."


async def test_a_command_does_not_recover_other_turns(cli):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        turn = await kill_during_turn(cli, wire, SASH_RESUME_INTERRUPTED="true")
        other = await asyncio.to_thread(cli, "ask", "What else?", **model_at(wire))
        assert other.stdout == "Forty-two.\n"
    assert json.loads(cli("show", turn, "--json").stdout)["status"] == "interrupted"
    assert len(wire.requests) == 2


async def test_a_pipe_shows_an_interrupted_turn(cli):
    async with Wire(HANGING, said("Forty-", "two.")) as wire:
        await kill_during_turn(cli, wire)
        shown = await asyncio.to_thread(talk, cli, "/resume", **model_at(wire))
    assert "This turn was interrupted: What is the meaning of it all?" in shown
    assert "Forty-two." in shown


async def test_a_busy_session_is_explained(cli):
    async with Wire(HANGING) as wire:
        with Terminal(cli, "chat", **model_at(wire)) as terminal:
            await terminal.say("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            shown = await asyncio.to_thread(talk, cli, "Hello", **model_at(wire))
            [session] = await asyncio.to_thread(list_sessions, cli)
            [turn] = json.loads(cli("show", session["id"], "--json").stdout)["open_continuations"]
            assert shown.count(f"The session is busy: another process runs its turn {turn}.") == 2
            busy = await asyncio.to_thread(cli, "ask", "Hello", "--session", session["id"], **model_at(wire))
            assert busy.returncode == 4
            assert turn in busy.stderr
            cancelled = await asyncio.to_thread(cli, "cancel", turn)
            assert cancelled.returncode == 0
            await terminal.until("This turn is cancelled.")


async def test_a_chat_asks_again_on_request(cli):
    with Terminal(cli, "chat", "--allow", "lock") as terminal:
        await terminal.say("Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.say("/resume")
        await terminal.until("This turn waits for your approval: Unlock the front door")
        await terminal.until(QUESTION)
        await terminal.say("y")
        await terminal.until("· unlocked Front door lock")
        await terminal.say("/resume")
        await terminal.until("There is no unfinished turn.")
        assert "busy" not in terminal.shown
