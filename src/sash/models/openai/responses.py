"""Models behind OpenAI's Responses API."""

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from openai import AsyncOpenAI

from sash.errors import ContentFiltered
from sash.models.openai.endpoint import EndpointModel, failure
from sash.ports.model import (
    Delta,
    ModelRequest,
    ReasoningDelta,
    Stop,
    TextDelta,
    ToolCallDelta,
    Usage,
)


class OpenAIResponses(EndpointModel):
    """A model that answers by the Responses API, streamed. Nothing is kept at the provider."""

    def _begin(self, sdk: AsyncOpenAI, request: ModelRequest, model: str) -> Awaitable[Any]:
        begun: Awaitable[Any] = sdk.responses.create(**_arguments(request, model))
        return begun

    def _read(self, event: Any, model: str) -> list[Delta]:
        return _deltas(event, model)


def _arguments(request: ModelRequest, model: str) -> dict[str, Any]:
    config = request.config
    arguments: dict[str, Any] = {
        "model": model,
        "input": list(_items(request.messages)),
        "stream": True,
        "store": False,
    }
    if request.tools:
        arguments["tools"] = [{"type": "function", **tool["function"]} for tool in request.tools]
    if config.temperature is not None:
        arguments["temperature"] = config.temperature
    if config.max_output_tokens is not None:
        arguments["max_output_tokens"] = config.max_output_tokens
    if config.options:
        # Into the body and nowhere else: as arguments some would be the SDK's own, its headers among them.
        arguments["extra_body"] = dict(config.options)
    return arguments


def _items(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages become items; a call and its result are items of their own."""
    for message in messages:
        if message["role"] == "tool":
            call_id, output = message["tool_call_id"], message["content"]
            yield {"type": "function_call_output", "call_id": call_id, "output": output}
            continue
        if message["content"]:
            yield {"role": message["role"], "content": _content(message["content"])}
        for call in message.get("tool_calls", ()):
            yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _content(content: Any) -> Any:
    """Parts have other names here."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        image = part["image_url"]
        image = image if isinstance(image, dict) else {"url": image}
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
    return part


def _deltas(event: Any, model: str) -> list[Delta]:
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
            return [ToolCallDelta(event.output_index, item.call_id, item.name, item.arguments, whole=True)]
        case "response.completed" | "response.incomplete":
            return _end(event.response, model)
        case "response.failed":
            error = event.response.error
            code, reason = (error.code, error.message) if error else ("", "no reason was given")
            raise failure(model, code, reason)
        case "error":
            raise failure(model, event.code or "", event.message)
    return []


def _end(response: Any, model: str) -> list[Delta]:
    reason = response.incomplete_details.reason if response.incomplete_details else "stop"
    if reason == "content_filter":
        raise ContentFiltered(f"the provider's content filter stopped the answer of model {model}")
    usage = response.usage
    counted = Usage()
    if usage is not None:
        counted = Usage(
            usage.input_tokens,
            usage.output_tokens,
            getattr(usage.input_tokens_details, "cached_tokens", 0),
            getattr(usage.output_tokens_details, "reasoning_tokens", 0),
            response.model or model,
        )
    return [counted, Stop("length" if reason == "max_output_tokens" else reason)]
