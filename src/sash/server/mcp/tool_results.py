"""Tool results as MCP defines them: JSON for programs, text and images for models."""

import base64
import json
from typing import Any

import mcp.types as t

from sash.app.schemas import ContinuationShown
from sash.engine.redaction import redact
from sash.errors import SashError
from sash.ports.store import Artifact
from sash.server.mcp.tool_outputs import summarize_turn
from sash.values.codec import adapter
from sash.values.continuations import ArtifactRef

FAILED = frozenset({"failed", "expired"})


def make_result(value: Any, *content: t.ContentBlock, is_error: bool = False) -> t.CallToolResult:
    """Return the MCP result for a value. Only a JSON object is also structured content."""
    plain = adapter(type(value)).dump_python(value, mode="json")
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return t.CallToolResult(
        content=[t.TextContent(text=text), *content],
        structured_content=plain if isinstance(plain, dict) else None,
        is_error=is_error,
    )


def make_turn_result(turn: ContinuationShown) -> t.CallToolResult:
    """Return the state of a turn as an MCP result, with links to its artifacts."""
    links = map(_make_link, turn.artifacts)
    return make_result(summarize_turn(turn), *links, is_error=turn.status in FAILED)


def make_error_result(error: SashError) -> t.CallToolResult:
    """Return an error as an MCP result, so that the model reads the cause and the remedy."""
    message = redact(error.message)
    return t.CallToolResult(
        content=[t.TextContent(text=message)],
        structured_content={"code": error.code, "message": message, **error.details},
        is_error=True,
    )


def allow_errors(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an output schema that also allows an error: some clients validate error results, too.

    None if the schema is not that of an object.
    """
    if schema is None or schema.get("type") != "object":
        return None
    text: dict[str, Any] = {"type": "string"}
    return {
        # An error has fields of its own, such as `scope`.
        **{key: value for key, value in schema.items() if key not in ("required", "additionalProperties")},
        "properties": {"code": text, "message": text, **schema.get("properties", {})},
        "anyOf": [{"required": schema.get("required", [])}, {"required": ["code", "message"]}],
    }


def make_image(artifact: Artifact) -> t.ImageContent:
    """Return an artifact as image content of an MCP result."""
    return t.ImageContent(data=base64.b64encode(artifact.data).decode(), mime_type=artifact.ref.type)


def _make_link(ref: ArtifactRef) -> t.ResourceLink:
    return t.ResourceLink(
        uri=f"sash://artifacts/{ref.id}", name=ref.name or ref.id, mime_type=ref.type, size=ref.size
    )
