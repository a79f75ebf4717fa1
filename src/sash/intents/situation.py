"""The situation in which a sentence is said, and the reply to it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sash.errors import HomeUnavailable
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.intents.answers.writer import AnswerWriter
from sash.intents.home_words import HomeWords
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.sentence import Sentence
from sash.ports.intents import Utterance
from sash.values.citations import Citation


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a tool that a sentence asks for."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a sentence: an answer, or calls of tools that are made before it is answered.

    `topic` is what later sentences may refer to. With `is_guess` the reply is only given if no model could
    answer the sentence better.
    """

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()
    topic: dict[str, Any] | None = None
    citations: tuple[Citation, ...] = ()
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that the reply to a sentence depends on.

    Without a home, or while it is not connected, `live_home` is None and the index is empty. `now` is the
    time in the zone of the home. `area_id` is the area of the speaker. `focus_ids` are the entities that the
    last turns were about, newest first.
    """

    utterance: Utterance
    sentence: Sentence
    reader: SentenceReader
    writer: AnswerWriter
    words: HomeWords
    index: HomeIndex
    live_home: LiveHome | None
    now: datetime
    area_id: str | None = None
    focus_ids: tuple[str, ...] = field(default=())

    @property
    def home(self) -> LiveHome:
        """The home. Raise `HomeUnavailable` without one."""
        if self.live_home is None:
            raise HomeUnavailable("there is no home")
        return self.live_home
