"""Embeddings through the official SDK, from a fake server with the wire format."""

import pytest

from sash.errors import ModelError, ModelKeyRefused, ModelUnknown, ModelUnreachable
from sash.models.openai.embedder import OpenAIEmbedder
from tests.models.wire import Wire, embedded, failed


async def embed(wire, texts, **options):
    embedder = OpenAIEmbedder("m", api_key="k", base_url=f"{wire.url}/v1", retries=0, **options)
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.close()


async def test_vectors_have_the_order_of_the_texts():
    async with Wire(embedded([1.0, 0.0], [0.0, 1.0])) as wire:
        assert await embed(wire, ["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]
        [asked] = wire.requests
        assert asked.path == "/v1/embeddings"
        assert (asked.body["input"], asked.body["dimensions"]) == (["a", "b"], 256)
        await embed(wire, ["a", "b"], dimensions=None)
        assert "dimensions" not in wire.requests[-1].body


async def test_errors_name_the_settings_of_the_embedder():
    async with Wire(failed(401), failed(404, "model_not_found")) as wire:
        with pytest.raises(ModelKeyRefused, match=r"check embedder_api_key$"):
            await embed(wire, ["a"])
        with pytest.raises(ModelUnknown, match=r"the address \(embedder_api_base\)$"):
            await embed(wire, ["a"])
    with pytest.raises(ModelUnreachable, match=r"the address \(embedder_api_base\)$"):
        await embed(wire, ["a"])


async def test_errors_name_the_cause():
    async with Wire(failed(401), embedded([1.0]), embedded([], []), embedded("AAAA", "AAAA")) as wire:
        with pytest.raises(ModelKeyRefused):
            await embed(wire, ["a"])
        with pytest.raises(ModelError, match="1 vectors for 2"):
            await embed(wire, ["a", "b"])
        with pytest.raises(ModelError, match="without components"):
            await embed(wire, ["a", "b"])
        with pytest.raises(ModelError, match="could not convert"):
            await embed(wire, ["a", "b"])
