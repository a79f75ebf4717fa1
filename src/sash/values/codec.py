"""Converts dataclasses to JSON and back, according to their annotations."""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sash.errors import StoreUnavailable

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
    """Return the value that `encode` wrote; raise `StoreUnavailable` if the text is damaged."""
    try:
        value: T = adapter(kind).validate_json(text)
    except ValidationError as error:
        raise StoreUnavailable(f"a stored {kind.__name__} is damaged: {error}") from error
    return value


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return the pydantic adapter of a class. It is built only once, because building it is slow."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
