"""Embeddings from OpenAI, Azure, or any server that speaks the same format."""

from collections.abc import Sequence
from typing import Any

import httpx2
import openai

from sash.errors import ModelError
from sash.models.openai.endpoint import Endpoint, clear_error

DIMENSIONS = 256


class OpenAIEmbedder:
    """Embeds texts at an endpoint. Few `dimensions` will do for a conversation; None is the model's own."""

    def __init__(self, endpoint: Endpoint, dimensions: int | None = DIMENSIONS) -> None:
        self.endpoint = endpoint
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        return f"{self.endpoint.model}/{self._dimensions or 'all'}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        model = self.endpoint.model
        wanted: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        try:
            client = await self.endpoint.client()
            made = await client.embeddings.create(
                model=model, input=list(texts), encoding_format="float", **wanted
            )
            vectors = [item.embedding for item in sorted(made.data, key=lambda item: item.index)]
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, AttributeError) as error:
            raise clear_error(error, model) from error
        if len(vectors) != len(texts):
            raise ModelError(f"model {model} made {len(vectors)} vectors of {len(texts)} texts")
        return vectors

    async def close(self) -> None:
        await self.endpoint.close()
