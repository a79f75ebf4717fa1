"""Results of the tools that the offline model has called in a turn."""

import json
from typing import Any, NamedTuple


class ToolOutput(NamedTuple):
    """The result of one tool call: parsed JSON, or the text itself if it is not JSON."""

    tool: str
    value: Any


def read_outputs(messages: list[dict[str, Any]]) -> list[ToolOutput]:
    """Return the tool results among the messages, in order."""
    return [ToolOutput(m["name"], _parse(m["content"])) for m in messages if m["role"] == "tool"]


def get_entities(value: Any) -> list[dict[str, Any]]:
    """Return the entities in the result of a tool; empty if it is no object with entities."""
    entities = value.get("entities") if isinstance(value, dict) else None
    listed = entities if isinstance(entities, list) else ()
    return [e for e in listed if isinstance(e, dict) and "entity_id" in e]


def get_found_entities(outputs: list[ToolOutput]) -> list[dict[str, Any]]:
    """Return the entities that the first search found; empty without a search."""
    return next((get_entities(output.value) for output in outputs if output.tool == "search_index"), [])


def _parse(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content
