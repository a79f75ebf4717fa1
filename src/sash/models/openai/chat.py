"""Models behind Chat Completions, OpenAI's and those of the many servers that speak the same format."""

import json
from collections.abc import Awaitable
from typing import Any

from openai import AsyncOpenAI

from sash.errors import ContentFiltered
from sash.models.openai.endpoint import EndpointModel
from sash.ports.model import (
    Delta,
    ModelRequest,
    ReasoningDelta,
    Stop,
    TextDelta,
    ToolCallDelta,
    Usage,
)


class OpenAIChat(EndpointModel):
    """A model that answers by Chat Completions, streamed."""

    def _begin(self, sdk: AsyncOpenAI, request: ModelRequest, model: str) -> Awaitable[Any]:
        begun: Awaitable[Any] = sdk.chat.completions.create(**_arguments(request, model))
        return begun

    def _read(self, event: Any, model: str) -> list[Delta]:
        return _deltas(event, model)


def _arguments(request: ModelRequest, model: str) -> dict[str, Any]:
    config = request.config
    arguments: dict[str, Any] = {
        "model": model,
        "messages": request.messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = request.tools
    if config.temperature is not None:
        arguments["temperature"] = config.temperature
    if config.max_output_tokens is not None:
        arguments["max_completion_tokens"] = config.max_output_tokens
    if config.options:
        # Into the body and nowhere else: as arguments some would be the SDK's own, its headers among them.
        arguments["extra_body"] = dict(config.options)
    return arguments


def _deltas(chunk: Any, model: str) -> list[Delta]:
    deltas: list[Delta] = []
    for choice in chunk.choices or ():
        said = choice.delta
        if said is not None:
            if reasoning := getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None):
                deltas.append(ReasoningDelta(reasoning))
            if text := _text(said.content or said.refusal):
                deltas.append(TextDelta(text))
            deltas += [_call(call, n) for n, call in enumerate(said.tool_calls or ())]
        if choice.finish_reason == "content_filter":
            raise ContentFiltered(f"the provider's content filter stopped the answer of model {model}")
        if choice.finish_reason:
            deltas.append(Stop(choice.finish_reason))
    if chunk.usage is not None:
        deltas.append(_usage(chunk.usage, chunk.model or model))
    return deltas


def _text(content: Any) -> str:
    """Some servers send parts where OpenAI sends text."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _call(call: Any, place: int) -> ToolCallDelta:
    function = call.function
    name, arguments = (function.name, function.arguments) if function else (None, None)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
    index = place if call.index is None else call.index
    return ToolCallDelta(index, call.id or "", name or "", text)


def _usage(usage: Any, model: str) -> Usage:
    read = getattr(usage, "prompt_tokens_details", None)
    made = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=getattr(read, "cached_tokens", None) or 0,
        reasoning_tokens=getattr(made, "reasoning_tokens", None) or 0,
        model=model,
    )
