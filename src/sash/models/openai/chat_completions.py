"""The wire format of Chat Completions, which OpenAI and many other servers speak."""

import json
from typing import Any

from openai import AsyncOpenAI

from sash.errors import ContentFiltered
from sash.models.openai.wire_format import WireFormat, encode_config
from sash.ports.model import Delta, ModelRequest, ReasoningDelta, Stop, TextDelta, ToolCallDelta, Usage


class ChatCompletionsFormat(WireFormat):
    """Chat Completions, streamed."""

    async def start(self, client: AsyncOpenAI, request: ModelRequest, model: str) -> Any:
        return await client.chat.completions.create(**_build_arguments(request, model))

    def read(self, event: Any, model: str) -> list[Delta]:
        deltas: list[Delta] = []
        for choice in event.choices or ():
            if choice.delta is not None:
                deltas += _read_message(choice.delta)
            if choice.finish_reason == "content_filter":
                raise ContentFiltered(f"the provider's content filter stopped the answer of model {model}")
            if choice.finish_reason:
                deltas.append(Stop(choice.finish_reason))
        if event.usage is not None:
            deltas.append(_read_usage(event.usage, event.model or model))
        return deltas


def _build_arguments(request: ModelRequest, model: str) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": model,
        "messages": request.messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = request.tools
    return arguments | encode_config(request.config, max_tokens_name="max_completion_tokens")


def _read_message(message: Any) -> list[Delta]:
    deltas: list[Delta] = []
    if reasoning := getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None):
        deltas.append(ReasoningDelta(reasoning))
    if text := _read_text(message.content or message.refusal):
        deltas.append(TextDelta(text))
    deltas += [_read_call(call, index) for index, call in enumerate(message.tool_calls or ())]
    return deltas


def _read_text(content: Any) -> str:
    """Return the content of a message as text. Some servers send a list of parts instead of a string."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _read_call(call: Any, default_index: int) -> ToolCallDelta:
    function = call.function
    name, arguments = (function.name, function.arguments) if function else (None, None)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
    index = default_index if call.index is None else call.index
    return ToolCallDelta(index, call.id or "", name or "", text)


def _read_usage(usage: Any, model: str) -> Usage:
    input_details = getattr(usage, "prompt_tokens_details", None)
    output_details = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=getattr(input_details, "cached_tokens", None) or 0,
        reasoning_tokens=getattr(output_details, "reasoning_tokens", None) or 0,
        model=model,
    )
