"""Embeddings of OpenAI, Azure and compatible servers."""

from collections.abc import Sequence
from typing import Any, Unpack

from sash.errors import ModelError
from sash.models.openai.endpoint import Endpoint, EndpointOptions
from sash.models.openai.error_mapping import SDK_ERRORS, SettingNames, raise_model_error
from sash.ports.embedder import Embedder

DIMENSIONS = 256
_SETTINGS = SettingNames(key="embedder_api_key", address="embedder_api_base")
# A server with another format causes the last two.
_CAUGHT: tuple[type[Exception], ...] = (*SDK_ERRORS, TypeError, AttributeError)


class OpenAIEmbedder(Embedder):
    """An embedding model. 256 dimensions suffice for a conversation; None keeps the model's own number.

    `EndpointOptions` describes the other arguments, which are those of `OpenAIModel`.
    """

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None = DIMENSIONS,
        **endpoint: Unpack[EndpointOptions],
    ) -> None:
        self._endpoint = Endpoint(model, **endpoint)
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
            ordered = sorted(response.data, key=lambda item: item.index)
            vectors = [[float(component) for component in item.embedding] for item in ordered]
        except _CAUGHT as error:
            with self._endpoint.hide_key():
                raise_model_error(error, model, _SETTINGS)
        if len(vectors) != len(texts):
            raise ModelError(f"model {model} returned {len(vectors)} vectors for {len(texts)} texts")
        if not all(vectors):
            raise ModelError(f"model {model} returned a vector without components")
        return vectors

    async def close(self) -> None:
        await self._endpoint.close()
