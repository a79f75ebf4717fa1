"""`sash chat` shows what was asked for later when it is due, also while it waits for a line."""

from tests.surfaces.command_line import talk
from tests.surfaces.terminal import Terminal


async def test_a_reminder_is_shown_when_it_is_due(cli):
    with Terminal(cli, "chat") as terminal:
        await terminal.say("remind me in 1 second to drink")
        await terminal.until("drink.")
        await terminal.until("Reminder: drink.")
        await terminal.quit()


async def test_a_question_that_becomes_due_is_shown_before_a_yes_answers_it(cli):
    with Terminal(cli, "chat") as terminal:
        await terminal.say("unlock the front door in 1 second")
        await terminal.until("Unlock the front door lock?")
        await terminal.say("yes")
        await terminal.until("· unlocked Front door lock")
        await terminal.until("Done: unlock the front door.")
        await terminal.say("what time is it")
        await terminal.until("It is")
        await terminal.quit()
        assert terminal.shown.count("Done: unlock the front door.") == 1


async def test_with_yes_what_becomes_due_is_done_without_an_answer(cli):
    with Terminal(cli, "chat", "--yes") as terminal:
        await terminal.say("unlock the front door in 1 second")
        await terminal.until("approved by --yes")
        await terminal.until("Done: unlock the front door.")
        await terminal.quit()


def test_what_is_for_later_has_plain_lines(cli):
    shown = talk(
        cli,
        "turn off the kitchen light in 50 minutes",
        "what are you waiting for?",
        "cancel the kitchen light",
    )
    assert "  · noted it for later\n" in shown
    assert "  · cancelled 1 task\n" in shown
    assert "do later" not in shown and "cancel waiting" not in shown
