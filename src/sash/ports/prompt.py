"""The text format of a prompt: system messages, context blocks and message times.

The engine writes this format. Model adapters convert or read it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from sash.ports.model import extract_text

MEDIA_PARTS = frozenset({"image_url", "input_audio"})

_context_and_time = re.compile(
    r"\A(?:<context>\n.*?\n</context>\n\n)?\[\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)(?:, [^\]\n]*)?\] ", re.S
)

# A name stands in brackets on one line.
_not_in_name = re.compile(r"[\[\]\s]+")
_MAX_NAME_CHARS = 64


def merge_system_messages(
    messages: Sequence[dict[str, Any]], accepted_parts: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """Rewrite messages so that one system message stands at the start and none elsewhere.

    Many chat templates refuse any other system message. Later system messages, and volatile ones, move into a
    context block of the next user message. A note replaces every media part that is not in `accepted_parts`.
    """
    system: list[str] = []
    context: list[str] = []
    is_after_start = False
    for message in messages:
        if message["role"] == "system":
            belongs_to_turn = is_after_start or message.get("volatile")
            (context if belongs_to_turn else system).append(extract_text(message))
            continue
        if system:
            yield {"role": "system", "content": "\n\n".join(system)}
            system = []
        is_after_start = True
        content = _replace_media(message["content"], accepted_parts)
        if context and message["role"] == "user":
            content = prepend_context("\n\n".join(context), content)
            context = []
        yield message if content is message["content"] else message | {"content": content}
    if system:
        yield {"role": "system", "content": "\n\n".join(system)}


def prepend_context(context: str, content: Any) -> Any:
    """Return a user message's content with a context block before it."""
    quoted = context.replace("</context>", "< /context>")
    block = f"<context>\n{quoted}\n</context>\n\n"
    return block + content if isinstance(content, str) else [{"type": "text", "text": block}, *content]


def prepend_time(content: Any, at: datetime, zone: tzinfo | None, name: str | None = None) -> Any:
    """Return a user message's content with the time and the user's name before it.

    The zone None is that of the machine. Time and name are fixed parts of the message, so that later prompts
    only grow and stay cached.
    """
    prefix = _format_time(int(at.timestamp()) // 60, zone)
    if shown := _not_in_name.sub(" ", name or "").strip()[:_MAX_NAME_CHARS]:
        prefix = f"{prefix.removesuffix('] ')}, {shown}] "
    if isinstance(content, str):
        return prefix + content
    parts = [dict(part) for part in content]
    first_text = next((part for part in parts if part["type"] == "text"), None)
    if first_text is None:
        return [{"type": "text", "text": prefix}, *parts]
    first_text["text"] = prefix + first_text["text"]
    return parts


def split_time(text: str) -> tuple[str | None, str]:
    """Return the time of a user message as text, and the message without context block and time.

    The time is None if the text has no such prefix.
    """
    found = _context_and_time.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)


@lru_cache(maxsize=1024)
def _format_time(minute: int, zone: tzinfo | None) -> str:
    return f"[{datetime.fromtimestamp(minute * 60, UTC).astimezone(zone):%a %Y-%m-%d %H:%M}] "


def _replace_media(content: Any, accepted_parts: frozenset[str]) -> Any:
    accepted = accepted_parts | {"text"}
    if isinstance(content, str) or all(part["type"] in accepted for part in content):
        return content
    return [part if part["type"] in accepted else _note_omission(part["type"]) for part in content]


def _note_omission(kind: str) -> dict[str, Any]:
    medium = "an image" if kind == "image_url" else "a recording"
    return {"type": "text", "text": f"({medium} that this model cannot take was left out)"}
