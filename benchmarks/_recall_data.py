"""Reads the conversations and questions of the benchmark of recall."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).with_name("recall_data")
AGENT = "Sash"
LANGUAGES = {"terrace_house": "en", "city_flat": "en", "hofhaus": "de"}


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a conversation. Ids count from 1."""

    id: int
    at: datetime
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class AskedLater:
    """A question about a conversation, with the ids of the messages that hold the answer."""

    id: str
    at: datetime
    asker: str
    kind: str
    question: str
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    messages: tuple[Said, ...]
    questions: tuple[AskedLater, ...]
    language: str = "en"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(message.speaker for message in self.messages))


def read_conversation(name: str, questions_of: str = "plain") -> Conversation:
    messages = tuple(
        Said(row["id"], datetime.fromisoformat(row["at"]).replace(tzinfo=UTC), row["speaker"], row["text"])
        for row in _read(f"{name}.jsonl")
    )
    asked = tuple(
        AskedLater(
            row["id"],
            datetime.fromisoformat(row["at"]).replace(hour=12, tzinfo=UTC),
            row["asker"],
            row["kind"],
            row["question"],
            frozenset(row["evidence"]),
        )
        for row in _read(f"{name}.{questions_of}.jsonl")
    )
    return Conversation(name, messages, asked, LANGUAGES[name])


def read_everyday(conversation: Conversation, questions_of: str) -> list[str] | None:
    """Return messages in the language of a conversation on which nothing is to be recalled.

    There are some beside the plain questions and beside those that name a person, and none beside riddles.
    """
    names = {"plain": "everyday", "people": f"{conversation.name}.people_everyday"}
    if questions_of not in names:
        return None
    lines = (FOLDER / f"{names[questions_of]}.txt").read_text("utf-8").splitlines()
    return [line[3:] for line in lines if line.startswith(conversation.language)]


def _read(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]
