"""Describes the faults that pydantic finds, without the values: they may be secrets."""

from collections.abc import Sequence
from typing import Any

from pydantic.alias_generators import to_snake

MAX_FAULTS = 5
# Plainer words than those of pydantic, by the type of the fault.
_PROBLEMS = {
    "missing": "the field is missing",
    "unexpected_keyword_argument": "the field is unknown",
}


def describe_faults(faults: Sequence[Any]) -> str:
    """Return a text that says where the input is wrong and why."""
    return "; ".join(map(_describe, faults[:MAX_FAULTS]))


def _describe(fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"] if part != "body")
    message = _PROBLEMS.get(fault["type"], str(fault["msg"]))
    if fault["type"] == "unexpected_keyword_argument":
        name = str(fault["loc"][-1])
        if (field := to_snake(name)) != name:
            message = f"the field is unknown, or {field} was sent in both spellings"
    return f"{where}: {message}" if where else message
