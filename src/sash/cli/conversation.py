"""A conversation in the terminal: lines are read, turns are shown, and Ctrl-C ends the turn that runs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown, WaitingCall
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.cli.beside import Beside
from sash.cli.console import make_console, one_line, say
from sash.cli.lines import Lines, ask_for_yes
from sash.cli.screen import Screen, acts
from sash.cli.sessions import print_sessions
from sash.cli.show import may_use, print_context
from sash.cli.transcript import last_messages, words
from sash.cli.turns import Turns
from sash.cli.wanted import Wanted
from sash.errors import SashError, SessionBusy
from sash.values.continuations import UNDER_WAY
from sash.values.requests import Note, SendMessage
from sash.values.sessions import Session

LAST_MESSAGES = 6
LAST_SESSIONS = 10
LONGEST = 160
LEAVE = frozenset({"/quit", "/exit", "quit", "exit"})


class Conversation:
    """Talks in one session at a time."""

    session: Session

    def __init__(
        self, beside: Beside, desk: AgentService, caller: Caller, settings: Settings, *, yes: bool = False
    ) -> None:
        self._beside = beside
        self._desk = desk
        self._caller = caller
        self._settings = settings
        self._yes = yes
        self._console = make_console()
        self._screen = Screen(self._console)
        self._lines = Lines(self._console)
        self._turns = Turns(beside, desk, caller, self._screen, self._confirm)
        self._wanted = Wanted()
        self._commands: dict[str, tuple[Callable[[str], None], str]] = {
            "/undo": (self._undo, "take the last action back"),
            "/context": (self._context, "what the next model call is made of"),
            "/sessions": (self._sessions, "the newest sessions"),
            "/new": (self._new, "begin a new session"),
            "/switch": (self._switch, "ID: go on with another session"),
            "/remember": (self._remember, "TEXT: keep a fact"),
            "/resume": (self._resume, "go on with a turn that was interrupted, or waits for a yes"),
            "/help": (self._help, "this"),
        }

    def run(self, wanted: Wanted) -> None:
        """Talk until there are no more lines."""
        self._wanted = wanted
        self._enter(wanted)
        while (line := self._read()) is not None and line.lower() not in LEAVE:
            try:
                self._hear(line)
            except SashError as error:
                self._screen.end_line()
                say(make_console(stderr=True), f"error: {error.message}", "red")

    def _read(self) -> str | None:
        """Return the next line; Ctrl-C drops what was typed."""
        while True:
            try:
                return self._lines.read()
            except KeyboardInterrupt:
                if not self._lines.typed:
                    raise
                self._console.out("")
                self._say("Ctrl-D or /quit leaves.", "dim")

    def _hear(self, line: str) -> None:
        """Do what a line says; one that begins with a path is no command."""
        word, _, rest = line.partition(" ")
        if not word.startswith("/") or "/" in word[1:]:
            if line:
                self._send(line)
        elif word.lower() in self._commands:
            self._commands[word.lower()][0](rest.strip())
        else:
            self._say(f"There is no {word}: /help lists what there is.", "yellow")

    def _send(self, message: str) -> None:
        try:
            sent = self._beside.call(
                self._desk.send_message(self._caller, self.session.id, SendMessage(message=message))
            )
        except SessionBusy as busy:
            self._take_up(self._turns.stand(busy.continuation_id))
            self._say(f"This was not sent: {one_line(message, LONGEST)}", "yellow")
            return
        self._follow(sent.continuation_id)

    def _follow(self, continuation_id: str, waiting: ContinuationShown | None = None) -> None:
        """Show a turn, or go on with one that is waiting for a yes; who presses Ctrl-C has it cancelled."""
        turns = self._turns
        try:
            turn = turns.take_up(waiting) if waiting else turns.follow(self.session.id, continuation_id)
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):  # Who presses it twice wants no more than that.
                self._cancel(continuation_id)
            return
        self._screen.end(turn)
        if turn.status == "awaiting_approval":
            self._say(
                f"It waits for a yes: `sash resume {continuation_id}` or /resume asks you for it.", "yellow"
            )
        if turn.status == "interrupted":
            self._say("/resume goes on with it.", "yellow")

    def _cancel(self, continuation_id: str) -> None:
        self._screen.end_line()
        self._beside.call(self._desk.cancel(self._caller, continuation_id))
        turn = self._turns.stand(continuation_id)
        if turn.status == "completed":
            self._screen.end(turn)
            return
        self._say("Cancelled.", "yellow")
        if acts(turn):
            self._say("What it had done by then stays done:", "yellow")
            self._screen.actions(turn)

    def _confirm(self, call: WaitingCall) -> bool | None:
        if self._yes or not self._lines.typed:
            said = "yes (--yes)" if self._yes else "no: nobody is there to ask, and --yes was not said"
            self._say(f"It wants to use {call.in_words}", "yellow")
            self._say(f"  {said}", "dim")
            return self._yes
        return ask_for_yes(self._lines, self._console, call)

    def _enter(self, wanted: Wanted) -> None:
        """Go into a session: show where it was left, and go on with what is not over."""
        self.session = self._beside.call(wanted.find(self._desk, self._caller))
        said = self._beside.call(last_messages(self._desk, self._caller, self.session.id, LAST_MESSAGES))
        shown = self._beside.call(self._desk.get_session(self._caller, self.session.id))
        self._greet()
        for message in said:
            if message.role in ("user", "assistant") and words(message):
                mark = ">" if message.role == "user" else " "
                self._say(f"{mark} {one_line(words(message), LONGEST)}", "dim")
        self._lines.offer(words(message) for message in said if message.role == "user")
        self._turns.start_behind(self.session.id, said[-1].continuation_id if said else None)
        for continuation_id in shown.open_continuations:
            self._take_up(self._turns.stand(continuation_id))

    def _greet(self) -> None:
        settings = self._settings
        house = settings.home_url or ("the demo house" if settings.home == "demo" else "no house")
        name = f" ({self.session.name})" if self.session.name else ""
        model = settings.model or "offline model"
        may = may_use(self.session.policy)
        used = f" · may use {may}" if may else ""
        self._say(f"Sash · session {self.session.id}{name} · {house} · {model}{used}", "bold")
        if self._lines.typed:
            if not self.session.name:
                self._say(f"`sash chat --session {self.session.id}` goes on with it later.", "dim")
            self._say("/help lists the commands, Ctrl-C ends a turn, Ctrl-D leaves.", "dim")

    def _take_up(self, turn: ContinuationShown) -> None:
        """Go on with a turn that was left as it is, if that is wanted."""
        if turn.status == "awaiting_approval":
            self._say(f"This waits for a yes: {one_line(turn.request.message, LONGEST)}", "yellow")
            self._turns.start_behind(turn.session_id, turn.continuation_id)
            self._follow(turn.continuation_id, turn)
        elif turn.status in UNDER_WAY:
            self._explain_busy(turn.continuation_id)
        elif turn.status == "interrupted":
            self._say(f"This was interrupted: {one_line(turn.request.message, LONGEST)}", "yellow")
            if self._yes or self._lines.confirm("Go on with it?", default=True):
                self._go_on(turn)
            else:
                self._say("/resume goes on with it.", "yellow")

    def _go_on(self, turn: ContinuationShown) -> None:
        self._turns.start_behind(turn.session_id, turn.continuation_id)
        self._beside.call(self._desk.resume(self._caller, turn.continuation_id))
        self._follow(turn.continuation_id)

    def _explain_busy(self, continuation_id: str) -> None:
        self._say(
            f"The session is busy: another process runs its turn {continuation_id}. Wait for it, end it with "
            f"`sash cancel {continuation_id}`, or begin another session with /new.",
            "yellow",
        )

    def _undo(self, _: str) -> None:
        self._send("undo that")

    def _context(self, _: str) -> None:
        print_context(self._console, self._beside.call(self._desk.context(self._caller, self.session.id)))

    def _sessions(self, _: str) -> None:
        found = self._beside.call(self._desk.list_sessions(self._caller, limit=LAST_SESSIONS))
        print_sessions(self._console, found.sessions)

    def _new(self, _: str) -> None:
        self._enter(replace(self._wanted, session_id=None, name=None, new=True))

    def _switch(self, session_id: str) -> None:
        if session_id:
            self._enter(Wanted(session_id))
        else:
            self._say("/switch ID goes on with another session: /sessions lists them.", "yellow")

    def _remember(self, text: str) -> None:
        if text:
            self._beside.call(self._desk.remember(self._caller, self.session.id, Note(text=text)))
            self._say("Noted.")
        else:
            self._say("/remember TEXT keeps a fact for as long as the session lives.", "yellow")

    def _resume(self, _: str) -> None:
        shown = self._beside.call(self._desk.get_session(self._caller, self.session.id))
        turns = [self._turns.stand(continuation_id) for continuation_id in shown.open_continuations]
        for turn in turns:
            if turn.status == "interrupted":
                self._go_on(turn)
            else:
                self._take_up(turn)
        if not turns:
            self._say("Nothing was interrupted.")

    def _help(self, _: str) -> None:
        for word, (_command, does) in self._commands.items():
            self._say(f"  {word:10} {does}")
        self._say("  /quit      leave; so does Ctrl-D")

    def _say(self, text: str, style: str = "") -> None:
        say(self._console, text, style)
