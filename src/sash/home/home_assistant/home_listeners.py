"""Sends the events of a home to its subscribers."""

import logging
from collections.abc import Callable

from sash.ports.home import Connected, HomeEvent, Listener

_logger = logging.getLogger(__name__)


class HomeListeners:
    """Sends events to all listeners. An error of one listener is logged, and the others get the event."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def __bool__(self) -> bool:
        """Return True if at least one listener would get an event."""
        return bool(self._listeners)

    def add(self, listener: Listener, *, is_connected: bool) -> Callable[[], None]:
        """Add a listener, which gets `Connected` at once if so. Return a function that removes it."""
        self._listeners.append(listener)
        if is_connected:
            _notify(listener, Connected())

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    def emit(self, event: HomeEvent) -> None:
        for listener in tuple(self._listeners):
            _notify(listener, event)


def _notify(listener: Listener, event: HomeEvent) -> None:
    try:
        listener(event)
    except Exception:
        _logger.exception("a listener failed")
