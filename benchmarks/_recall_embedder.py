"""An embedder of words for the benchmark of recall, if the package `wordllama` is installed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._recall_data import Conversation
from sash.engine.message_vectors import MAX_VECTORS
from sash.memory.packed_vectors import pack_vector
from sash.ports.embedder import Embedder
from sash.ports.store import Store, Vector

INSTALL = "python3 -m pip --python .venv/bin/python install wordllama"


class WordEmbedder(Embedder):
    """The mean of the vectors of a text's words, with 256 components. Its weights are in the package."""

    name = "wordllama/256"

    def __init__(self, model: Any) -> None:
        self._model = model

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = self._model.embed(list(texts), norm=True).tolist()
        return found


def load_embedder() -> WordEmbedder | None:
    """Return the embedder, or None if its package is not installed."""
    try:
        import wordllama
    except ImportError:
        return None
    folder = Path(wordllama.__file__).parent
    return WordEmbedder(wordllama.WordLlama.load(cache_dir=folder, disable_download=True))


async def add_vectors(
    store: Store, owner: str, session_id: str, conversation: Conversation, embedder: Embedder
) -> None:
    """Store the vectors of the newest messages of a conversation, as many as a session has."""
    newest = conversation.messages[-MAX_VECTORS:]
    made = await embedder.embed([said.text for said in newest])
    vectors = [
        Vector(said.id, embedder.name, pack_vector(vector)) for said, vector in zip(newest, made, strict=True)
    ]
    await store.add_vectors(owner, session_id, vectors, keep=MAX_VECTORS)
