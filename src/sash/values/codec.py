"""Converts dataclasses to JSON and back, according to their annotations."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sash.errors import SashError, StoreUnavailable
from sash.values.faults import describe_faults

T = TypeVar("T")

_adapters: dict[type[Any], TypeAdapter[Any]] = {}
_serializers: dict[type[Any], Callable[[Any], bytes]] = {}


def encode(value: Any) -> str:
    """Return a dataclass as JSON text."""
    try:
        to_json = _serializers[type(value)]
    except KeyError:
        to_json = _serializers[type(value)] = adapter(type(value)).serializer.to_json
    return to_json(value).decode()


def decode(kind: type[T], text: str | bytes) -> T:
    """Return the value that `encode` wrote; raise `StoreUnavailable` if the text is damaged.

    Unknown fields are ignored, because another version of Sash may have written them.
    """
    try:
        try:
            value: T = adapter(kind).validate_json(text)
        except ValidationError as error:
            value = adapter(kind).validate_json(_drop_unknown_fields(text, error))
    except ValidationError as error:
        faults = describe_faults(error.errors(include_url=False))
        raise StoreUnavailable(f"a stored {kind.__name__} is damaged: {faults}") from error
    except SashError as error:
        raise StoreUnavailable(f"a stored {kind.__name__} is damaged: {error}") from error
    return value


def _drop_unknown_fields(text: str | bytes, error: ValidationError) -> str:
    """Return the JSON text without its unknown fields. Raise `error` if it reports other faults, too."""
    faults = error.errors(include_url=False)
    if any(fault["type"] != "unexpected_keyword_argument" for fault in faults):
        raise error
    data = json.loads(text)
    for fault in faults:
        *path, name = fault["loc"]
        found = data
        for key in path:
            found = found[key]
        del found[name]
    return json.dumps(data)


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return the pydantic adapter of a class. It is built only once, because building it is slow."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
