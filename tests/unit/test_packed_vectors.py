"""Vectors that are packed into one byte a component."""

import math
import random

import pytest

from sash.memory.packed_vectors import choose_likely, compare_vectors, pack_vector


def make_vector(seed, size=256):
    return [random.Random(seed * 1000 + n).gauss(0, 1) for n in range(size)]


def compare(one, other):
    return compare_vectors(pack_vector(one), [pack_vector(other)])[0]


def measure_cosine(one, other):
    product = sum(x * y for x, y in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)


def test_similarity_is_the_cosine():
    assert compare([2, 0], [5, 0]) == pytest.approx(1)
    assert compare([1, 0], [0, 3]) == pytest.approx(0)
    assert compare([1, 0], [-1, 0]) == pytest.approx(-1)
    assert compare([0, 0], [1, 0]) == 0
    for seed in range(20):
        one, noise = make_vector(seed), make_vector(seed + 50)
        other = [x + seed / 5 * y for x, y in zip(one, noise, strict=True)]
        assert compare(one, other) == pytest.approx(measure_cosine(one, other), abs=0.005)


def test_vectors_of_another_length_are_not_similar():
    assert compare([1, 0], [1, 0, 0]) == 0
    assert compare([], []) == 0


def test_a_vector_needs_a_byte_for_each_component():
    assert len(pack_vector(make_vector(1, 256))) == 260


@pytest.mark.parametrize("component", [math.nan, math.inf, 1e308])
def test_a_component_that_is_not_finite_is_refused(component):
    with pytest.raises(ValueError, match="not a finite number"):
        pack_vector([1.0, component])


def test_the_nearest_vectors_are_among_the_likely_ones():
    asked = make_vector(1)
    near = [[x + y for x, y in zip(asked, make_vector(seed), strict=True)] for seed in range(2, 7)]
    others = [pack_vector(make_vector(seed)) for seed in range(7, 200)]
    packed = [*others[:90], *map(pack_vector, near), *others[90:]]
    assert {90, 91, 92, 93, 94} <= set(choose_likely(pack_vector(asked), packed, 20))
    assert choose_likely(pack_vector(asked), packed[:3], 20) == [0, 1, 2]
