"""The connection to one model: its address, its key and its client of the official SDK."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypedDict

from openai import AsyncAzureOpenAI, AsyncOpenAI

from sash.errors import InvalidInput, ModelError
from sash.values.garbage import pause_collection
from sash.values.validation import check_count, check_label

TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 86_400
RETRIES = 2
OPENAI_URL = "https://api.openai.com/v1"
# The SDK insists on a key, local servers need none.
NO_KEY = "none"
# A shorter key may be a part of an ordinary word.
MIN_KEY_CHARS = 6
KEY_MARK = "[redacted]"


class EndpointOptions(TypedDict, total=False):
    """The address of a model, and how to reach it."""

    api_key: str
    """A local server needs none."""
    base_url: str | None
    """The address of a server with OpenAI's format. Default: OpenAI itself."""
    azure_endpoint: str | None
    azure_deployment: str | None
    api_version: str | None
    """The version of Azure's API, which Azure needs."""
    timeout_s: float
    """The longest silence of the server in seconds. Default: 60."""
    retries: int
    """How often a failed request is repeated. Default: 2."""
    http_client: Any
    """An `AsyncClient` of httpx or httpx2 that others use too. It is not closed. Default: a new one."""


@dataclass(slots=True)
class Endpoint:
    """A model at an address. `EndpointOptions` describes the fields.

    The SDK repeats a failed request and waits as the server's `Retry-After` says.
    """

    model: str
    api_key: str = field(default="", repr=False)
    base_url: str | None = None
    azure_endpoint: str | None = None
    azure_deployment: str | None = None
    api_version: str | None = None
    timeout_s: float = TIMEOUT_S
    retries: int = RETRIES
    http_client: Any = field(default=None, repr=False)
    _client: AsyncOpenAI | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_label("the model's name", self.model)
        check_count("retries", self.retries)
        if type(self.timeout_s) not in (int, float) or not 0 < self.timeout_s < MAX_TIMEOUT_S:
            raise InvalidInput(f"timeout_s must be a number of seconds above 0, got {self.timeout_s!r:.80}")
        if self.azure_endpoint is not None and not self.api_version:
            raise InvalidInput("an azure_endpoint needs an api_version")

    @property
    def is_openai(self) -> bool:
        """Whether the address is that of OpenAI itself."""
        return self.base_url is None and self.azure_endpoint is None

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    async def connect(self) -> AsyncOpenAI:
        """Return the client. The first call creates it in a thread: it reads certificates and imports."""
        if self._client is None:
            created = await asyncio.to_thread(self._create_client)
            # Another call may have created a client meanwhile. Two clients would be one too many to close.
            self._client = self._client or created
        return self._client

    @contextmanager
    def hide_key(self) -> Iterator[None]:
        """Remove the key from the message of a `ModelError` in this block: some servers repeat it."""
        try:
            yield
        except ModelError as error:
            if len(self.api_key) >= MIN_KEY_CHARS:
                error.message = error.message.replace(self.api_key, KEY_MARK)
                error.args = (error.message,)
            raise

    async def close(self) -> None:
        """Close the client's connections. `connect` creates a new client."""
        if self._client is not None:
            if self.http_client is None:
                await self._client.close()
            self._client = None

    def _create_client(self) -> AsyncOpenAI:
        """Create a client whose first request imports nothing more and asks the system for nothing."""
        _import_all()
        return _touch(self._make_client())

    def _make_client(self) -> AsyncOpenAI:
        key = self.api_key or NO_KEY
        if self.azure_endpoint is None:
            return AsyncOpenAI(
                api_key=key,
                base_url=self.base_url or OPENAI_URL,
                timeout=self.timeout_s,
                max_retries=self.retries,
                http_client=self.http_client,
            )
        return AsyncAzureOpenAI(
            api_key=key,
            azure_endpoint=self.azure_endpoint,
            azure_deployment=self.azure_deployment,
            api_version=self.api_version,
            timeout=self.timeout_s,
            max_retries=self.retries,
            http_client=self.http_client,
        )


@cache
def _import_all() -> None:
    """Import what a client imports when it is created and at its first request, once per process."""
    with pause_collection():
        _touch(AsyncOpenAI(api_key=NO_KEY, base_url=OPENAI_URL))


def _touch(client: AsyncOpenAI) -> AsyncOpenAI:
    """Make a client create all that it creates late, and return it."""
    _ = client.chat.completions, client.responses, client.embeddings, client.models
    client.platform_headers()
    return client
