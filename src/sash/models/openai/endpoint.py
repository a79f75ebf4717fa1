"""Where a model answers: OpenAI, Azure, or any server that speaks OpenAI's format, by the official SDK."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI

from sash.errors import (
    AnswerCutOff,
    ContentFiltered,
    ContextTooLong,
    InvalidInput,
    ModelError,
    ModelKeyRefused,
    ModelQuotaReached,
    ModelUnknown,
    ModelUnreachable,
)
from sash.ports.model import Delta, ModelRequest, Stop
from sash.ports.prompt import ALL_PARTS, plain
from sash.values.validation import check_count, check_label

TIMEOUT_S = 60.0
RETRIES = 2
MAX_SECONDS = 86_400
NO_KEY = "none"
OPENAI_URL = "https://api.openai.com/v1"

# What the SDK raises, with which code, what it is, and what to do about it.
_ERRORS: tuple[tuple[type[Exception], tuple[str, ...], type[ModelError], str], ...] = (
    (openai.APITimeoutError, (), ModelUnreachable, "did not answer in time: try again, or raise timeout_s"),
    (
        openai.APIConnectionError,
        (),
        ModelUnreachable,
        "cannot be reached: check the network, and the address (api_base)",
    ),
    (openai.AuthenticationError, (), ModelKeyRefused, "refused the key: check api_key"),
    (openai.PermissionDeniedError, (), ModelKeyRefused, "refused the key: check api_key and its rights"),
    (
        openai.RateLimitError,
        ("insufficient_quota", "billing_hard_limit_reached"),
        ModelQuotaReached,
        "has no quota left: check the provider's billing",
    ),
    (openai.RateLimitError, (), ModelQuotaReached, "is asked too often: wait a moment, or raise the limit"),
    (
        openai.NotFoundError,
        (),
        ModelUnknown,
        "is not at this address: check its name, and the address (api_base)",
    ),
    (
        openai.BadRequestError,
        ("context_length_exceeded", "string_above_max_length"),
        ContextTooLong,
        "cannot take a prompt of this length: lower the window's max_tokens",
    ),
    (
        openai.BadRequestError,
        ("content_filter", "content_policy_violation"),
        ContentFiltered,
        "was not asked: the provider's content filter refused the prompt",
    ),
)


# The same for what a provider says in words: with which codes, or by which words it is known.
_FAILURES: tuple[tuple[type[ModelError], tuple[str, ...], re.Pattern[str], str], ...] = (
    (
        ContextTooLong,
        ("context_length_exceeded",),
        re.compile(
            r"maximum context length|context (?:window|length|size)|prompt is too long|too many tokens", re.I
        ),
        "cannot take a prompt of this length: lower the window's max_tokens",
    ),
    (
        ModelKeyRefused,
        ("invalid_api_key",),
        re.compile(r"api key not valid|invalid api key|incorrect api key", re.I),
        "refused the key: check api_key",
    ),
    (
        ModelQuotaReached,
        ("rate_limit_exceeded", "insufficient_quota"),
        re.compile(r"HTTP 402|insufficient (?:credits|quota|balance)", re.I),
        "has no quota left: check the provider's billing",
    ),
)


@dataclass(slots=True)
class Endpoint:
    """A model at an address. A server of one's own needs no key; Azure needs an api version as well.

    The SDK waits and asks again, as `Retry-After` says, when the server is busy or fails. `timeout_s` is how
    long it may be silent. A model that `takes` no images or no audio is told that there was one.
    """

    model: str
    api_key: str = field(default="", repr=False)
    base_url: str | None = None
    azure_endpoint: str | None = None
    azure_deployment: str | None = None
    api_version: str | None = None
    timeout_s: float = TIMEOUT_S
    retries: int = RETRIES
    takes: frozenset[str] = ALL_PARTS
    _client: AsyncOpenAI | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_label("the model's name", self.model)
        check_count("retries", self.retries)
        if type(self.timeout_s) not in (int, float) or not 0 < self.timeout_s < MAX_SECONDS:
            raise InvalidInput(f"timeout_s must be a number of seconds above 0, got {self.timeout_s!r:.80}")
        if self.azure_endpoint is not None and not self.api_version:
            raise InvalidInput("Azure needs an api_version beside the azure_endpoint")

    async def client(self) -> AsyncOpenAI:
        """Return the client; making it reads certificates, which is not for the event loop."""
        if self._client is None:
            self._client = await asyncio.to_thread(self._make)
        return self._client

    async def stream(
        self,
        model: str,
        begin: Callable[[AsyncOpenAI], Awaitable[Any]],
        read: Callable[[Any, str], list[Delta]],
    ) -> AsyncIterator[Delta]:
        """Begin a stream, read deltas out of what comes, and make what goes wrong a clear error.

        An answer that ends without saying so was cut off.
        """
        begun = ended = False
        try:
            events = await begin(await self.client())
            async with events:
                async for event in events:
                    begun = True
                    for delta in read(event, model):
                        ended = ended or isinstance(delta, Stop)
                        yield delta
        except openai.APIConnectionError as error:
            raise (_cut_off(model) if begun else clear_error(error, model)) from error
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise clear_error(error, model) from error
        if not begun and "event-stream" not in events.response.headers.get("content-type", ""):
            raise ModelError(
                f"model {model} sent no stream: check the address (api_base), and that the server can stream"
            )
        if not ended:
            raise _cut_off(model)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _make(self) -> AsyncOpenAI:
        key = self.api_key or NO_KEY
        if self.azure_endpoint is None:
            return AsyncOpenAI(
                api_key=key,
                base_url=self.base_url or OPENAI_URL,
                timeout=self.timeout_s,
                max_retries=self.retries,
            )
        return AsyncAzureOpenAI(
            api_key=key,
            azure_endpoint=self.azure_endpoint,
            azure_deployment=self.azure_deployment,
            api_version=self.api_version,
            timeout=self.timeout_s,
            max_retries=self.retries,
        )


class EndpointModel(ABC):
    """A model at an endpoint; how it is asked and what its events say differs from API to API."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @property
    def name(self) -> str:
        return self.endpoint.model

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        model = request.config.name or self.endpoint.azure_deployment or self.endpoint.model
        request = replace(request, messages=list(plain(request.messages, self.endpoint.takes)))
        return self.endpoint.stream(model, lambda sdk: self._begin(sdk, request, model), self._read)

    async def close(self) -> None:
        await self.endpoint.close()

    @abstractmethod
    def _begin(self, sdk: AsyncOpenAI, request: ModelRequest, model: str) -> Awaitable[Any]:
        """Ask, and return the stream of events."""

    @abstractmethod
    def _read(self, event: Any, model: str) -> list[Delta]:
        """Say what one event adds."""


def clear_error(error: Exception, model: str) -> ModelError:
    """Say what went wrong and what to do about it."""
    code = getattr(error, "code", None) or ""
    for kind, codes, meaning, text in _ERRORS:
        if isinstance(error, kind) and (not codes or code in codes):
            return meaning(f"model {model} {text}")
    if isinstance(error, openai.APIStatusError):
        said = error.message if isinstance(error.body, dict) else error.response.text
        return failure(model, code, f"HTTP {error.status_code}: {said:.500}")
    if isinstance(error, openai.APIError):
        return failure(model, code, error.message)
    if isinstance(error, httpx2.HTTPError | json.JSONDecodeError):
        return _cut_off(model)
    return ModelError(f"model {model} cannot be asked: {str(error) or type(error).__name__:.500}")


def failure(model: str, code: str, reason: str) -> ModelError:
    """Say what a provider's own words mean; few have OpenAI's codes."""
    for meaning, codes, words, text in _FAILURES:
        if code in codes or words.search(reason):
            return meaning(f"model {model} {text}")
    return ModelError(f"model {model} failed: {reason:.500}")


def _cut_off(model: str) -> AnswerCutOff:
    return AnswerCutOff(f"the answer of model {model} was cut off: try again")
