"""One of OpenAI's two APIs: how it takes a request, and how it streams an answer."""

from typing import Any, Protocol

from openai import AsyncOpenAI

from sash.ports.model import Delta, ModelRequest


class WireFormat(Protocol):
    """Translates between the model port and one API."""

    async def start(self, client: AsyncOpenAI, request: ModelRequest, model: str) -> Any:
        """Send a request and return the SDK's stream of events."""
        ...

    def read(self, event: Any, model: str) -> list[Delta]:
        """Return the deltas of one event. Raise a `ModelError` if the event reports a failure."""
        ...
