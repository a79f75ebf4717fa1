"""The result of a check."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: `found` describes it, `advice` is the remedy. A "note" is no problem."""

    check: str
    status: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""
