"""The act of a clause: the verb with its amount, without the things."""

from collections.abc import Iterable
from dataclasses import dataclass

from sash.intents.sentence.clause import NO_AMOUNT, Amount, Clause
from sash.intents.sentence.clause import STEPS as STEPS

# Acts that are about warmth.
WARMTH = frozenset({"warmer", "colder"})
# Acts that take each other back.
OPPOSITES = {"on": "off", "off": "on", "open": "close", "close": "open"}
# Steps that make a value higher. The others make it lower.
_UPWARDS = frozenset({"up", "brighter", "louder", "warmer", "faster", "stronger", "open"})


@dataclass(frozen=True, slots=True)
class Act:
    """The act "on", "brighter" …, with an amount. `properties` has what it changes, such as the volume."""

    do: frozenset[str]
    amount: Amount = NO_AMOUNT
    properties: frozenset[str] = frozenset()

    @property
    def is_step(self) -> bool:
        """Return True if the act changes a value by some amount, and names no value."""
        return bool(self.do & STEPS) and (self.amount.value is None or self.is_difference)

    @property
    def is_difference(self) -> bool:
        """Return True if the amount is the size of a step: "by 10"."""
        return self.amount.role == "by" and not self.do.isdisjoint(STEPS | OPPOSITES.keys())

    @property
    def goes_up(self) -> bool:
        """Return True if the act makes a value higher."""
        return not self.do.isdisjoint(_UPWARDS)

    @property
    def percent(self) -> float | None:
        """The value in percent; None for degrees, for a difference, or without an amount."""
        return self.amount.value if self.amount.unit in (None, "percent") and not self.is_difference else None

    @property
    def degrees(self) -> float | None:
        """The value in degrees; None for percent, for a difference, or without an amount."""
        return self.amount.value if self.amount.unit in (None, "degrees") and not self.is_difference else None

    def has(self, *values: str) -> bool:
        return not self.do.isdisjoint(values)

    def step(self, usual: float, direction: tuple[str, str]) -> float:
        """Return the signed size of a step. `direction` are the words for more and for less."""
        factor = {"little": 0.5, "much": 2.0}.get(self.amount.size or "", 1.0)
        sign = 1 if self.has("up", direction[0]) else -1
        return sign * (usual * factor if self.amount.value is None else self.amount.value)


def take_back(do: Iterable[str]) -> tuple[str, ...]:
    """Return the acts that take some acts back, for those that have an opposite."""
    return tuple(OPPOSITES[each] for each in do if each in OPPOSITES)


def read_act(clause: Clause) -> Act:
    """Return what a clause asks for."""
    do = frozenset(clause.do)
    # "Lights out": a person is out, and a light is off.
    do |= {"off"} if "away" in do else frozenset()
    return Act(do, clause.amount, frozenset(clause.properties))
