"""Knows whether code runs inside of a tool call of a turn, so that a turn does not wait for itself.

A tool may start a turn: a script of Home Assistant may talk to an agent. Such a turn is nested.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sash.errors import SessionBusy

# A turn may start another one. That one must not start a third: two agents could call each other for ever.
MAX_DEPTH = 1


@dataclass(slots=True)
class _Call:
    """A tool call of a session. Tasks that it has started may run on after its end."""

    session_id: str
    outer: "_Call | None"
    is_open: bool = True


_current: ContextVar[_Call | None] = ContextVar("sash_tool_call", default=None)


@contextmanager
def calling(session_id: str) -> Iterator[None]:
    """Mark what runs in this block, and the tasks that it starts, as a tool call of a session."""
    call = _Call(session_id, _current.get())
    token = _current.set(call)
    try:
        yield
    finally:
        call.is_open = False
        _current.reset(token)


def is_nested() -> bool:
    """Return True inside of a tool call of a turn."""
    return any(True for _ in _list_calls())


def check_not_nested(session_id: str | None = None) -> None:
    """Raise `SessionBusy` inside of a tool call of this session, or of a nested turn.

    The turn of the session waits for that call, so a new turn of it would wait for itself.
    """
    calls = list(_list_calls())
    if len(calls) > MAX_DEPTH or any(call.session_id == session_id for call in calls):
        raise SessionBusy("I am still answering in this conversation.", session_id=session_id)


def _list_calls() -> Iterator[_Call]:
    call = _current.get()
    while call is not None:
        if call.is_open:
            yield call
        call = call.outer
