"""What a check has found."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do about it; a note is worth knowing and nothing wrong."""

    check: str
    status: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""
