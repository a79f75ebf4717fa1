"""Messages of similar meaning get scores that do not depend on the model."""

import random

from sash.engine.similar_messages import MAX_SIMILAR, MIN_VECTORS, find_similar, rank_similar
from sash.memory.packed_vectors import pack_vector
from sash.ports.store import Vector

SIZE = 64


def make_vector(seed):
    return [random.Random(seed * 1000 + n).gauss(0, 1) for n in range(SIZE)]


def store(made):
    return [Vector(n, "m", pack_vector(vector)) for n, vector in enumerate(made, 1)]


class StoredVectors:
    """A store that notes how many vectors it has read."""

    def __init__(self, vectors):
        self._vectors = vectors
        self.read_count = 0

    async def vectors(self, owner, session_id, *, model, limit=None):
        found = [vector for vector in self._vectors if vector.model == model][-(limit or 99) :]
        self.read_count += len(found)
        return found


class OneVector:
    name = "m"

    def __init__(self, vector):
        self.vector = vector
        self.asked = 0

    async def embed(self, texts):
        self.asked += 1
        return [self.vector] if self.vector else []


async def test_no_vectors_are_read_before_the_embedder_has_answered():
    made = store([make_vector(seed) for seed in range(1, 30)])
    stored, embedder = StoredVectors(made), OneVector(make_vector(1))
    assert 1 in (await find_similar(stored, "ann", "s", embedder, "a question")).scores
    assert stored.read_count == MIN_VECTORS + len(made)
    stored.read_count, embedder.vector = 0, None
    assert not (await find_similar(stored, "ann", "s", embedder, "a question")).scores
    assert stored.read_count == MIN_VECTORS
    few = StoredVectors([*made[: MIN_VECTORS - 1], *(Vector(n, "n", b"") for n in range(50, 70))])
    assert not (await find_similar(few, "ann", "s", embedder, "a question")).scores
    assert embedder.asked == 2, "a session with few vectors costs no request"


def test_the_most_similar_message_gets_1_and_a_usual_one_nothing():
    asked = make_vector(0)
    usual = [make_vector(seed) for seed in range(1, 700)]
    near = [x + 0.5 * y for x, y in zip(asked, make_vector(999), strict=True)]
    found = rank_similar(pack_vector(asked), store([*usual, near]))
    assert found.has_clear
    assert found.scores[700] == max(found.scores.values()) == 1
    assert sorted(found.scores.values())[-2] < 0.7
    assert len(found.scores) == MAX_SIMILAR
    assert min(found.scores.values()) > 0


def test_nothing_is_clear_among_messages_without_a_similar_one():
    found = rank_similar(pack_vector(make_vector(0)), store([make_vector(seed) for seed in range(1, 700)]))
    assert not found.has_clear


def test_a_few_vectors_say_nothing_and_those_of_another_length_do_not_count():
    asked = pack_vector(make_vector(0))
    made = [make_vector(seed) for seed in range(7)]
    assert not rank_similar(asked, store(made)).scores
    assert not rank_similar(asked, store([*made, [1.0], [2.0]])).scores
    assert not rank_similar(asked, store([make_vector(0)] * 20)).scores
