"""The backends by name. A backend is imported only when it is used, so that the command line starts fast.

A new backend needs a package with a `Backend` class (`sash.stores.backend`), and one line in `BACKENDS`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sash.errors import InvalidConfig

if TYPE_CHECKING:
    from sash.ports.store import Store
    from sash.stores.backend import Backend, StoreSettings

# The `store` setting and the class of its backend. If the setting is a URL, the key is its scheme with `://`.
BACKENDS = {
    "sqlite": "sash.stores.sqlite.store:SqliteStore",
    "files": "sash.stores.files.store:FilesStore",
    "memory": "sash.stores.memory:MemoryStore",
}
DEFAULT_BACKEND = "sqlite"


def describe_backends() -> str:
    """Return the names of all backends for a sentence: "sqlite, files or memory"."""
    *others, last = BACKENDS
    return f"{', '.join(others)} or {last}"


def has_backend(store: str) -> bool:
    """Return True if `store`, the setting, names a known backend."""
    return _backend_name(store) in BACKENDS


def find_backend(store: str) -> "type[Backend]":
    """Return the backend that the `store` setting names.

    Raises:
        InvalidConfig: there is no such backend, or packages that it needs are not installed.
    """
    if not has_backend(store):
        given = store.split("@")[-1]  # without a password
        raise InvalidConfig(f"store must be {describe_backends()}, not {given!r:.80}", option="store")
    name = _backend_name(store)
    module, _, class_name = BACKENDS[name].partition(":")
    try:
        backend: type[Backend] = getattr(import_module(module), class_name)
    except ImportError as error:
        extra = name.removesuffix("://")
        raise InvalidConfig(
            f"the {extra} store needs more packages: pip install 'sash[{extra}]' ({error})", option="store"
        ) from error
    return backend


def make_store(settings: "StoreSettings") -> "Store":
    """Return the store that the settings name. It is not open yet."""
    return find_backend(settings.store).from_settings(settings)


def _backend_name(store: str) -> str:
    scheme, separator, _ = store.partition("://")
    return f"{scheme}{separator}"
