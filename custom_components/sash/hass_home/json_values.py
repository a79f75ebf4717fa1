"""Converts the values inside Home Assistant, such as enums, sets and times, into values of JSON."""

from collections.abc import Mapping
from datetime import date, time
from enum import Enum
from math import isfinite
from typing import Any

_PLAIN = frozenset({str, int, bool, type(None)})


def to_json_value(value: Any) -> Any:
    """Return the value as Home Assistant writes it in JSON. A value that JSON cannot hold becomes text."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return to_json_value(value.value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return {str(to_json_value(key)): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((to_json_value(item) for item in value), key=str)
    if isinstance(value, date | time):
        return value.isoformat()
    if callable(as_dict := getattr(value, "as_dict", None)):
        return to_json_value(as_dict())
    return str(value)
