"""The values of a sentence that was read: its clauses and their parts."""

from dataclasses import dataclass
from typing import Literal

from sash.intents.sentence.time_words import NO_TIME, TimeWords

# Acts that change a value by some amount. They also name a state: in "is it warmer?" they ask for it.
STEPS = frozenset(
    {
        *("up", "down", "brighter", "darker", "louder", "quieter", "warmer", "colder", "faster", "slower"),
        *("stronger", "weaker"),
    }
)
# States that only a sensor tells, and no command brings about: "any motion in the hall" asks.
NOTICED = frozenset(
    {
        *("moving", "leak", "rain", "snow", "smoke", "carbon_monoxide", "noise", "vibrating", "detected"),
        "power_cut",
        *("charging", "plugged_in", "unplugged", "updates", "up_to_date"),
    }
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word that describes a thing: a kind, a room, a name or an unknown word.

    `keys` are its meanings, as in `HomeWords`. `entity_ids` are set if the word is the full name of entities.
    `is_known` is False for a word that neither a lexicon nor the home knows.
    """

    text: str
    keys: frozenset[str]
    entity_ids: tuple[str, ...] = ()
    is_plural: bool = False
    is_known: bool = True

    def has(self, section: str) -> bool:
        """Return whether the word has a meaning of a section of the lexicon, such as "kind"."""
        return any(key.startswith(f"{section}.") for key in self.keys)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much: a number with its unit, a colour, or a size such as "little".

    `role` is "by" for a difference ("by 10") and "to" for a value ("to 10"); None if no word says it.
    """

    value: float | None = None
    unit: str | None = None
    colour: str | None = None
    size: str | None = None
    role: Literal["by", "to"] | None = None

    @property
    def is_empty(self) -> bool:
        return self.value is None and self.colour is None


NO_AMOUNT = Amount()


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence with one request.

    `do` holds what to do, or the states that a question asks for. `has_make` is True for a verb without a
    meaning of its own, such as "set". `refer` holds references to earlier turns, such as "it". `tense` is
    "past" or "future" if a word says so. `keeps` is True if a thing shall stay as it is: "leave it on".
    With `takes_back` a clause reverses the last command, and later sentences do not refer to it.
    """

    text: str
    do: tuple[str, ...] = ()
    has_make: bool = False
    ask: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()
    excluded: tuple[Word, ...] = ()
    properties: tuple[str, ...] = ()
    amount: Amount = NO_AMOUNT
    time: TimeWords = NO_TIME
    refer: frozenset[str] = frozenset()
    is_all: bool = False
    is_any: bool = False
    is_everything: bool = False
    is_negated: bool = False
    is_question: bool = False
    tense: str | None = None
    keeps: bool = False
    takes_back: bool = False

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words that neither a lexicon nor the home knows."""
        return tuple(word.text for word in self.words if not word.is_known)

    @property
    def is_command(self) -> bool:
        """Whether the clause says what to do, so that it needs no earlier clause for that."""
        return bool(self.do or not self.amount.is_empty) and not self.is_question

    @property
    def is_fragment(self) -> bool:
        """Whether the clause says neither what to do nor what is asked."""
        return not (self.do or self.properties or not self.amount.is_empty or self.ask)
