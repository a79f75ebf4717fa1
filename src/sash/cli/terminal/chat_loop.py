"""The loop of `sash chat`: it reads lines, runs slash commands and shows turns. Ctrl-C cancels a turn."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from anyio.from_thread import BlockingPortal

from sash.app.access import Caller
from sash.app.schemas import ContextShown, ContinuationShown, MessageShown
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.cli.session_choice import SessionChoice
from sash.cli.terminal.approval_question import print_question, print_reasons
from sash.cli.terminal.console import make_console, one_line, print_text
from sash.cli.terminal.fired_turns import FiredTurns
from sash.cli.terminal.line_input import LineInput
from sash.cli.terminal.note_commands import NoteCommands
from sash.cli.terminal.open_question import OpenQuestion
from sash.cli.terminal.portal import call
from sash.cli.terminal.session_view import describe_allowed_services, print_context, print_sessions
from sash.cli.terminal.turn_follower import TurnFollower
from sash.cli.terminal.turn_view import TurnView, find_actions
from sash.cli.transcript import last_messages, message_text
from sash.errors import ContinuationFinal, SashError, SessionBusy
from sash.values.clock import Clock, SystemClock
from sash.values.continuations import UNDER_WAY
from sash.values.requests import SendMessage
from sash.values.sessions import Session

MAX_OLD_MESSAGES = 6
MAX_SESSIONS = 10
MAX_LINE_CHARS = 160
EXIT_WORDS = frozenset({"/quit", "/exit", "quit", "exit"})


class ChatLoop:
    """A conversation in a terminal or a pipe, in one session at a time.

    It starts with `session`, which `choice` has selected. /new starts a session with the same options.
    """

    def __init__(
        self,
        portal: BlockingPortal,
        service: AgentService,
        caller: Caller,
        settings: Settings,
        choice: SessionChoice,
        session: Session,
        *,
        approve_all: bool = False,
        is_verbose: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._portal = portal
        self._service = service
        self._caller = caller
        self._settings = settings
        self._choice = choice
        self._session = session
        self._approve_all = approve_all
        self._console = make_console()
        self._view = TurnView(self._console, is_verbose=is_verbose)
        self._lines = LineInput(self._console)
        self._clock = clock or SystemClock()
        self._question: OpenQuestion | None = None
        # Held while a line is handled: what becomes due meanwhile is shown after it.
        self._busy = Lock()
        self._followed: set[str] = set()
        self._fired = FiredTurns(portal, service, caller, self._show_fired)
        self._follower = TurnFollower(portal, service, caller, self._view, self._confirm)
        notes = NoteCommands(portal, service, caller, self._console, lambda: self._session.id)
        self._commands: dict[str, tuple[Callable[[str], None], str]] = {
            "/undo": (lambda _: self._send("undo that"), "undo the last action"),
            "/context": (self._show_context, "show the parts of the next model call"),
            "/sessions": (self._list_sessions, "list the newest sessions"),
            "/new": (self._start_new, "start a new session"),
            "/switch": (self._switch, "ID: continue another session"),
            "/reset": (self._reset, "start over: the agent sees no earlier turn"),
            **notes.commands,
            "/resume": (self._resume, "continue a turn that was interrupted or waits for approval"),
            "/verbose": (self._toggle_verbose, "show or hide the exact calls of tools"),
            "/help": (self._show_help, "show this list"),
        }

    def run(self) -> None:
        """Run until the input ends or the user leaves."""
        self._enter_session()
        while (line := self._read_line()) is not None and line.lower() not in EXIT_WORDS:
            try:
                with self._busy:
                    self._handle_line(line)
            except SashError as error:
                self._view.end_line()
                print_text(make_console(stderr=True), f"error: {error.message}", "red")
        self._fired.close()
        if self._question is not None:
            self._explain_waiting(self._question.turn)

    def _read_line(self) -> str | None:
        """Return the next line, or None at the end.

        In a terminal, Ctrl-C discards the typed text; at an open question it cancels the turn.
        """
        while True:
            try:
                return self._lines.read_line()
            except KeyboardInterrupt:
                if not self._lines.is_terminal:
                    raise
                self._console.out("")
                if self._question is not None:
                    question, self._question = self._question, None
                    self._cancel(question.turn.continuation_id)
                    continue
                self._print("Press Ctrl-D or type /quit to leave.", "dim")

    def _handle_line(self, line: str) -> None:
        """Run a slash command or send a message. A line that starts with a path is a message."""
        word, _, rest = line.partition(" ")
        if not word.startswith("/") or "/" in word[1:]:
            if line:
                self._send(line)
        elif word.lower() in self._commands:
            run_command, _ = self._commands[word.lower()]
            run_command(rest.strip())
        else:
            self._print(f"There is no command {word}: /help lists the commands.", "yellow")

    def _send(self, message: str) -> None:
        """Send a message, or let it answer the open question. Any other message drops the question."""
        question, self._question = self._question, None
        approved = None if question is None else question.read_answer(message, self._clock.now())
        if question is not None and approved is not None:
            self._run_turn(
                question.turn.continuation_id, lambda: self._follower.answer(question.turn, approved)
            )
            return
        try:
            sent = call(
                self._portal,
                self._service.reply(self._caller, self._session.id, SendMessage(message=message)),
            )
        except SessionBusy as busy:
            self._offer_to_continue(self._follower.get_turn(busy.continuation_id))
            self._print(f"This message was not sent: {one_line(message, MAX_LINE_CHARS)}", "yellow")
            return
        self._follow(sent.id)

    def _follow(self, continuation_id: str) -> None:
        self._run_turn(continuation_id, lambda: self._follower.follow(self._session.id, continuation_id))

    def _run_turn(self, continuation_id: str, follow: Callable[[], ContinuationShown]) -> None:
        """Show a turn until it ends or asks something. Ctrl-C cancels it."""
        self._followed.add(continuation_id)
        try:
            turn = follow()
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):  # A second Ctrl-C only stops the wait for the cancellation.
                self._cancel(continuation_id)
            return
        if turn.status == "awaiting_approval":
            return  # `_confirm` has asked, and the next line answers.
        self._view.show_end(turn)
        if turn.status == "interrupted":
            self._print("/resume continues it.", "yellow")

    def _cancel(self, continuation_id: str) -> None:
        self._view.end_line()
        with suppress(ContinuationFinal):
            call(self._portal, self._service.cancel(self._caller, continuation_id))
        turn = self._follower.get_turn(continuation_id)
        if turn.status == "completed":
            self._view.show_end(turn)
            return
        self._print("Cancelled.", "yellow")
        if find_actions(turn):
            self._print("These actions were already done and stay done:", "yellow")
            self._view.show_actions(turn, with_done=True)

    def _confirm(self, waiting: ContinuationShown) -> bool | None:
        """Ask for the approval of a turn, or approve it with --yes. The next line is the answer."""
        self._view.end_line()
        print_question(self._console, waiting)
        if self._view.is_verbose:
            print_reasons(self._console, waiting)
        if self._approve_all:
            self._print("  approved by --yes", "dim")
            return True
        self._question = OpenQuestion(waiting, self._clock.now())
        if self._lines.is_terminal:
            self._print("  Answer yes or no. Any other message drops the question.", "dim")
        return None

    def _show_fired(self, turn: ContinuationShown) -> None:
        """Show what was asked for earlier and is due now: its question, or its result."""
        with self._busy:
            if turn.continuation_id in self._followed:
                return
            self._lines.leave_prompt()
            if turn.status == "awaiting_approval":
                self._follower.skip_events(turn.session_id, turn.continuation_id)
                if self._confirm(turn):
                    self._run_turn(turn.continuation_id, lambda: self._follower.answer(turn, approved=True))
            elif turn.response is not None:
                self._view.show_end(turn)
            self._lines.repeat_prompt()

    def _explain_waiting(self, turn: ContinuationShown) -> None:
        resume = f"`sash resume {turn.continuation_id}`"
        self._print(f"The turn waits for your approval: {resume} asks for it.", "yellow")

    def _change_session(self, choice: SessionChoice) -> None:
        self._session = call(self._portal, choice.resolve(self._service, self._caller))
        self._question = None
        self._enter_session()

    def _enter_session(self) -> None:
        """Show the last messages of the session, and offer to continue its unfinished turns."""
        session_id = self._session.id
        stored = call(self._portal, last_messages(self._service, self._caller, session_id, MAX_OLD_MESSAGES))
        messages = list(map(MessageShown.of, stored))
        unfinished = call(self._portal, self._service.open_continuations(self._caller, session_id))
        self._greet()
        for message in messages:
            if message.role in ("user", "assistant") and message_text(message):
                mark = ">" if message.role == "user" else " "
                self._print(f"{mark} {one_line(message_text(message), MAX_LINE_CHARS)}", "dim")
        self._lines.add_history(message_text(message) for message in messages if message.role == "user")
        self._follower.skip_events(session_id, messages[-1].continuation_id if messages else None)
        self._fired.watch(session_id)
        for turn in unfinished:
            self._offer_to_continue(self._follower.get_turn(turn.id))

    def _greet(self) -> None:
        settings = self._settings
        home = settings.home_url or ("the demo house" if settings.home == "demo" else "no house")
        name = f" ({self._session.name})" if self._session.name else ""
        model = settings.model or "offline model"
        services = describe_allowed_services(self._session.policy)
        allowed = f" · may use {services}" if services else ""
        self._print(f"Sash · session {self._session.id}{name} · {home} · {model}{allowed}", "bold")
        if self._lines.is_terminal:
            if not self._session.name:
                self._print(f"`sash chat --session {self._session.id}` continues it later.", "dim")
            self._print("/help lists the commands, Ctrl-C cancels a turn, Ctrl-D leaves.", "dim")

    def _offer_to_continue(self, turn: ContinuationShown) -> None:
        """Ask for the approval that an unfinished turn needs, or whether to continue it."""
        message = one_line(turn.request.message, MAX_LINE_CHARS)
        if turn.status == "awaiting_approval":
            self._print(f"This turn waits for your approval: {message}", "yellow")
            self._follower.skip_events(turn.session_id, turn.continuation_id)
            self._run_turn(turn.continuation_id, lambda: self._follower.ask_and_follow(turn))
        elif turn.status in UNDER_WAY:
            self._explain_busy(turn.continuation_id)
        elif turn.status == "interrupted":
            self._print(f"This turn was interrupted: {message}", "yellow")
            if self._approve_all or self._lines.confirm("Continue it?", default=True):
                self._continue(turn)
            else:
                self._print("/resume continues it.", "yellow")

    def _continue(self, turn: ContinuationShown) -> None:
        self._follower.skip_events(turn.session_id, turn.continuation_id)
        call(self._portal, self._service.resume(self._caller, turn.continuation_id))
        self._follow(turn.continuation_id)

    def _explain_busy(self, continuation_id: str) -> None:
        self._print(
            f"The session is busy: another process runs its turn {continuation_id}. Wait for it, end it with "
            f"`sash cancel {continuation_id}`, or start another session with /new.",
            "yellow",
        )

    def _show_context(self, _: str) -> None:
        report = call(self._portal, self._service.context_report(self._caller, self._session.id))
        print_context(self._console, ContextShown.of(report))

    def _list_sessions(self, _: str) -> None:
        found = call(self._portal, self._service.list_sessions(self._caller, limit=MAX_SESSIONS))
        print_sessions(self._console, found.items)

    def _start_new(self, _: str) -> None:
        self._change_session(replace(self._choice, session_id=None, name=None, new=True))

    def _switch(self, session_id: str) -> None:
        if session_id:
            self._change_session(SessionChoice(session_id))
        else:
            self._print("/switch ID continues another session: /sessions lists them.", "yellow")

    def _reset(self, _: str) -> None:
        self._session = call(self._portal, self._service.reset_session(self._caller, self._session.id))
        self._print("Started over. The transcript and the facts stay.")

    def _resume(self, _: str) -> None:
        unfinished = call(self._portal, self._service.open_continuations(self._caller, self._session.id))
        turns = [self._follower.get_turn(turn.id) for turn in unfinished]
        for turn in turns:
            if turn.status == "interrupted":
                self._continue(turn)
            else:
                self._offer_to_continue(turn)
        if not turns:
            self._print("There is no unfinished turn.")

    def _toggle_verbose(self, _: str) -> None:
        self._view.is_verbose = not self._view.is_verbose
        self._print(
            "Tools are shown with their exact calls."
            if self._view.is_verbose
            else "Tools are shown in short."
        )

    def _show_help(self, _: str) -> None:
        for word, (_command, description) in self._commands.items():
            self._print(f"  {word:10} {description}")
        self._print("  /quit      leave, like Ctrl-D")

    def _print(self, text: str, style: str = "") -> None:
        print_text(self._console, text, style)
