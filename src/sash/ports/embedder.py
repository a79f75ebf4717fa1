"""The embedder port: texts become vectors. Texts of similar meaning get vectors of similar direction."""

from abc import abstractmethod
from array import array
from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors. A subclass inherits a `close` that does nothing."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the vector space. Vectors can be compared only if their embedders share this name."""
        ...

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in the same order. Raise a `ModelError` if that fails."""
        ...

    async def close(self) -> None:
        """Close connections. A later call may open them again."""
        return


def pack_vector(vector: Sequence[float]) -> bytes:
    """Scale a vector to length 1 and return it as bytes, four for each component.

    Raises:
        ValueError: a component is not a finite number.
    """
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    if not isfinite(length):
        raise ValueError("the vector has a component that is not a finite number")
    return array("f", [x / length for x in vector]).tobytes()


def compare_vectors(one: bytes, other: bytes) -> float:
    """Return the cosine similarity of two packed vectors. It is 0 if they differ in length."""
    if len(one) != len(other):
        return 0.0
    return float(sum(map(mul, array("f", one), array("f", other))))
