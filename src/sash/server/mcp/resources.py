"""What MCP's clients can read: a guide, and the caller's sessions, turns and artifacts."""

import base64
import json
import re
from typing import Any
from urllib.parse import unquote

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import ArtifactNotFound, ContinuationNotFound, SessionNotFound
from sash.ports.store import Artifact
from sash.server.mcp.errors import protocol_error
from sash.server.mcp.shapes import summaries
from sash.values.codec import adapter

JSON = "application/json"
MARKDOWN = "text/markdown"
NEWEST_TURNS = 20
MAX_SESSIONS = 50
GUIDE_TTL_MS = 3_600_000

GUIDE = """\
# Sash: a home agent that remembers

* One question: `ha_agent_ask`. A conversation: `ha_agent_start_session`, then `ha_agent_send_message` and
  `ha_agent_await_continuation` for each message. A session lasts for weeks and survives restarts.
* A message is answered in the background. If waiting takes too long, wait again; nothing is lost.
* `interrupted`: the server was restarted meanwhile; `ha_agent_resume` goes on, and repeats nothing.
* `awaiting_approval`: ask the user about each of `waiting_calls`, then `ha_agent_approve`.
* The house itself, without the agent: `search_index`, `get_states`, `get_history`, `get_logbook`,
  `diagnose_entity`, `analyze_errors`. They only read.
* The agent changes nothing in the house unless the session's `policy` allows it: `allow_actuation`, and what
  it may use in `allowlisted_services`. Each of `response.actions` says whether it was `verified`.
* An error has a `code` that stays the same, and a `message` that says what to do.
"""

RESOURCES = (
    t.Resource(
        uri="sash://guide",
        name="guide",
        title="How to use Sash",
        description="Read this first.",
        mime_type=MARKDOWN,
    ),
    t.Resource(
        uri="sash://sessions",
        name="sessions",
        title="Your sessions",
        description=f"Your newest {MAX_SESSIONS} sessions.",
        mime_type=JSON,
    ),
)
TEMPLATES = (
    t.ResourceTemplate(
        uri_template="sash://sessions/{session_id}",
        name="session",
        title="A session",
        description="A session, with its newest turns.",
        mime_type=JSON,
    ),
    t.ResourceTemplate(
        uri_template="sash://continuations/{continuation_id}",
        name="continuation",
        title="A turn",
        description="A turn with all its steps.",
        mime_type=JSON,
    ),
    t.ResourceTemplate(
        uri_template="sash://artifacts/{artifact_id}",
        name="artifact",
        title="An artifact",
        description="A large result or a picture.",
    ),
)

_PLACE = re.compile(r"sash://(sessions|continuations|artifacts)/([^/]+)")
_MISSING = (SessionNotFound, ContinuationNotFound, ArtifactNotFound)


async def read(desk: AgentService, caller: Caller, uri: str) -> t.ReadResourceResult:
    """Return what is at an address, as far as the caller is concerned."""
    if uri == "sash://guide":
        return _text(uri, GUIDE, MARKDOWN, GUIDE_TTL_MS)
    try:
        with protocol_error(uri=uri):
            return await _read(desk, caller, uri)
    except MCPError as error:
        if isinstance(error.__cause__, _MISSING):
            raise MCPError(t.INVALID_PARAMS, "Resource not found", {"uri": uri}) from error
        raise


async def _read(desk: AgentService, caller: Caller, uri: str) -> t.ReadResourceResult:
    if uri == "sash://sessions":
        return _json(uri, summaries(await desk.list_sessions(caller, limit=MAX_SESSIONS)))
    place = _PLACE.fullmatch(uri)
    if place is None:
        raise ArtifactNotFound(f"there is nothing at {uri!r:.200}")
    kind, key = place[1], unquote(place[2])
    if kind == "artifacts":
        return _artifact(uri, await desk.artifact(caller, key))
    if kind == "continuations":
        return _json(uri, await desk.await_continuation(caller, key))
    return _json(uri, await _session(desk, caller, key))


async def _session(desk: AgentService, caller: Caller, session_id: str) -> dict[str, Any]:
    """Return a session with the end of its conversation."""
    shown = await desk.get_session(caller, session_id)
    turns = await desk.runtime.list_turns(session_id, owner=caller.owner, limit=NEWEST_TURNS)
    whole: dict[str, Any] = adapter(type(shown)).dump_python(shown, mode="json")
    whole["turns"] = [
        {
            "continuation_id": turn.id,
            "at": turn.created_at.isoformat(),
            "user": turn.request.message,
            "agent": None if turn.response is None else turn.response.final_message,
        }
        for turn in turns
    ]
    return whole


def _artifact(uri: str, artifact: Artifact) -> t.ReadResourceResult:
    kind = artifact.ref.type
    if kind.startswith(("text/", JSON)):
        return _text(uri, artifact.data.decode(errors="replace"), kind)
    blob = base64.b64encode(artifact.data).decode()
    return _result(t.BlobResourceContents(uri=uri, mime_type=kind, blob=blob))


def _json(uri: str, value: Any) -> t.ReadResourceResult:
    plain = value if isinstance(value, dict) else adapter(type(value)).dump_python(value, mode="json")
    return _text(uri, json.dumps(plain, ensure_ascii=False), JSON)


def _text(uri: str, text: str, kind: str, ttl_ms: int = 0) -> t.ReadResourceResult:
    return _result(t.TextResourceContents(uri=uri, mime_type=kind, text=text), ttl_ms)


def _result(
    contents: t.TextResourceContents | t.BlobResourceContents, ttl_ms: int = 0
) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms, cache_scope="private")
