"""What a tool has come to, as MCP's clients take it: JSON for programs, text and pictures for models."""

import base64
import json
from typing import Any

import mcp.types as t

from sash.app.schemas import ContinuationShown
from sash.engine.redaction import redact
from sash.errors import DETAILS, SashError
from sash.ports.store import Artifact
from sash.server.mcp.shapes import Awaited, awaited
from sash.values.codec import adapter
from sash.values.continuations import ArtifactRef

FAILED = frozenset({"failed", "expired"})


def of_value(value: Any, *more: t.ContentBlock, is_error: bool = False) -> t.CallToolResult:
    """Return a result of one of the common shapes, or of a tool; what is no object is for models only."""
    plain = adapter(type(value)).dump_python(value, mode="json")
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    structured = plain if isinstance(plain, dict) else None
    content = [t.TextContent(text=text), *more]
    return t.CallToolResult(content=content, structured_content=structured, is_error=is_error)


def of_turn(turn: ContinuationShown) -> t.CallToolResult:
    """Return where a turn stands, with links to what it has kept."""
    shown: Awaited = awaited(turn)
    return of_value(shown, *map(_link, turn.artifacts), is_error=turn.status in FAILED)


def of_error(error: SashError) -> t.CallToolResult:
    """Return an error for the model to mend: what was wrong, and what to do."""
    told = {"code": error.code, "message": redact(error.message), **error.details}
    return t.CallToolResult(
        content=[t.TextContent(text=told["message"])], structured_content=told, is_error=True
    )


def or_error(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the schema of a result that may be an error instead: some clients check these, too."""
    if schema is None or schema.get("type") != "object":
        return None
    text: dict[str, Any] = {"type": "string"}
    error = {"code": text, "message": text, **{name: {} for name in DETAILS}}
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": {**error, **schema.get("properties", {})},
        "anyOf": [{"required": schema.get("required", [])}, {"required": ["code", "message"]}],
    }


def picture(artifact: Artifact) -> t.ImageContent:
    """Return a picture to be seen."""
    return t.ImageContent(data=base64.b64encode(artifact.data).decode(), mime_type=artifact.ref.type)


def artifact_uri(artifact_id: str) -> str:
    return f"sash://artifacts/{artifact_id}"


def _link(ref: ArtifactRef) -> t.ResourceLink:
    return t.ResourceLink(
        uri=artifact_uri(ref.id), name=ref.name or ref.id, mime_type=ref.type, size=ref.size
    )
