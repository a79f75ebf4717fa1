"""Embeddings of OpenAI, Azure and compatible servers."""

from collections.abc import Sequence
from typing import Any

import httpx2
import openai

from sash.errors import ModelError
from sash.models.openai.endpoint import RETRIES, TIMEOUT_S, Endpoint
from sash.models.openai.error_mapping import raise_model_error
from sash.ports.embedder import Embedder

DIMENSIONS = 256


class OpenAIEmbedder(Embedder):
    """An embedding model. 256 dimensions suffice for a conversation; None keeps the model's own number.

    The other parameters are those of `OpenAIModel`.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str | None = None,
        azure_endpoint: str | None = None,
        azure_deployment: str | None = None,
        api_version: str | None = None,
        dimensions: int | None = DIMENSIONS,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._endpoint = Endpoint(
            model, api_key, base_url, azure_endpoint, azure_deployment, api_version, timeout_s, retries
        )
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        return f"{self._endpoint.model}/{self._dimensions or 'all'}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        model = self._endpoint.model
        options: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        try:
            client = await self._endpoint.connect()
            response = await client.embeddings.create(
                model=model, input=list(texts), encoding_format="float", **options
            )
            vectors = [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, AttributeError) as error:
            raise_model_error(error, model)
        if len(vectors) != len(texts):
            raise ModelError(f"model {model} returned {len(vectors)} vectors for {len(texts)} texts")
        return vectors

    async def close(self) -> None:
        await self._endpoint.close()
