"""One line a backend: what every test of the stores and of the runtime runs against."""

from sash.stores.files.store import FilesStore
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore

BACKENDS = {
    "memory": lambda folder, clock: MemoryStore(clock=clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "sash.db", clock=clock),
    "files": lambda folder, clock: FilesStore(folder / "data", clock=clock),
}
