"""Writes an exported session, with a signature of its ids.

The signature proves that this store made the export for its owner. An import of it keeps the ids.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from sash.errors import InvalidExport
from sash.ports.store import Bundle
from sash.values.codec import adapter
from sash.values.ids import is_ulid

FORMAT = {"format": "sash.session", "version": 1}


def write_export(bundle: Bundle, export_key: bytes) -> dict[str, Any]:
    """Return a whole session as JSON values. Records are converted one by one: other threads can run."""
    data: dict[str, Any] = dict(FORMAT)
    for part in fields(Bundle):
        value = getattr(bundle, part.name)
        data[part.name] = [*map(_dump, value)] if isinstance(value, tuple) else _dump(value)
    return data | {"signature": sign_ids(bundle.session.owner, read_ids(data), export_key)}


def read_ids(data: dict[str, Any]) -> list[str]:
    """Return the ids of the session, its turns and its artifacts. Raise `InvalidExport` for wrong ids."""
    turns, artifacts = data.get("continuations", []), data.get("artifacts", [])
    ids = [data["session"]["id"], *(t["id"] for t in turns), *(a["ref"]["id"] for a in artifacts)]
    for found in ids:
        if not is_ulid(found):
            raise InvalidExport(f"{found!r:.80} is not an id")
    if len(set(ids)) < len(ids):
        raise InvalidExport("an id occurs twice")
    return ids


def sign_ids(owner: str, ids: Iterable[str], export_key: bytes) -> str:
    """Return the signature of an owner's ids. Only a store with the same key makes the same one."""
    return hmac.new(export_key, "\n".join([owner, *sorted(ids)]).encode(), hashlib.sha256).hexdigest()


def _dump(value: Any) -> Any:
    return adapter(type(value)).dump_python(value, mode="json")
