"""A prompt as every server takes it."""

from collections.abc import Iterator, Sequence
from typing import Any

from sash.ports.model import text_of

ALL_PARTS = frozenset({"image_url", "input_audio"})


def plain(messages: Sequence[dict[str, Any]], takes: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Write messages as every server takes them: one system message at the head, and none elsewhere.

    Many chat templates refuse a system message behind the first. What Sash tells a model later, the time and
    the like, therefore comes with the user's message; so does what is `volatile` in a first turn.
    """
    head: list[str] = []
    context: list[str] = []
    begun = False
    for message in messages:
        if message["role"] == "system":
            (context if begun or message.get("volatile") else head).append(text_of(message))
            continue
        if head:
            yield {"role": "system", "content": "\n\n".join(head)}
            head = []
        begun = True
        content = _content(message["content"], takes)
        if context and message["role"] == "user":
            content = with_context("\n\n".join(context), content)
            context = []
        yield message if content is message["content"] else message | {"content": content}
    if head:
        yield {"role": "system", "content": "\n\n".join(head)}


def with_context(context: str, content: Any) -> Any:
    """Return a message with something that Sash tells the model before it."""
    quoted = context.replace("</context>", "< /context>")
    text = f"<context>\n{quoted}\n</context>\n\n"
    return text + content if isinstance(content, str) else [{"type": "text", "text": text}, *content]


def _content(content: Any, takes: frozenset[str]) -> Any:
    """Leave out the parts that a model does not take."""
    if isinstance(content, str) or all(part["type"] in takes | {"text"} for part in content):
        return content
    return [part if part["type"] in takes | {"text"} else _left_out(part["type"]) for part in content]


def _left_out(kind: str) -> dict[str, Any]:
    what = "an image" if kind == "image_url" else "a recording"
    return {"type": "text", "text": f"({what} that this model cannot take was left out)"}
