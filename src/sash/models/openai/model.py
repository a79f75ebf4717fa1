"""The OpenAI model: one class for OpenAI, Azure and every compatible server."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal, Protocol, Unpack

import openai

from sash.errors import InvalidInput, ModelError
from sash.models.openai.chat_completions import ChatCompletionsFormat
from sash.models.openai.endpoint import Endpoint, EndpointOptions
from sash.models.openai.error_mapping import SDK_ERRORS, raise_cut_off, raise_model_error
from sash.models.openai.responses import ResponsesFormat
from sash.models.openai.wire_format import WireFormat
from sash.ports.model import RESERVED_OPTIONS, Delta, Model, ModelRequest, Stop, check_options
from sash.ports.prompt import MEDIA_PARTS, merge_system_messages

Mode = Literal["auto", "chat", "responses"]

# Request parameters that Sash sets itself, and arguments of the SDK that change the request as a whole.
OPENAI_RESERVED_OPTIONS = RESERVED_OPTIONS | {
    "background",
    "conversation",
    "extra_body",
    "extra_headers",
    "extra_query",
    "function_call",
    "functions",
    "input",
    "instructions",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "previous_response_id",
    "prompt",
    "store",
    "stream_options",
    "timeout",
}

# A server with another format causes the last two.
_LIST_ERRORS: tuple[type[Exception], ...] = (*SDK_ERRORS, TypeError, AttributeError)

_WIRE_FORMATS: dict[str, WireFormat] = {"chat": ChatCompletionsFormat(), "responses": ResponsesFormat()}


class OpenAISettings(Protocol):
    """The settings from which `create_model` builds a model."""

    @property
    def api_key(self) -> str | None: ...
    @property
    def api_base(self) -> str | None: ...
    @property
    def api_mode(self) -> Mode: ...
    @property
    def azure_endpoint(self) -> str | None: ...
    @property
    def api_version(self) -> str | None: ...


class OpenAIModel(Model):
    """A model of OpenAI, Azure (`azure_endpoint`), or a server with OpenAI's format (`base_url`).

    The mode `auto` uses the Responses API at OpenAI itself and Chat Completions elsewhere. Media parts that
    are not in `accepted_parts` become a note. `EndpointOptions` describes the other arguments.
    """

    def __init__(
        self,
        model: str,
        *,
        mode: Mode = "auto",
        accepted_parts: frozenset[str] = MEDIA_PARTS,
        **endpoint: Unpack[EndpointOptions],
    ) -> None:
        self._endpoint = Endpoint(model, **endpoint)
        self._accepted_parts = accepted_parts
        if mode == "auto":
            mode = "responses" if self._endpoint.is_openai else "chat"
        if mode not in _WIRE_FORMATS:
            raise InvalidInput(f"mode must be auto, chat or responses, not {mode!r}")
        self.mode = mode
        self._wire_format = _WIRE_FORMATS[mode]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.model!r})"

    @property
    def name(self) -> str:
        return self._endpoint.model

    @property
    def is_connected(self) -> bool:
        return self._endpoint.is_connected

    @property
    def reserved_options(self) -> frozenset[str]:
        return OPENAI_RESERVED_OPTIONS

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answer a request. Raise `AnswerCutOff` if the answer ends without a `Stop`."""
        with self._endpoint.hide_key():
            # A session that was started with another model may have options that are reserved here.
            check_options(request.config.options, self.reserved_options)
            model = request.config.name or self._endpoint.azure_deployment or self._endpoint.model
            messages = list(merge_system_messages(request.messages, self._accepted_parts))
            request = replace(request, messages=messages)
            has_started = has_ended = False
            try:
                events = await self._wire_format.start(await self._endpoint.connect(), request, model)
                async with events:
                    async for event in events:
                        has_started = True
                        for delta in self._wire_format.read(event, model):
                            has_ended = has_ended or isinstance(delta, Stop)
                            yield delta
            except SDK_ERRORS as error:
                if has_started and isinstance(error, openai.APIConnectionError):
                    raise_cut_off(model, cause=error)
                raise_model_error(error, model)
            if not has_started and "event-stream" not in events.response.headers.get("content-type", ""):
                raise ModelError(
                    f"model {model} sent no stream: check the address (api_base), "
                    "and that the server can stream"
                )
            if not has_ended:
                raise_cut_off(model)

    async def list_models(self) -> list[str]:
        """Return the names of the models that the server offers, sorted. Azure lists no deployments.

        Raises:
            ModelUnknown: the address is not that of an API, or the server has no list.
            ModelError: the server cannot be reached, refused the key, or sent no list.
        """
        with self._endpoint.hide_key():
            try:
                client = await self._endpoint.connect()
                page = await client.models.list()
                return sorted({model.id for model in page.data})
            except _LIST_ERRORS as error:
                raise_model_error(error, self.name)

    async def open(self) -> None:
        await self._endpoint.connect()

    async def close(self) -> None:
        await self._endpoint.close()


def create_model(name: str, settings: OpenAISettings) -> OpenAIModel:
    """Create the model `name` with these settings. The registry calls this function."""
    return OpenAIModel(
        name,
        api_key=settings.api_key or "",
        base_url=settings.api_base,
        azure_endpoint=settings.azure_endpoint,
        api_version=settings.api_version,
        mode=settings.api_mode,
    )
