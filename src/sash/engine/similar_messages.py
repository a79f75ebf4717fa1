"""Finds old messages by their meaning, if there is an embedder. Its vectors are made by `MessageVectors`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import fmean

from sash.engine.redaction import redact
from sash.memory.packed_vectors import choose_likely, compare_vectors, pack_vector
from sash.ports.embedder import Embedder
from sash.ports.store import Store, Vector

# A look-up waits so long for the embedder.
EMBED_TIMEOUT_S = 3.0
MAX_QUESTION_CHARS = 4000
MIN_VECTORS = 8
# So many messages whose vectors have the signs of the question's vector are compared exactly.
MAX_COMPARED = 500
# What similarity is usual is taken from about so many vectors.
SAMPLE = 200
# So many messages get a score for their similarity.
MAX_SIMILAR = 60

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SimilarMessages:
    """The positions of messages of similar meaning, with scores from 0 to 1. The most similar one has 1.

    `has_clear` is True if the best one is more similar than the best of unrelated messages would be.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    has_clear: bool = False


async def find_similar(
    store: Store, owner: str, session_id: str, embedder: Embedder | None, text: str
) -> SimilarMessages:
    """Return the messages of similar meaning; none without an embedder, or if it fails."""
    if embedder is None:
        return SimilarMessages()
    some = await store.vectors(owner, session_id, model=embedder.name, limit=MIN_VECTORS)
    if len(some) < MIN_VECTORS:
        return SimilarMessages()
    try:
        async with asyncio.timeout(EMBED_TIMEOUT_S):
            [made] = await embedder.embed([text[:MAX_QUESTION_CHARS]])
        asked = pack_vector(made)
    except Exception as error:
        reason = redact(str(error) or type(error).__name__)
        _logger.warning("the embedder failed, so recall uses words only: %s; run `sash doctor`", reason)
        return SimilarMessages()
    vectors = await store.vectors(owner, session_id, model=embedder.name)
    return await asyncio.to_thread(rank_similar, asked, vectors)


def rank_similar(asked: bytes, vectors: Sequence[Vector]) -> SimilarMessages:
    """Return the messages whose vectors are similar to that of a question.

    Similarities of different models cannot be compared. So the mean of all gets 0, and the best one 1.
    """
    comparable = [vector for vector in vectors if len(vector.data) == len(asked)]
    if len(comparable) < MIN_VECTORS:
        return SimilarMessages()
    data = [vector.data for vector in comparable]
    usual = compare_vectors(asked, data[:: -(-len(data) // SAMPLE)])
    mean = fmean(usual)
    deviation = sqrt(fmean((alike - mean) ** 2 for alike in usual))
    likely = choose_likely(asked, data, MAX_COMPARED)
    alike = compare_vectors(asked, [data[n] for n in likely])
    found = sorted(zip(alike, likely, strict=True), reverse=True)[:MAX_SIMILAR]
    best = found[0][0]
    scores = {comparable[n].position: (one - mean) / (best - mean) for one, n in found if one > mean}
    # The highest of so many random values is about so many standard deviations above the mean.
    return SimilarMessages(scores, best > mean + deviation * sqrt(2 * log(len(data))))
