"""The wire format of OpenAI's Responses API."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from openai import AsyncOpenAI

from sash.errors import ContentFiltered
from sash.models.openai.error_mapping import raise_provider_error
from sash.models.openai.wire_format import WireFormat, encode_config
from sash.ports.model import Delta, ModelRequest, ReasoningDelta, Stop, TextDelta, ToolCallDelta, Usage


class ResponsesFormat(WireFormat):
    """The Responses API, streamed. The provider stores nothing."""

    async def start(self, client: AsyncOpenAI, request: ModelRequest, model: str) -> Any:
        return await client.responses.create(**_build_arguments(request, model))

    def read(self, event: Any, model: str) -> list[Delta]:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return [TextDelta(event.delta)]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [ReasoningDelta(event.delta)]
            case "response.output_item.added" if event.item.type == "function_call":
                return [ToolCallDelta(event.output_index, event.item.call_id, event.item.name)]
            case "response.function_call_arguments.delta":
                return [ToolCallDelta(event.output_index, arguments=event.delta)]
            case "response.output_item.done" if event.item.type == "function_call":
                item = event.item
                return [
                    ToolCallDelta(
                        event.output_index, item.call_id, item.name, item.arguments, is_complete=True
                    )
                ]
            case "response.completed" | "response.incomplete":
                return _read_end(event.response, model)
            case "response.failed":
                error = event.response.error
                code, reason = (error.code, error.message) if error else ("", "no reason was given")
                raise_provider_error(model, code, reason)
            case "error":
                raise_provider_error(model, event.code or "", event.message)
        return []


def _build_arguments(request: ModelRequest, model: str) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": model,
        "input": list(_build_items(request.messages)),
        "stream": True,
        "store": False,
    }
    if request.tools:
        arguments["tools"] = [{"type": "function", **tool["function"]} for tool in request.tools]
    config = request.config
    if config.options:
        config = replace(config, options=_convert_options(config.options))
    return arguments | encode_config(config, max_tokens_name="max_output_tokens")


def _convert_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options that Chat Completions has by other names in the form of this API. Others stay."""
    converted = dict(options)
    for name, group, field in (
        ("response_format", "text", "format"),
        ("verbosity", "text", "verbosity"),
        ("reasoning_effort", "reasoning", "effort"),
    ):
        value, own = converted.pop(name, None), converted.get(group) or {}
        if value is not None and isinstance(own, dict):
            value = _convert_format(value) if field == "format" else value
            converted[group] = {field: value, **own}
    return converted


def _convert_format(given: Any) -> Any:
    """Return a `response_format` of Chat Completions without the object around its schema."""
    schema = given.get("json_schema") if isinstance(given, dict) else None
    return {"type": "json_schema", **schema} if isinstance(schema, dict) else given


def _build_items(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the input items for messages. A tool call and its result are items of their own."""
    for message in messages:
        if message["role"] == "tool":
            call_id, output = message["tool_call_id"], message["content"]
            yield {"type": "function_call_output", "call_id": call_id, "output": output}
            continue
        if content := message["content"]:
            parts = content if isinstance(content, str) else [_convert_part(part) for part in content]
            yield {"role": message["role"], "content": parts}
        for call in message.get("tool_calls", ()):
            yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _convert_part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        image = part["image_url"]
        image = image if isinstance(image, dict) else {"url": image}
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
    return part


def _read_end(response: Any, model: str) -> list[Delta]:
    reason = response.incomplete_details.reason if response.incomplete_details else "stop"
    if reason == "content_filter":
        raise ContentFiltered(f"the provider's content filter stopped the answer of model {model}")
    return [
        _read_usage(response.usage, response.model or model),
        Stop("length" if reason == "max_output_tokens" else reason),
    ]


def _read_usage(usage: Any, model: str) -> Usage:
    if usage is None:
        return Usage()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=getattr(usage.input_tokens_details, "cached_tokens", 0),
        reasoning_tokens=getattr(usage.output_tokens_details, "reasoning_tokens", 0),
        model=model,
    )
