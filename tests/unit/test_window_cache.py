"""The windows that a process knows: taken by the turn that changes them, and never an old one for a new one."""

from dataclasses import replace
from datetime import UTC, datetime

from sash.engine import window_cache
from sash.engine.window_cache import CachedWindow, WindowCache
from sash.memory.window import Limits, Window
from sash.ports.turns import Lease, Turn
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import Session

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = Session("s", "ann", NOW, NOW)


def turn(session, window=None):
    continuation = Continuation("c", session.id, "ann", "running", NOW, NOW, ContinuationRequest("hi"))
    return Turn(Lease("c", session.id, "w", 1), continuation, session, window, (), 0)


def take(windows, turn):
    return windows.take(turn, MessageEntry.to_openai)


def test_a_window_is_known_until_a_turn_takes_it():
    windows, known = WindowCache(), CachedWindow(Window(Limits()), MessageEntry.to_openai)
    windows.put(SESSION, known)
    assert windows.session("s") is SESSION
    assert take(windows, turn(SESSION)) is known
    assert windows.session("s") is None
    assert take(windows, turn(SESSION)) is None


def test_a_window_of_another_version_is_not_taken_for_this_one():
    windows = WindowCache()
    windows.put(SESSION, CachedWindow(Window(Limits()), MessageEntry.to_openai))
    assert take(windows, turn(replace(SESSION, version=2))) is None


def test_the_window_that_came_with_a_turn_counts():
    windows, known = WindowCache(), CachedWindow(Window(Limits()), MessageEntry.to_openai)
    windows.put(SESSION, known)
    taken = take(windows, turn(SESSION, ConversationWindow("s")))
    assert taken is not None
    assert taken is not known


def test_the_oldest_windows_and_those_of_an_owner_are_forgotten():
    windows = WindowCache(max_windows=2)
    for name, owner in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        windows.put(
            replace(SESSION, id=name, owner=owner), CachedWindow(Window(Limits()), MessageEntry.to_openai)
        )
    assert [windows.session(name) is None for name in "abc"] == [True, False, False]
    windows.drop_owner("ann")
    assert [windows.session(name) is None for name in "abc"] == [True, False, True]


def test_the_windows_together_have_a_maximum_of_characters(monkeypatch):
    monkeypatch.setattr(window_cache, "MESSAGE_CHARS", 0)
    windows = WindowCache(max_chars=1000)

    def put(name, *texts):
        window = CachedWindow(Window(Limits()), MessageEntry.to_openai)
        for text in texts:
            message = MessageEntry("user", text, token_count=1)
            window.add(message, message.to_openai())
        windows.put(replace(SESSION, id=name), window)

    for name in ("a", "b"):
        put(name, "x" * 300, "x" * 100)
    put("c", "x" * 400)
    assert [name for name in "abc" if windows.session(name)] == ["b", "c"]
    put("huge", "x" * 2000)
    assert all(windows.session(name) is None for name in ("b", "c", "huge"))
