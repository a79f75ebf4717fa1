"""The embedder port: texts become vectors, and texts of like meaning become vectors of like direction."""

from array import array
from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul
from typing import Protocol


class Embedder(Protocol):
    """Makes vectors of texts. Vectors of two embedders with the same `name` can be compared."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]: ...


def pack(vector: Sequence[float]) -> bytes:
    """Write a vector of length 1 as bytes; one of anything but numbers is refused."""
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    if not isfinite(length):
        raise ValueError("a vector has a number that is none")
    return array("f", [x / length for x in vector]).tobytes()


def similarity(one: bytes, other: bytes) -> float:
    """Return the cosine of the angle between two vectors that were packed; 0 if they cannot be compared."""
    if len(one) != len(other):
        return 0.0
    return float(sum(map(mul, array("f", one), array("f", other))))
