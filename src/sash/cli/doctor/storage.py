"""Checks the data folder and the store, read-only."""

import os
import shutil
from contextlib import suppress

from sash.app.assembly import make_store_settings
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.errors import InvalidConfig
from sash.stores.registry import find_backend

MIN_FREE_BYTES = 100 << 20
_GROUP_AND_OTHERS = 0o077


def check_folder(settings: Settings) -> Finding:
    """Check that the data folder is writable and private, and has free space."""
    if _is_in_memory(settings):
        return Finding("data", "ok", "not needed: the store is in memory")
    folder = settings.folder
    existing = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    if not existing.is_dir():
        advice = "choose another folder with --data or SASH_DATA"
        return Finding("data", "wrong", f"{existing} is not a folder", advice)
    if not os.access(existing, os.W_OK | os.X_OK):
        advice = "choose another folder with --data, or change its permissions"
        return Finding("data", "wrong", f"{existing} cannot be written", advice)
    free_bytes = shutil.disk_usage(existing).free
    space = f"{free_bytes / (1 << 30):.1f} GB free"
    if free_bytes < MIN_FREE_BYTES:
        advice = "free some space: a store that cannot write refuses turns"
        return Finding("data", "wrong", f"{folder}, {space}", advice)
    if existing != folder:
        return Finding("data", "ok", f"{folder} will be created, {space}")
    if os.name == "posix" and folder.stat().st_mode & _GROUP_AND_OTHERS:
        return Finding("data", "note", f"other users can read {folder}, {space}", f"chmod 700 {folder}")
    return Finding("data", "ok", f"{folder}, {space}")


def check_store(settings: Settings) -> Finding:
    """Check that this version of Sash can read the store. The backend decides how."""
    try:
        backend = find_backend(settings.store)
    except InvalidConfig as error:
        return Finding("store", "wrong", error.message)
    status, found, advice = backend.check(make_store_settings(settings))
    return Finding("store", status, found, advice)


def _is_in_memory(settings: Settings) -> bool:
    with suppress(InvalidConfig):  # `check_store` reports an unknown backend
        return not find_backend(settings.store).is_durable
    return False
