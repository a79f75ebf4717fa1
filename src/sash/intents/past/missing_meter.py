"""Says which thing has no meter, and what is counted instead."""

from typing import NamedTuple

from sash.intents.missing_words import find_place, say_missing
from sash.intents.past.sources import find_meters
from sash.intents.sentence.clause import Word
from sash.intents.situation import Situation
from sash.ports.home import Entity

MAX_NAMES = 3


class Metered(NamedTuple):
    """What was consumed, such as "water", and the things that the question names as consumers.

    `unknown` is a named thing that the home does not know; empty if it knows all of them.
    """

    kind: str
    entities: tuple[Entity, ...] = ()
    words: tuple[Word, ...] = ()
    unknown: str = ""


def say_no_meter(situation: Situation, metered: Metered) -> str:
    """Return that the named things, or the home, have no meter."""
    writer = situation.writer
    if metered.unknown:
        return say_missing(situation, metered.unknown)
    if metered.kind in ("water", "gas"):
        return writer.say(f"past.no_{metered.kind}_meter")
    if not metered.entities:
        return writer.say("past.no_meter")
    thing = find_place(situation, metered.words) or writer.names(metered.entities[:MAX_NAMES])
    key = "no_meter_but_house" if find_meters(situation, (), (), metered.kind) else "no_meter_of"
    return writer.say(f"past.{key}", name=thing)
