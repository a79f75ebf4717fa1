"""`sash chat` in a terminal and through a pipe."""

import asyncio
import json
import sys

import pytest

from tests.models.wire import Reply, Wire, chunk, failed, said, usage
from tests.surfaces.command_line import NO_HOME, SENTENCE, chat_once, list_sessions, model_at, talk
from tests.surfaces.terminal import HANGING, UP, Terminal


def call_tool(name, **arguments):
    """Return a model answer that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return Reply(chunks=[chunk(calls=[call]), chunk(finish="tool_calls"), usage(100, 10)])


def test_each_line_of_a_pipe_is_a_turn(cli):
    shown = talk(cli, "Is the front door locked?", "", "Which lights are on?")
    greeting, *answers = shown.splitlines()
    assert greeting.startswith("Sash · session 01")
    assert greeting.endswith("(chat) · the demo house · offline model · may use all services")
    assert [line for line in answers if not line.startswith("  ")] == [
        "Yes, the front door lock is locked.",
        "No lights are on.",
    ]
    assert "\x1b[" not in shown


def test_the_next_chat_continues_the_session(cli):
    talk(cli, "Remember that the cat is black", **NO_HOME)
    again = talk(cli, "what did I say about the cat?", **NO_HOME)
    assert "> Remember that the cat is black" in again
    assert "You said “Remember that the cat is black”." in again
    [session] = list_sessions(cli)
    assert (session["name"], session["stats"]["turns"]) == ("chat", 2)


def test_options_choose_the_session(cli):
    first = chat_once(cli)
    chat_once(cli, "--new")
    chat_once(cli, "--name", "kitchen", "--area", "Kitchen")
    chat_once(cli, "--name", "kitchen", "--language", "en")
    kitchen, new, chat = list_sessions(cli)
    assert [s["name"] for s in (kitchen, new, chat)] == ["kitchen", None, "chat"]
    assert kitchen["area"] == "Kitchen"
    assert kitchen["preferences"] == {"language": "en"}
    assert kitchen["stats"]["turns"] == 2
    chat_once(cli, "--session", new["id"])
    assert [s["stats"]["turns"] for s in list_sessions(cli)] == [2, 2, 1]
    assert chat["id"] == first


def test_a_session_keeps_its_policy(cli):
    session = chat_once(cli)
    shown = talk(cli, "Turn on the kitchen light", arguments=("--allow", "light"))
    assert "  · turned on Kitchen ceiling light\n" in shown
    begun, old = list_sessions(cli)
    assert (old["id"], old["policy"]["allow_actuation"]) == (session, False)
    assert begun["policy"]["allowlisted_services"] == ["light"]
    refused = cli("chat", "--session", session, "--allow", "light", input="")
    assert refused.returncode == 2
    assert "keeps the area and the allowed services" in refused.stderr
    assert cli("chat", "--session", "01ARZ3NDEKTSV4RRFFQ69G5FAV", input="").returncode == 3


def test_a_session_is_chosen_by_its_id_or_its_name(cli):
    talk(cli, SENTENCE, arguments=("--session", "kitchen"), **NO_HOME)
    talk(cli, SENTENCE, arguments=("--session", "kitchen"), **NO_HOME)
    [kitchen] = list_sessions(cli)
    assert (kitchen["name"], kitchen["stats"]["turns"]) == ("kitchen", 2)
    talk(cli, SENTENCE, arguments=("--session", kitchen["id"]), **NO_HOME)
    assert list_sessions(cli)[0]["stats"]["turns"] == 3


def test_an_ended_session_cannot_be_continued(cli):
    asked = json.loads(cli("ask", SENTENCE, "--json", **NO_HOME).stdout)
    done = cli("chat", "--session", asked["session_id"], input="Hello\n")
    assert done.returncode == 4
    assert "is ended" in done.stderr


def test_commands_begin_with_a_slash(cli):
    first = chat_once(cli, "--allow", "light")
    shown = talk(
        cli,
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
    assert "Undone: the kitchen ceiling light is off again." in shown
    assert "  · undid the last action: Kitchen ceiling light\n" in shown
    assert "Noted." in shown
    assert "tokens." in shown
    assert "There is no unfinished turn." in shown
    assert "There is no command /nonsense: /help lists the commands." in shown
    assert "I did not understand that." in shown
    assert shown.count("Sash · session") == 3
    assert "> /api/users is a path" in shown
    for command in ("/undo", "/context", "/sessions", "/new", "/switch", "/remember", "/verbose", "/help"):
        assert f"  {command} " in shown
    new, old = list_sessions(cli)
    assert (old["id"], new["name"]) == (first, None)
    facts = json.loads(cli("facts", "list", "--json").stdout)["facts"]
    assert facts[-1]["text"] == "the cat is black"
    assert "this is not said any more" not in cli("search", "said").stdout


def test_the_next_line_of_a_pipe_answers_the_approval_question(cli):
    shown = talk(cli, "Unlock the front door", "yes", "Lock the front door", arguments=("--allow", "lock"))
    assert "Unlock the front door lock?\n" in shown
    assert "  · unlocked Front door lock\n" in shown
    assert shown.index("Lock the front door lock?") < shown.index(
        "The turn waits for your approval: `sash resume "
    )
    for internal in ("lock.unlock", "lock.front_door", "call_service"):
        assert internal not in shown


@pytest.mark.parametrize("no", ["no", "never mind", "stop", "lass es"])
def test_a_no_in_a_chat_drops_the_action(cli, no):
    shown = talk(cli, "Unlock the front door", no, "Is the front door locked?", arguments=("--allow", "lock"))
    assert "✗ unlock front door  not done" in shown
    assert "\nYes" in shown


def test_another_sentence_in_a_chat_drops_the_question_and_is_answered(cli):
    asked = ("Unlock the front door", "Is the front door locked?", "yes")
    shown = talk(cli, *asked, arguments=("--allow", "lock"))
    assert "\nYes" in shown
    assert "unlocked" not in shown
    turns = json.loads(cli("show", list_sessions(cli)[0]["id"], "--json").stdout)
    assert turns["open_continuations"] == []


def test_yes_approves_every_action(cli):
    shown = talk(cli, "Unlock the front door", arguments=("--yes",))
    assert "Unlock the front door lock?\n  approved by --yes\n" in shown
    assert "  · unlocked Front door lock\n" in shown


def test_the_question_is_in_the_language_of_the_chat(cli):
    shown = talk(cli, "Schließ die Haustür auf", "lass es", arguments=("--language", "de"))
    assert "Soll ich die Haustür aufschließen?\n" in shown
    assert "unlocked" not in shown


def test_nothing_is_asked_when_nothing_would_change(cli):
    shown = talk(cli, "Lock the front door")
    assert "?" not in "".join(line for line in shown.splitlines() if "next:" not in line)
    assert "locked" in shown


async def test_a_model_that_fails_ends_the_turn_and_not_the_chat(cli):
    async with Wire(failed(401, "invalid_api_key"), said("Hello ", "again.")) as wire:
        shown = await asyncio.to_thread(talk, cli, "Why?", "And why?", **model_at(wire))
    assert "refused the key" in shown
    assert shown.index("refused the key") < shown.index("Hello again.")


async def test_an_answer_that_claims_an_undone_action_is_sent_back(cli):
    untrue = said("I have turned ", "on the ", "kitchen light.")
    async with Wire(untrue, said("I cannot ", "do that.")) as wire:
        shown = await asyncio.to_thread(
            talk, cli, "Make it bright in here somehow", **model_at(wire, SASH_HOME="demo")
        )
    assert "the answer claims an action that no tool performed: the model is asked again" in shown
    assert "I cannot do that." in shown


async def test_a_terminal_has_a_prompt_and_colours(cli):
    with Terminal(cli, "chat") as terminal:
        await terminal.until("Ctrl-D leaves.")
        await terminal.say("Is the front door locked?")
        await terminal.until("Yes")
        await terminal.quit()
        assert "\x1b[1;36m" in terminal.raw
        assert "\x1b[2m" in terminal.raw
    with Terminal(cli, "chat", NO_COLOR="1") as terminal:
        await terminal.until("› ")
        terminal.press(UP)
        await terminal.until("Is the front door locked?")
        terminal.press("\r")
        await terminal.until("Yes")
        await terminal.quit()
        assert "\x1b[1;36m" not in terminal.raw
        assert "\x1b[32m" not in terminal.raw


async def test_text_is_shown_while_it_is_written_and_ctrl_c_cancels_the_turn(cli):
    async with Wire(HANGING, said("Here ", "I am.")) as wire:
        with Terminal(cli, "chat", **model_at(wire)) as terminal:
            await terminal.say("What is the meaning of it all?")
            await terminal.until("Let me think about ")
            await terminal.interrupt("Cancelled.")
            await terminal.say("Are you there?")
            await terminal.until("Here I am.\n")
            await terminal.quit()
    [session] = list_sessions(cli)
    assert session["stats"]["cancelled_turns"] == 1
    assert len(wire.requests) == 2
    assert "meaning" not in json.dumps(wire.requests[1].body), "what was cancelled leaves no trace"


async def test_actions_before_a_cancellation_are_reported(cli):
    acting = call_tool("call_service", service="light.turn_on", entity_ids=["light.kitchen_ceiling"])
    async with Wire(acting, HANGING) as wire:
        with Terminal(cli, "chat", "--allow", "light", **model_at(wire, SASH_HOME="demo")) as terminal:
            await terminal.say("Make it bright in here somehow")
            await terminal.until("· turned on Kitchen ceiling light")
            await terminal.until("Let me think about ")
            await terminal.interrupt("These actions were already done and stay done:")
            await terminal.until("✓ turned on Kitchen ceiling light  verified")


async def test_ctrl_c_at_the_prompt_discards_the_line(cli):
    with Terminal(cli, "chat") as terminal:
        await terminal.until("› ")
        terminal.press("Turn everything off")
        await terminal.until("off")
        await terminal.interrupt("Press Ctrl-D or type /quit to leave.")
        await terminal.say("Is the front door locked?")
        await terminal.until("Yes")
        await terminal.quit()
    assert list_sessions(cli)[0]["stats"]["turns"] == 1


async def test_erase_asks_in_a_terminal(cli):
    chat_once(cli)
    for says, told, left in (("n", "Nothing was erased.", 1), ("y", "Erased 1 sessions of local.", 0)):
        with Terminal(cli, "erase") as terminal:
            await terminal.until("Erase all 1 sessions of local permanently? [y/N] ")
            terminal.type(says)
            await terminal.until(told)
            assert await terminal.leaves() == (1 if says == "n" else 0)
        assert len(list_sessions(cli)) == left


async def test_slow_work_shows_a_progress_bar(cli):
    program = (
        "from sash.cli.terminal.progress_bar import show_progress\n"
        "with show_progress('Reading', 10, delay_s=0) as advance: advance(5); input()"
    )
    with Terminal(cli, program=(sys.executable, "-c", program)) as terminal:
        await terminal.until("Reading")
        await terminal.until("50%")
        terminal.press("\r")
        assert await terminal.leaves() == 0


async def test_an_error_is_red_in_a_terminal(cli):
    with Terminal(cli, "show", "nonsense") as terminal:
        await terminal.until("error: there is no session and no continuation 'nonsense'")
        assert await terminal.leaves() == 3
        assert "\x1b[31merror: " in terminal.raw


async def test_history_that_the_terminal_cannot_show_is_skipped(cli):
    talk(cli, "Remember that the café is “closed”", **NO_HOME)
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Terminal(cli, "chat", **NO_HOME, **old) as terminal:
        await terminal.until("> Remember that the caf")
        await terminal.until("I will remember: the caf")
        await terminal.until("> ")
        terminal.type("/quit")
        assert await terminal.leaves() == 0


def test_the_greeting_lists_the_allowed_services(cli):
    assert "may use" not in talk(cli, SASH_ALLOW_ACTUATION="false")
    assert talk(cli, arguments=("--allow", "light,switch.turn_off")).endswith(
        "offline model · may use light, switch.turn_off\n"
    )


async def test_a_new_session_shows_how_to_continue_it(cli):
    shown = cli("chat", "--help").stdout
    assert "unless this chat was started with --new" in " ".join(shown.split())
    with Terminal(cli, "chat", "--new") as terminal:
        await terminal.until("continues it later.")
        [session] = await asyncio.to_thread(list_sessions, cli)
        assert f"`sash chat --session {session['id']}` continues it later." in terminal.shown


@pytest.mark.parametrize("word", ["exit", "QUIT", "/Quit"])
def test_a_word_ends_the_chat(cli, word):
    assert "Yes" not in talk(cli, word, "Is the front door locked?")


def test_slash_commands_ignore_case(cli):
    assert "  /switch " in talk(cli, "/HELP")


def test_an_undone_action_is_shown_once_with_its_reason(cli):
    shown = talk(cli, "Turn on the kitchen light", arguments=("--allow", "lock"))
    assert "✗ turn on kitchen ceiling  not done\n" in shown
    shown = talk(cli, "Turn on the kitchen light", arguments=("--allow", "lock", "--verbose"))
    assert (
        "✗ light.turn_on entity_ids: light.kitchen_ceiling  not done: I am not allowed to use light.turn_on"
        in shown
    )
    assert "← light.turn_on" not in shown
    shown = talk(cli, "Unlock the front door", "no", arguments=("--verbose",))
    assert "✗ lock.unlock entity_ids: lock.front_door  not done\n" in shown, (
        "the refusal is not explained again"
    )


def test_steps_are_shown_in_words(cli):
    asked = ("Turn on the kitchen light", "Why is the bathroom leak sensor unavailable?")
    shown = talk(cli, *asked, arguments=("--verbose",))
    assert "→ call_service service: light.turn_on, entity_ids: light.kitchen_ceiling\n" in shown
    assert "{" not in shown


def test_tool_lines_are_folded_to_one_short_line_each(cli):
    shown = talk(cli, "Turn on the kitchen light", "Why is the bathroom leak sensor unavailable?")
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  · ")]
    assert lines[0] == "· turned on Kitchen ceiling light"
    assert len(lines) == 1
    for internal in (
        "call_service",
        "search_index",
        "diagnose_entity",
        "entity_ids",
        "light.kitchen",
        "_",
        "{",
    ):
        assert internal not in shown


def test_verbose_shows_and_hides_the_exact_calls(cli):
    turn_on, turn_off = "Turn on the kitchen light", "Turn off the kitchen light"
    shown = talk(cli, "/verbose", turn_on, "/verbose", turn_off, arguments=("--allow", "light"))
    assert "→ call_service service: light.turn_on" in shown
    assert "light.turn_off" not in shown
    assert "  · turned off Kitchen ceiling light\n" in shown


def test_an_action_that_cannot_be_verified_has_one_line(cli):
    shown = talk(cli, "Run good night", "yes")
    assert shown.count("ran Good night") == 1
    assert "? ran Good night  the effect cannot be verified" in shown


def test_the_reason_of_a_failed_action_is_shown_once(cli):
    shown = talk(cli, "Undo that")
    assert shown.count("There is nothing that I could undo.") == 1


def test_a_free_turn_shows_no_price(cli):
    shown = talk(cli, "Mumble jumble")
    assert "  no model · " in shown
    session = list_sessions(cli)[0]["id"]
    turn = json.loads(cli("ask", "Mumble jumble", "--json").stdout)
    assert turn["stats"]["model_calls"] > 0
    assert (turn["stats"]["input_tokens"], turn["stats"]["cost_usd"]) == (0, 0)
    for printed in (
        shown,
        cli("sessions").stdout.replace("tokens", "", 1),
        "\n".join(line for line in cli("show", session).stdout.splitlines() if not line.startswith("window")),
        cli("show", turn["continuation_id"]).stdout,
    ):
        assert "$" not in printed and "token" not in printed, printed


async def test_a_turn_of_a_model_shows_its_tokens(cli):
    async with Wire(Reply(chunks=[chunk("Blue."), chunk(finish="stop"), usage(100, 10)])) as wire:
        shown = await asyncio.to_thread(talk, cli, "Why is the sky blue?", **model_at(wire))
    assert "110 tokens · " in shown


def test_allow_refuses_a_malformed_service(cli):
    for wrong in ("nonsense!!", "light.turn.on", "light,turn-on"):
        refused = cli("chat", "--allow", wrong, input="")
        assert refused.returncode == 2
        assert "is neither a domain (light) nor a service" in " ".join(refused.stderr.split())
    assert list_sessions(cli) == []
    talk(cli, arguments=("--allow", "light.*, switch"))


def test_an_unknown_area_or_language_gives_a_warning(cli):
    for right in (["--area", "Kitchen"], ["--language", "de"], ["--language", "en-GB"]):
        assert cli("chat", *right, input="").stderr == ""
    assert "there is no area 'Nirwana'" in cli("chat", "--area", "Nirwana", input="").stderr
    assert "klingon" in cli("chat", "--language", "klingon", input="").stderr
    away = cli("chat", "--area", "Nirwana", input="", **NO_HOME)
    assert (away.returncode, away.stderr) == (0, "")
