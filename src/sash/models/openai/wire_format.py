"""One of OpenAI's two APIs: how it takes a request, and how it streams an answer."""

from typing import Any, Protocol

from openai import AsyncOpenAI

from sash.ports.model import Delta, ModelRequest
from sash.values.sessions import ModelConfig


class WireFormat(Protocol):
    """Translates between the model port and one API."""

    async def start(self, client: AsyncOpenAI, request: ModelRequest, model: str) -> Any:
        """Send a request and return the SDK's stream of events."""
        ...

    def read(self, event: Any, model: str) -> list[Delta]:
        """Return the deltas of one event. Raise a `ModelError` if the event reports a failure."""
        ...


def encode_config(config: ModelConfig, *, max_tokens_name: str) -> dict[str, Any]:
    """Return a model's configuration as request arguments. The name of the token limit differs by API."""
    arguments: dict[str, Any] = {}
    if config.temperature is not None:
        arguments["temperature"] = config.temperature
    if config.max_output_tokens is not None:
        arguments[max_tokens_name] = config.max_output_tokens
    if config.options:
        # Options go into the body only. As arguments, some would change the SDK itself, such as its headers.
        arguments["extra_body"] = dict(config.options)
    return arguments
