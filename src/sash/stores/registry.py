"""The backends by name. A backend is imported only when the settings name it."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from sash.errors import InvalidConfig
from sash.ports.store import Store
from sash.values.clock import Clock

# The `store` setting and the class of its backend. If the setting is a URL, the key is its scheme with `://`.
# The class has a method `from_settings(StoreSettings)`.
BACKENDS = {
    "sqlite": "sash.stores.sqlite.store:SqliteStore",
    "files": "sash.stores.files.store:FilesStore",
    "memory": "sash.stores.memory:MemoryStore",
}


class StoreSettings(NamedTuple):
    """The settings of a store: the `store` setting, a function that makes the data folder, and the clock."""

    store: str
    make_folder: Callable[[], Path]
    clock: Clock


def make_store(settings: StoreSettings) -> Store:
    """Return the store that the settings name. It is not open yet."""
    scheme, separator, _ = settings.store.partition("://")
    name = f"{scheme}{separator}"
    if name not in BACKENDS:
        *others, last = BACKENDS
        given = settings.store.split("@")[-1]  # without a password
        raise InvalidConfig(f"store is {', '.join(others)} or {last}, not {given!r:.80}", option="store")
    module, _, class_name = BACKENDS[name].partition(":")
    try:
        backend = getattr(import_module(module), class_name)
    except ImportError as error:
        raise InvalidConfig(
            f"the {scheme} store needs more packages: pip install 'sash[{scheme}]' ({error})", option="store"
        ) from error
    store: Store = backend.from_settings(settings)
    return store
