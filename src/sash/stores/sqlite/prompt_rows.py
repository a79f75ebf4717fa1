"""The prompts of turns on SQLite. They stand in the rows of steps, so a turn touches no more pages."""

import sqlite3
from collections.abc import Collection
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import PlainValidator

from sash.stores.sqlite.columns import Text, read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Natural
from sash.values.codec import decode, encode
from sash.values.prompts import SentPrompts, find_needed, move_parts


class _PromptColumns(NamedTuple):
    """The columns of the query `prompts`."""

    continuation_id: Text
    cursor: Natural
    prompts: Annotated[SentPrompts, PlainValidator(partial(decode, SentPrompts))]


def list_prompts(db: sqlite3.Connection, key: int, continuation_id: str) -> SentPrompts:
    """Return the prompts of a turn, with all parts that they use. `key` is the key of its session."""
    found = _read_prompts(db, key)
    own = [sent for turn_id, _, sent in found if turn_id == continuation_id]
    records = tuple(record for sent in own for record in sent.records)
    parts = {part.key: part for _, _, sent in found for part in sent.parts}
    return SentPrompts(records, tuple(find_needed(records, parts).values()))


def _read_prompts(db: sqlite3.Connection, key: int) -> list[_PromptColumns]:
    """Return the prompts of a session, each with the turn and the cursor of its step."""
    rows = db.execute(SQL["prompts"], {"session": key})
    return read_sound(lambda row: read_columns(_PromptColumns, row), rows)


def keep_parts(db: sqlite3.Connection, key: int, dropped_ids: Collection[str]) -> None:
    """Move the parts of prompts that are dropped to the first prompt that is kept, if one needs them."""
    found = _read_prompts(db, key)
    dropped = [sent for turn_id, _, sent in found if turn_id in dropped_ids]
    kept = [(cursor, sent) for turn_id, cursor, sent in found if turn_id not in dropped_ids]
    moved = move_parts(dropped, [sent for _, sent in kept])
    if moved:
        cursor, sent = kept[0]
        changed = encode(SentPrompts(sent.records, moved + sent.parts))
        db.execute(SQL["move_prompts"], {"session": key, "cursor": cursor, "prompts": changed})
