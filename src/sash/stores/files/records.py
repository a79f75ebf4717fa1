"""The contents of the files of a session, and the lines of a log.

The names of the fields are the stored format.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge
from pydantic import Field, Strict

from sash.errors import StoreUnavailable
from sash.ports.store import Vector
from sash.ports.turns import Evicted, TurnEnd
from sash.values.bounds import Cost, Natural, Time
from sash.values.codec import adapter, decode
from sash.values.continuations import ArtifactRef, Continuation
from sash.values.messages import MessageEntry
from sash.values.prompts import NO_PROMPTS, PromptPart, SentPrompts
from sash.values.sessions import Label, Session
from sash.values.step_codec import StepRecord
from sash.values.steps import Step
from sash.values.waiting_turns import WaitingTurn

LAYOUT_VERSION = 1
# The version of the indexes for searches: how words and vectors are made from messages.
INDEX_VERSION = 2
LAYOUT_FILE = "index/meta.json"
SPENT_FILE = "index/spent.json"
OWNER_FILE = "owner.json"
# The last `session.json` that was synced, if the present one was not.
SYNCED_FILE = ".session.json.synced"
IMPORTED_FILE = "imported.ndjson"
OWNERS_FOLDER = "owners"
VECTORS_FILE = "vectors.ndjson"
WAITING_FILE = "waiting.json"


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The content of `session.json`: the session at `cursor`. The logs have all later changes."""

    session: Session
    cursor: Natural
    in_window: tuple[str, ...] = ()
    turn_starts: tuple[str, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    evicted_count: Natural = 0


@dataclass(frozen=True, slots=True)
class TurnFile:
    """The content of `turns/{turn}.json`: the continuation at `cursor`.

    `position` is the position of its first message. `ended` is the session's cursor at its end.
    """

    continuation: Continuation
    messages: tuple[MessageEntry, ...] = ()
    position: Natural = 0
    cursor: Natural = 0
    ended: Natural = 0
    kept_parts: tuple[PromptPart, ...] = ()


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """The content of `index/meta.json`: the version of the layout, and the key that signs exports, in hex.

    `index_version` is the version of the indexes for searches. Vectors of another version are made again.
    """

    version: Annotated[int, Strict(), Ge(1)]
    export_key: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    index_version: Annotated[int, Strict(), Ge(1)] = 1


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """The content of `artifacts/{artifact}.json`. The data are in the file without a suffix."""

    ref: ArtifactRef
    session_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class OwnerFile:
    """The content of `owner.json`: the owner of imported messages, if `session.json` is damaged."""

    owner: str


@dataclass(frozen=True, slots=True)
class Spent:
    """Dollars that an owner spent in the quarter of an hour that begins at `at`."""

    owner: Label
    at: Time
    usd: Cost


@dataclass(frozen=True, slots=True)
class SpentFile:
    """The content of `index/spent.json`: money that no turn has.

    `counted` are the deleted sessions whose money is in it, although their folders are not removed yet.
    """

    spent: tuple[Spent, ...] = ()
    counted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorLine:
    """A line of `vectors.ndjson`: a write of vectors. They can be computed again from the transcript.

    First the vectors at the `dropped` positions go, then new ones are added. Then the `keep` vectors with the
    highest positions remain.
    """

    vectors: tuple[Vector, ...] = ()
    keep: Natural = 0
    dropped: tuple[Natural, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """The content of `waiting.json`. Those that have become continuations are gone, whatever it says."""

    waiting_turns: tuple[WaitingTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """The `commit` in the last line of a write: the continuation after it, and its end or amended answer."""

    continuation: Continuation
    finish: TurnEnd | None = None
    position: Natural = 0
    amended: MessageEntry | None = None
    prompts: SentPrompts = NO_PROMPTS


class LogLine(NamedTuple):
    """A line of a log. A line without a step is a `StepRecord` with number 0. `commit` ends a write."""

    step: Step | StepRecord
    commit: Commit | None


def encode_step(step: Step) -> dict[str, Any]:
    line: dict[str, Any] = adapter(Step).dump_python(step, mode="json")
    return line


def encode_status(at: datetime, cursor: int) -> dict[str, Any]:
    """Return a log line without a step, for a write that only changes the status."""
    record = StepRecord(0, at, "observed_event", {"event": "status"}, cursor)
    line: dict[str, Any] = adapter(StepRecord).dump_python(record, mode="json")
    return line


def encode_commit(commit: Commit) -> dict[str, Any]:
    value: dict[str, Any] = adapter(Commit).dump_python(commit, mode="json")
    return value


def get_session_id(folder: Path) -> str:
    """Return the id of the session in a folder. After a deletion the folder has the name `.{id}.deleted`."""
    return folder.name.removeprefix(".").removesuffix(".deleted")


def read_session_file(path: Path, data: bytes) -> SessionFile:
    """Read a `session.json`. Raise `StoreUnavailable` if it is damaged, or of another session."""
    record = decode(SessionFile, data)
    if record.session.id != get_session_id(path.parent):
        raise StoreUnavailable("the file has the id of another session")
    return record


def read_turn_file(path: Path, data: bytes) -> TurnFile:
    """Read a turn's file. Raise `StoreUnavailable` if it is damaged, or of another turn."""
    record = decode(TurnFile, data)
    _check_place(path, record.continuation)
    return record


def read_vector_file(data: bytes) -> list[VectorLine]:
    """Read the whole lines of a `vectors.ndjson`. Raise `StoreUnavailable` if one is damaged, or without any.

    A crash may leave a part of a line at the end.
    """
    lines = [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
    if not lines:
        raise StoreUnavailable("the file has no whole line")
    return [decode(VectorLine, line) for line in lines]


def decode_line(path: Path, raw: bytes) -> LogLine:
    """Read a line of the log at `path`. Raise `ValueError` or `SashError` if it is damaged or incomplete."""
    line = adapter(dict).validate_json(raw)
    if not raw.endswith(b"\n"):
        raise ValueError("not a whole line")
    commit = line.pop("commit", None)
    text = json.dumps(line)
    step = decode(Step, text) if line.get("n") else decode(StepRecord, text)
    if commit is None:
        return LogLine(step, None)
    decoded = decode(Commit, json.dumps(commit))
    _check_place(path, decoded.continuation)
    return LogLine(step, decoded)


def _check_place(path: Path, turn: Continuation) -> None:
    """Raise `StoreUnavailable` if a turn is not the one of its file."""
    if (turn.id, turn.session_id) != (path.stem, get_session_id(path.parents[1])):
        raise StoreUnavailable("the file has the id of another turn")
