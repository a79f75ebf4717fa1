"""Test doubles for programs that build on Sash: a clock, a model and a store under the test's control."""

import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sash.ports.model import Answer, Delta, Model, ModelRequest, Stop, TextDelta, ToolCallDelta
from sash.ports.store import Store

_PIECE = re.compile(r"\S+\s*|\s+")


class FakeClock:
    """A clock that stands still until `advance` moves it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock by `seconds`. A negative number sets it back."""
        self._now += timedelta(seconds=seconds)


Line = str | Answer | Exception | Callable[[ModelRequest], str | Answer]


def calling(name: str, call_id: str = "call", content: str = "", **arguments: Any) -> Answer:
    """Return an answer that calls one tool; `both` joins several such answers."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Answer(content, ({"id": call_id, "type": "function", "function": function},))


def both(*answers: Answer) -> Answer:
    """Return one answer with the text and the tool calls of all these answers."""
    content = "".join(answer.content for answer in answers)
    return Answer(content, tuple(call for answer in answers for call in answer.tool_calls))


class ScriptedModel(Model):
    """A model that gives its answers in order and keeps the requests.

    An answer is a text, an `Answer`, an exception to raise, or a function of the request. The last answer is
    repeated.
    """

    name: str | None = None

    def __init__(self, *lines: Line) -> None:
        self.requests: list[ModelRequest] = []
        self._lines = lines

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        line = self._lines[min(len(self.requests), len(self._lines) - 1)]
        self.requests.append(request)
        if isinstance(line, Exception):
            raise line
        said = line(request) if callable(line) else line
        answer = Answer(said) if isinstance(said, str) else said
        for piece in _PIECE.findall(answer.content):
            yield TextDelta(piece)
        for index, call in enumerate(answer.tool_calls):
            function = call["function"]
            yield ToolCallDelta(index, call["id"], function["name"])
            yield ToolCallDelta(index, arguments=function["arguments"])
        yield answer.usage
        yield Stop("tool_calls" if answer.tool_calls else answer.stop_reason)


class FaultyStore:
    """A store that fails on demand: `fail("append", error)` makes the next append raise.

    With `after=True` the write happens and only its result is lost, as when a process dies after a commit.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._faults: dict[str, list[tuple[BaseException, bool]]] = {}

    def fail(self, verb: str, error: BaseException, *, times: int = 1, after: bool = False) -> None:
        """Make the next `times` calls of the store's method `verb` raise `error`."""
        self._faults.setdefault(verb, []).extend([(error, after)] * times)

    def heal(self) -> None:
        """Make all methods work again."""
        self._faults.clear()

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._store, verb)

        async def faulty(*args: Any, **kwargs: Any) -> Any:
            faults = self._faults.get(verb)
            error, after = faults.pop(0) if faults else (None, False)
            if error is not None and not after:
                raise error
            result = await method(*args, **kwargs)
            if error is not None:
                raise error
            return result

        return faulty
