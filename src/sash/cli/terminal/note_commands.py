"""The slash commands of `sash chat` for notes. Facts belong to the user, pins to the session of the chat."""

from collections.abc import Callable

from anyio.from_thread import BlockingPortal
from rich.console import Console

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.cli.terminal.console import print_text
from sash.cli.terminal.note_tables import print_facts, print_pins
from sash.cli.terminal.portal import call
from sash.values.requests import Note, make_pin_request


class NoteCommands:
    """Lists and changes facts and pins. `get_session_id` returns the id of the present session."""

    def __init__(
        self,
        portal: BlockingPortal,
        service: AgentService,
        caller: Caller,
        console: Console,
        get_session_id: Callable[[], str],
    ) -> None:
        self._portal = portal
        self._service = service
        self._caller = caller
        self._console = console
        self._get_session_id = get_session_id

    @property
    def commands(self) -> dict[str, tuple[Callable[[str], None], str]]:
        """The function and the description of each command."""
        return {
            "/facts": (self._list_facts, "list the facts that all sessions know"),
            "/remember": (self._remember, "TEXT: store a fact"),
            "/forget": (self._forget, "ID: delete a fact"),
            "/pins": (self._list_pins, "list the pins of this session"),
            "/pin": (self._pin, "ENTITY or TEXT: show it to the agent in every turn"),
            "/unpin": (self._unpin, "ID: remove a pin"),
        }

    def _list_facts(self, _: str) -> None:
        facts = call(self._portal, self._service.list_facts(self._caller))
        if facts:
            print_facts(self._console, facts)
        else:
            self._print("There are no facts: /remember TEXT stores one.")

    def _remember(self, text: str) -> None:
        if text:
            call(self._portal, self._service.remember(self._caller, Note(text=text)))
            self._print("Noted.")
        else:
            self._print("/remember TEXT stores a fact for this and all later sessions.", "yellow")

    def _forget(self, fact_id: str) -> None:
        if fact_id:
            gone = call(self._portal, self._service.forget(self._caller, fact_id))
            self._print(f"Forgotten: {gone.text}")
        else:
            self._print("/forget ID deletes a fact: /facts lists them.", "yellow")

    def _list_pins(self, _: str) -> None:
        pins = call(self._portal, self._service.list_pins(self._caller, self._get_session_id()))
        if pins:
            print_pins(self._console, pins)
        else:
            self._print("This session has no pins: /pin ENTITY or TEXT adds one.")

    def _pin(self, text: str) -> None:
        if text:
            request = make_pin_request(text)
            call(self._portal, self._service.pin(self._caller, request, self._get_session_id()))
            self._print("Pinned.")
        else:
            self._print("/pin light.kitchen shows the state of that entity to the agent.", "yellow")

    def _unpin(self, pin_id: str) -> None:
        if pin_id:
            call(self._portal, self._service.unpin(self._caller, pin_id, self._get_session_id()))
            self._print("Unpinned.")
        else:
            self._print("/unpin ID removes a pin: /pins lists them.", "yellow")

    def _print(self, text: str, style: str = "") -> None:
        print_text(self._console, text, style)
