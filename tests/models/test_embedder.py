"""Embeddings through the official SDK, from a fake server with the wire format."""

import pytest

from sash.errors import ModelError, ModelKeyRefused
from sash.models.openai.embedder import OpenAIEmbedder
from sash.ports.embedder import compare_vectors, pack_vector
from tests.models.wire import Reply, Wire, failed


def made(*vectors):
    data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(body={"object": "list", "data": data[::-1], "model": "m", "usage": usage})


async def embed(wire, texts, **options):
    embedder = OpenAIEmbedder("m", api_key="k", base_url=f"{wire.url}/v1", retries=0, **options)
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.close()


async def test_vectors_have_the_order_of_the_texts():
    async with Wire(made([1.0, 0.0], [0.0, 1.0])) as wire:
        assert await embed(wire, ["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]
        [asked] = wire.requests
        assert asked.path == "/v1/embeddings"
        assert (asked.body["input"], asked.body["dimensions"]) == (["a", "b"], 256)
        await embed(wire, ["a", "b"], dimensions=None)
        assert "dimensions" not in wire.requests[-1].body


async def test_errors_name_the_cause():
    async with Wire(failed(401), made([1.0])) as wire:
        with pytest.raises(ModelKeyRefused):
            await embed(wire, ["a"])
        with pytest.raises(ModelError, match="1 vectors for 2"):
            await embed(wire, ["a", "b"])


def test_similarity_is_the_cosine():
    assert compare_vectors(pack_vector([2, 0]), pack_vector([5, 0])) == pytest.approx(1)
    assert compare_vectors(pack_vector([1, 0]), pack_vector([0, 3])) == pytest.approx(0)
    assert compare_vectors(pack_vector([1, 0]), pack_vector([-1, 0])) == pytest.approx(-1)
    assert compare_vectors(pack_vector([0, 0]), pack_vector([1, 0])) == 0
    assert compare_vectors(pack_vector([1, 0]), pack_vector([1, 0, 0])) == 0
