"""The result of a check."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, with the remedy as `advice`. A "note" is no problem."""

    check: str
    status: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""
