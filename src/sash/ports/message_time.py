"""When the user said something, written before the words: it stays there, so the prompt only grows."""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

_time = re.compile(r"(?:<context>\n.*?\n</context>\n\n)?\[\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)\] ", re.S)


def timed(content: Any, at: datetime, zone: tzinfo | None) -> Any:
    """Return what a user said with the time before it, as it was in a zone; None is the machine's."""
    time = _written(int(at.timestamp()) // 60, zone)
    if isinstance(content, str):
        return time + content
    said = [dict(part) for part in content]
    first = next((part for part in said if part["type"] == "text"), None)
    if first is None:
        return [{"type": "text", "text": time}, *said]
    first["text"] = time + first["text"]
    return said


@lru_cache(maxsize=1024)
def _written(minute: int, zone: tzinfo | None) -> str:
    return f"[{datetime.fromtimestamp(minute * 60, UTC).astimezone(zone):%a %Y-%m-%d %H:%M}] "


def untimed(text: str) -> tuple[str | None, str]:
    """Return the time and the words of what a user said, without what Sash has told before it."""
    found = _time.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)
