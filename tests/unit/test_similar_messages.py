"""Messages of similar meaning get scores that do not depend on the model."""

import random

from sash.engine.similar_messages import MAX_SIMILAR, rank_similar
from sash.memory.packed_vectors import pack_vector
from sash.ports.store import Vector

SIZE = 64


def make_vector(seed):
    return [random.Random(seed * 1000 + n).gauss(0, 1) for n in range(SIZE)]


def store(made):
    return [Vector(n, "m", pack_vector(vector)) for n, vector in enumerate(made, 1)]


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
