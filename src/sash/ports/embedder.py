"""The embedder port: texts become vectors. Texts of similar meaning get vectors of similar direction."""

from abc import abstractmethod
from collections.abc import Sequence
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
