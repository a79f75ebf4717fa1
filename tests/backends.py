"""The backends that every test of the stores and of the runtime runs against, one line each."""

from sash.stores.files.store import FilesStore
from sash.stores.memory import MemoryStore
from sash.stores.registry import find_backend
from sash.stores.sqlite.store import SqliteStore

BACKENDS = {
    "memory": lambda folder, clock: MemoryStore(clock=clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "sash.db", clock=clock),
    "files": lambda folder, clock: FilesStore(folder / "data", clock=clock),
}
# The backends that keep data when they are closed.
DURABLE = tuple(name for name in BACKENDS if find_backend(name).is_durable)
# The backends that several processes may open at once.
SHARED = tuple(name for name in BACKENDS if find_backend(name).is_shared)
