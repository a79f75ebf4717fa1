"""Artifacts as files: one with the data, and one with the description, the session and the owner."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sash.errors import SashError, StoreUnavailable
from sash.ports.store import Artifact
from sash.stores import disk
from sash.stores.files.damage import DamageReport
from sash.stores.files.records import ArtifactFile
from sash.stores.rules import record_errors
from sash.values.codec import decode, encode
from sash.values.ids import is_ulid


class ArtifactFiles:
    """A folder of artifacts. Damaged ones are reported."""

    def __init__(self, folder: Path, report: DamageReport) -> None:
        self._folder = folder
        self._report = report

    def has(self, artifact_id: str) -> bool:
        return (self._folder / artifact_id).exists()

    def write(self, artifact: Artifact) -> None:
        path = self._folder / artifact.ref.id
        about = ArtifactFile(artifact.ref, artifact.session_id, artifact.owner)
        disk.replace(path, artifact.data, sync=True)
        disk.replace(path.with_suffix(".json"), encode(about), sync=True)

    def read(self, owner: str, artifact_id: str) -> Artifact:
        path = self._folder / artifact_id
        try:
            if not is_ulid(artifact_id):
                raise FileNotFoundError(artifact_id)
            about = decode(ArtifactFile, disk.read(path.with_suffix(".json")))
            if about.owner != owner:
                raise FileNotFoundError(artifact_id)
            return Artifact(about.ref, about.session_id, owner, disk.read(path))
        except FileNotFoundError:
            record_errors.raise_artifact_not_found(artifact_id)
        except (disk.UnusableFile, StoreUnavailable) as error:
            raise StoreUnavailable(f"the artifact {artifact_id} cannot be read: {error}") from error

    def list_session(self, session_id: str) -> Iterator[Artifact]:
        for path in sorted(self._folder.glob("*.json")):
            try:
                about = decode(ArtifactFile, disk.read(path))
                if about.session_id == session_id:
                    yield self.read(about.owner, path.stem)
            except (disk.UnusableFile, SashError) as error:
                self._report.add(path, f"the artifact cannot be read: {error}")

    def list_ids(self) -> list[tuple[str, str]]:
        """Return the id and the session of each artifact that can be read."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            with suppress(disk.UnusableFile, SashError):
                found.append((path.stem, decode(ArtifactFile, disk.read(path)).session_id))
        return found

    def remove(self, artifact_id: str) -> None:
        path = self._folder / artifact_id
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)
