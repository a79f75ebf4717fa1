"""Describes the faults that pydantic finds, without the values: they may be secrets."""

from collections.abc import Sequence
from typing import Any

MAX_FAULTS = 5


def describe_faults(faults: Sequence[Any]) -> str:
    """Return a text that says where the input is wrong and why."""
    return "; ".join(map(_describe, faults[:MAX_FAULTS]))


def _describe(fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"] if part != "body")
    return f"{where}: {fault['msg']}" if where else str(fault["msg"])
