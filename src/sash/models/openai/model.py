"""Which of OpenAI's two APIs a model is asked by."""

from typing import Literal

from sash.errors import InvalidInput
from sash.models.openai.chat import OpenAIChat
from sash.models.openai.endpoint import Endpoint
from sash.models.openai.responses import OpenAIResponses
from sash.ports.model import Model

Mode = Literal["auto", "chat", "responses"]


def openai_model(endpoint: Endpoint, mode: Mode = "auto") -> Model:
    """Return a model at an endpoint. `auto` is Responses at OpenAI itself, and Chat Completions elsewhere."""
    if mode == "auto":
        at_openai = endpoint.base_url is None and endpoint.azure_endpoint is None
        mode = "responses" if at_openai else "chat"
    if mode == "chat":
        return OpenAIChat(endpoint)
    if mode == "responses":
        return OpenAIResponses(endpoint)
    raise InvalidInput(f"mode is auto, chat or responses, not {mode!r}")
