"""Columns of rows, checked when they are read. SQLite stores any value in any column."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from annotated_types import MaxLen
from pydantic import PlainValidator, Strict, ValidationError

from sash.errors import StoreUnavailable
from sash.values.codec import adapter
from sash.values.faults import describe_faults

T = TypeVar("T")

_END = datetime(3000, 1, 1, tzinfo=UTC).timestamp()


def read_columns(kind: type[T], row: Sequence[Any]) -> T:
    """Return the columns of a row as a named tuple. Raise `StoreUnavailable` if a column is damaged."""
    try:
        value: T = adapter(kind).validate_python(row)
    except ValidationError as error:
        faults = describe_faults(error.errors(include_url=False))
        raise StoreUnavailable(f"a stored row is damaged, `sash doctor` names it: {faults}") from error
    return value


def read_time(timestamp: Any) -> datetime:
    """Return a stored time. Raise `StoreUnavailable` if it is no number, or not between 1970 and 3000."""
    if isinstance(timestamp, (int, float)) and 0 <= timestamp < _END:
        return datetime.fromtimestamp(timestamp, UTC)
    raise StoreUnavailable("a stored time is damaged, `sash doctor` names it")


StoredTime = Annotated[datetime, PlainValidator(read_time)]
# A limit makes pydantic check that the text is valid UTF-8.
Text = Annotated[str, Strict(), MaxLen(1 << 40)]
