"""The artifacts of ledgers: the interface of the place that keeps them, and such a place in memory."""

from collections.abc import Iterable
from typing import Protocol

from sash.ports.store import Artifact
from sash.stores.rules import record_errors


class Artifacts(Protocol):
    """Artifacts by their ids."""

    def has(self, artifact_id: str) -> bool:
        """Return True if an artifact with this id exists."""

    def write(self, artifact: Artifact) -> None:
        """Add an artifact."""

    def read(self, owner: str, artifact_id: str) -> Artifact:
        """Return an artifact. Raise `ArtifactNotFound` if the owner has no artifact with this id."""

    def list_session(self, session_id: str) -> Iterable[Artifact]:
        """Return the artifacts of a session."""

    def list_ids(self) -> list[tuple[str, str]]:
        """Return the id and the session of each artifact."""

    def remove(self, artifact_id: str) -> None:
        """Remove an artifact."""


class MemoryArtifacts:
    """Artifacts in memory."""

    def __init__(self) -> None:
        self._by_id: dict[str, Artifact] = {}

    def has(self, artifact_id: str) -> bool:
        return artifact_id in self._by_id

    def write(self, artifact: Artifact) -> None:
        self._by_id[artifact.ref.id] = artifact

    def read(self, owner: str, artifact_id: str) -> Artifact:
        artifact = self._by_id.get(artifact_id)
        if artifact is None or artifact.owner != owner:
            record_errors.raise_artifact_not_found(artifact_id)
        return artifact

    def list_session(self, session_id: str) -> Iterable[Artifact]:
        return [artifact for artifact in self._by_id.values() if artifact.session_id == session_id]

    def list_ids(self) -> list[tuple[str, str]]:
        return [(artifact_id, artifact.session_id) for artifact_id, artifact in self._by_id.items()]

    def remove(self, artifact_id: str) -> None:
        del self._by_id[artifact_id]
