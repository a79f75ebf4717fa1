"""Values to JSON and back, from the one definition that the dataclasses are."""

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sash.errors import StoreUnavailable

T = TypeVar("T")

_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def encode(value: Any) -> str:
    """Return a dataclass as JSON text."""
    return adapter(type(value)).serializer.to_json(value).decode()


def decode(kind: type[T], text: str | bytes) -> T:
    """Read what `encode` wrote."""
    try:
        value: T = adapter(kind).validate_json(text)
    except ValidationError as error:
        raise StoreUnavailable(f"a stored {kind.__name__} is damaged: {error}") from error
    return value


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what knows how to write and read values of `kind`; it takes a moment to make, once."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
