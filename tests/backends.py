"""The backends that every test of the stores and of the runtime runs against, one line each."""

from sash.stores.files.store import FilesStore
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore

BACKENDS = {
    "memory": lambda folder, clock: MemoryStore(clock=clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "sash.db", clock=clock),
    "files": lambda folder, clock: FilesStore(folder / "data", clock=clock),
}
# The backends that keep data when they are closed.
DURABLE = ("sqlite", "files")
# The backends that several processes may open at once.
SHARED = ("sqlite",)
