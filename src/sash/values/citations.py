"""The sources of an answer: one small value for each kind. `type` tells the kinds apart in JSON."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MaxLen
from pydantic import Discriminator

from sash.values.bounds import Time

MAX_CITATIONS = 8
MAX_FOLLOW_UPS = 3
# The maximum of a text when it is made. A redacted text may be longer than that.
MAX_TEXT_CHARS = 200
Text = Annotated[str, MaxLen(1000)]


@dataclass(frozen=True, slots=True)
class EntityCitation:
    """The state of an entity that was read. The entity has had the state since `at`, if that is known."""

    entity_id: Text
    name: Text
    state: Text
    unit: Text = ""
    at: Time | None = None
    type: Literal["entity"] = "entity"


@dataclass(frozen=True, slots=True)
class HistoryCitation:
    """A part of the history of an entity, from `start` to `end`."""

    entity_id: Text
    name: Text
    start: Time
    end: Time
    type: Literal["history"] = "history"


@dataclass(frozen=True, slots=True)
class LogCitation:
    """An entry of the logbook or of the system log."""

    at: Time
    text: Text
    entity_id: Text | None = None
    type: Literal["log"] = "log"


@dataclass(frozen=True, slots=True)
class TurnCitation:
    """An earlier turn of the conversation that was recalled: its time and its first words."""

    at: Time
    text: Text
    message_id: Text | None = None
    type: Literal["turn"] = "turn"


Citation = Annotated[EntityCitation | HistoryCitation | LogCitation | TurnCitation, Discriminator("type")]


def shorten(text: str) -> str:
    """Return a text on one line, with at most `MAX_TEXT_CHARS` characters."""
    line = " ".join(text[: 4 * MAX_TEXT_CHARS].split())
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[: MAX_TEXT_CHARS - 1]}…"
