"""What a turn was about, for later sentences that refer to it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from sash.intents.sentence.clause import Clause

Kind = Literal["command", "question", "offer", "waiting", "other"]


@dataclass(frozen=True, slots=True)
class Topic:
    """The clauses of a sentence, with references filled in, and the entities that they mean.

    An offer has the entities to choose from: "Do you mean the kitchen radio?" has one. `is_dropped` is True
    for a command that waited for an approval, and was not carried out.
    """

    kind: Kind
    clauses: tuple[Clause, ...] = ()
    entity_ids: tuple[str, ...] = ()
    choices: tuple[str, ...] = field(default=())
    is_dropped: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        written: dict[str, Any] = _ADAPTER.dump_python(self, mode="json", exclude_defaults=True)
        return written | {"kind": self.kind}


_ADAPTER = TypeAdapter(Topic)


def read_topic(value: dict[str, Any] | None) -> Topic | None:
    """Return the topic that `to_json` wrote; None for other values."""
    if not value:
        return None
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError:
        return None
