"""The table of everyday sentences: its cases as values."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

SENTENCES = Path(__file__).with_name("sentences")
OUTCOMES = frozenset({"action", "answer", "asks", "refuses", "waits"})
LANGUAGES = ("en", "de", "fr", "es", "it", "nl")


@dataclass(frozen=True)
class Then:
    """Changes between or after sentences: first the states are set, then time passes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    set: dict[str, str] = field(default_factory=dict)
    advance_s: float = 0


@dataclass(frozen=True)
class Case:
    """A conversation whose last sentence, `say`, is judged. README.md explains the fields."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    kind: str
    id: str
    language: str
    houses: tuple[str, ...]
    say: str
    outcome: str
    area: str | None = None
    states: dict[str, str] = field(default_factory=dict)
    before: tuple[str | Then, ...] = ()
    after: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    max_sentences: int | None = None
    then: Then | None = None

    @property
    def outcomes(self) -> frozenset[str]:
        return frozenset(self.outcome.split("|"))

    @property
    def entities(self) -> frozenset[str]:
        """The ids of all entities that the case names."""
        paused = [key for item in self.before if isinstance(item, Then) for key in item.set]
        later = self.then.set if self.then else {}
        return frozenset({*self.states, *self.after, *self.values, *self.may_change, *later, *paused})


@cache
def read_cases() -> tuple[Case, ...]:
    """Return all cases, in the order of the files."""
    cases = TypeAdapter(list[Case])
    found: list[Case] = []
    for path in sorted(SENTENCES.glob("*.toml")):
        entries = tomllib.loads(path.read_text("utf-8"))["case"]
        found += cases.validate_python([{"kind": path.stem, **entry} for entry in entries])
    return tuple(found)
