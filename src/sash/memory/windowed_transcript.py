"""One conversation in memory: its transcript, and the window onto the transcript's newest part."""

from collections.abc import Callable, Collection
from typing import Any

from sash.memory.window import Eviction, Window
from sash.values.messages import MessageEntry, turns


class WindowedTranscript:
    """A window with all messages that were ever in it. Without a transcript, evicted messages are forgotten.

    `renderers` has a function for each message in the window, which returns a new dict in OpenAI's format.
    """

    __slots__ = ("renderers", "transcript", "window")

    def __init__(self, window: Window, transcript: list[MessageEntry] | None) -> None:
        self.window = window
        self.transcript = transcript
        self.renderers = {message.id: _make_renderer(message) for message in window}

    @property
    def messages(self) -> Collection[MessageEntry]:
        """The transcript, oldest message first; the messages in the window if there is no transcript."""
        return self.window if self.transcript is None else self.transcript

    def add(self, message: MessageEntry) -> tuple[Eviction, ...]:
        """Add a message and return the evictions that it caused."""
        evicted = self.window.add(message)
        if self.transcript is not None:
            self.transcript.append(message)
        self.renderers[message.id] = _make_renderer(message)
        for eviction in evicted:
            del self.renderers[eviction.message.id]
        return evicted

    def describe(self, message: MessageEntry) -> dict[str, Any]:
        """Return a message as JSON values, with the flag `in_window`."""
        return message.to_dict() | {"in_window": message.id in self.window}

    def get_evicted_turns(self) -> list[list[MessageEntry]]:
        """Return the evicted messages of each turn that lost some, oldest turn first."""
        evicted = ([m for m in turn if m.id not in self.window] for turn in turns(self.messages))
        return [turn for turn in evicted if turn]


def find_messages(newest_first: list[MessageEntry], words: list[str], limit: int) -> list[MessageEntry]:
    """Return the first `limit` messages that contain every word, in their text or in their tool calls.

    The words must be casefolded.
    """
    found: list[MessageEntry] = []
    for message in newest_first:
        calls = (f"{c['function']['name']} {c['function']['arguments']}" for c in message.tool_calls)
        text = "\n".join((message.text, *calls)).casefold()
        if all(word in text for word in words):
            found.append(message)
            if len(found) == limit:
                break
    return found


def _make_renderer(message: MessageEntry) -> Callable[[], dict[str, Any]]:
    """Return a function that returns the message as a new dict. Copying a flat dict is fastest."""
    if type(message.content) is str and not message.tool_calls:
        return message.to_openai().copy
    return message.to_openai
