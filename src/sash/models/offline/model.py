"""The offline model: it answers if nothing was understood, without a key and without a network.

It understands no sentences. The intents do that before any model is asked. If a sentence got as far as a tool
call that was refused or failed, it says so.
"""

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from sash.models.catalog import OFFLINE
from sash.models.offline.phrases import Phrases, choose_phrases
from sash.ports.intents import NOT_UNDERSTOOD
from sash.ports.model import Delta, Model, ModelRequest, Stop, TextDelta, Usage
from sash.ports.tools import DENIED_BY_USER

# A model that may call one of these tools serves a home.
_HOME_TOOLS = frozenset({"call_service", "get_states", "search_index"})
_NOT_DONE, _FAILED = "not done: ", "failed: "
_MAY_NOT_ACT = "I am not allowed"


class _Output(NamedTuple):
    """The result of a tool: parsed JSON, or the text itself if it is not JSON."""

    tool: str
    value: Any


class OfflineModel(Model):
    """A model without a network. It says that a sentence was not understood, or why a tool did nothing.

    `is_spoken` gives shorter answers for a voice.
    """

    name = OFFLINE

    def __init__(self, *, is_spoken: bool = False) -> None:
        self._is_spoken = is_spoken

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(self._answer(request))
        yield Usage(model=OFFLINE, is_free=True)
        yield Stop("stop")

    def _answer(self, request: ModelRequest) -> str:
        phrases = choose_phrases(request.messages)
        asked, *others = _get_turn(request.messages)
        outputs = [output for output in map(_read_output, others) if output is not None]
        if outputs and (text := _report(outputs[-1], phrases)):
            return text
        if _has_media(asked["content"]):
            return phrases.cannot_see_media
        if self._is_spoken:
            return phrases.not_understood
        tools = {tool["function"]["name"] for tool in request.tools}
        hint = phrases.home_hint if tools & _HOME_TOOLS else phrases.hint
        return f"{phrases.not_understood} {hint}"


def _get_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last user message and all messages after it."""
    start_index = max(index for index, message in enumerate(messages) if message["role"] == "user")
    return messages[start_index:]


def _read_output(message: dict[str, Any]) -> _Output | None:
    """Return the result of a tool; None for other messages and for a tool that understood nothing."""
    if message["role"] != "tool":
        return None
    try:
        value = json.loads(message["content"])
    except ValueError:
        value = message["content"]
    return None if value == NOT_UNDERSTOOD else _Output(message["name"], value)


def _has_media(content: Any) -> bool:
    return not isinstance(content, str) and any(part["type"] != "text" for part in content)


def _report(output: _Output, phrases: Phrases) -> str | None:
    """Return what the last tool did, or why it did nothing. None if it only read something."""
    if isinstance(output.value, str):
        return _explain(output.value, phrases)
    is_action = output.tool in ("call_service", "undo_last_action") and isinstance(output.value, dict)
    if not is_action:
        return None
    if output.value.get("dry_run"):
        return phrases.dry_run
    verified = output.value.get("verified")
    return phrases.done if verified else phrases.effect_not_seen if verified is False else phrases.unchecked


def _explain(reason: str, phrases: Phrases) -> str | None:
    """Return why a tool did nothing. The texts of tools are for a model, so they are not shown."""
    if reason.startswith(_NOT_DONE):
        if DENIED_BY_USER in reason:
            return phrases.denied
        return phrases.not_allowed if _MAY_NOT_ACT in reason else phrases.not_done
    return phrases.failed if reason.startswith(_FAILED) else None
