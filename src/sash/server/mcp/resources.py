"""The resources that MCP clients can read: a guide, and the caller's sessions, turns and artifacts."""

import base64
import json
import re
from typing import Any
from urllib.parse import unquote

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.app.access import Caller
from sash.app.schemas import ContinuationShown, PromptList, SessionShown
from sash.app.service import AgentService
from sash.errors import ArtifactNotFound, ContinuationNotFound, SessionNotFound
from sash.ports.store import Artifact
from sash.server.mcp.rpc_errors import raise_as_rpc_error
from sash.server.mcp.tool_outputs import summarize_sessions
from sash.values.codec import adapter

JSON = "application/json"
MARKDOWN = "text/markdown"
MAX_TURNS = 20
MAX_SESSIONS = 50
GUIDE_TTL_MS = 3_600_000

GUIDE = """\
# Sash: a home agent that remembers

* One question: `ha_agent_ask`. A conversation: `ha_agent_start_session`, then `ha_agent_send_message` and
  `ha_agent_await_continuation` for each message. A session lasts for weeks and survives restarts.
* A message is answered in the background. If a wait times out, wait again; nothing is lost.
* `interrupted`: the server was restarted. `ha_agent_resume` continues the turn and repeats nothing.
* `awaiting_approval`: ask the user about each of `waiting_calls`, then call `ha_agent_approve`.
* `failed` or `cancelled`: `ha_agent_retry` runs the turn again. `ha_agent_cancel` stops a running turn.
* `response.citations` says what an answer is based on, `response.follow_ups` what the user may ask next.
* Find a conversation with `ha_agent_list_sessions`. `ha_agent_get_session` shows its settings, and
  `ha_agent_update_session` changes them. `ha_agent_list_messages` reads what was said, and
  `ha_agent_tag_message` decides how long the agent sees a message.
* `ha_agent_fork_session` copies a conversation. `ha_agent_reset_session` starts it over,
  `ha_agent_end_session` ends it, and `ha_agent_delete_session` deletes it with its transcript.
* The agent can do something later, at a time or when something happens: ask it in a message.
  `ha_agent_list_waiting` shows what waits, `ha_agent_cancel_waiting` cancels it.
* Facts are known in all sessions of the user: `ha_agent_remember`, `ha_agent_list_facts`, `ha_agent_forget`.
  So are pins, texts or entities that the agent always sees: `ha_agent_pin`, `ha_agent_list_pins`,
  `ha_agent_unpin`. New sessions start with the user's preferences: `ha_agent_set_preferences`,
  `ha_agent_get_preferences`.
* To read the house without the agent: `search_index`, `get_states`, `get_history`, `get_logbook`,
  `analyze_history`, `list_services`, `query_service`, `diagnose_entity`, `analyze_errors`. They change
  nothing.
* The agent changes nothing in the house unless the session's `policy` allows it: `allow_actuation`, and the
  services in `allowlisted_services`. A policy beyond the operator's settings is refused
  (`policy_exceeds_operator`). Each of `response.actions` says whether it was `verified`.
* An error has a stable `code`, and a `message` with the remedy.
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
        uri_template="sash://continuations/{continuation_id}/prompts",
        name="prompts",
        title="The prompts of a turn",
        description="What each model call of a turn sent, word for word.",
        mime_type=JSON,
    ),
    t.ResourceTemplate(
        uri_template="sash://artifacts/{artifact_id}",
        name="artifact",
        title="An artifact",
        description="A large result or a picture.",
    ),
)

_URI = re.compile(r"sash://(sessions|continuations|artifacts)/([^/]+)")
_PROMPTS_URI = re.compile(r"sash://continuations/([^/]+)/prompts")
_MISSING = (SessionNotFound, ContinuationNotFound, ArtifactNotFound)


async def read_resource(service: AgentService, caller: Caller, uri: str) -> t.ReadResourceResult:
    """Return a resource of the caller. Raise `MCPError` if it is unknown or belongs to another owner."""
    if uri == "sash://guide":
        return _make_text(uri, GUIDE, MARKDOWN, GUIDE_TTL_MS)
    with raise_as_rpc_error(uri=uri):
        try:
            return await _read_owned(service, caller, uri)
        except _MISSING as error:
            raise MCPError(t.INVALID_PARAMS, "Resource not found", {"uri": uri}) from error


async def _read_owned(service: AgentService, caller: Caller, uri: str) -> t.ReadResourceResult:
    if uri == "sash://sessions":
        return _make_json(uri, summarize_sessions(await service.list_sessions(caller, limit=MAX_SESSIONS)))
    if prompts := _PROMPTS_URI.fullmatch(uri):
        return _make_json(uri, PromptList(tuple(await service.sent_prompts(caller, unquote(prompts[1])))))
    match = _URI.fullmatch(uri)
    if match is None:
        raise ArtifactNotFound(f"there is no resource {uri!r:.200}")
    kind, key = match[1], unquote(match[2])
    if kind == "artifacts":
        return _make_artifact(uri, await service.artifact(caller, key))
    if kind == "continuations":
        return _make_json(uri, ContinuationShown.of(await service.await_continuation(caller, key)))
    return _make_json(uri, await _load_session(service, caller, key))


async def _load_session(service: AgentService, caller: Caller, session_id: str) -> dict[str, Any]:
    """Return a session with its newest `MAX_TURNS` turns, as JSON values."""
    session = await service.get_session(caller, session_id)
    open_turns = await service.open_continuations(caller, session_id)
    shown = SessionShown.of(session, open_turns, await service.window_stats(caller, session))
    turns = await service.list_turns(caller, session_id, limit=MAX_TURNS)
    values: dict[str, Any] = adapter(SessionShown).dump_python(shown, mode="json")
    values["turns"] = [
        {
            "continuation_id": turn.id,
            "at": turn.created_at.isoformat(),
            "user": turn.request.message,
            "agent": None if turn.response is None else turn.response.final_message,
        }
        for turn in turns
    ]
    return values


def _make_artifact(uri: str, artifact: Artifact) -> t.ReadResourceResult:
    kind = artifact.ref.type
    if kind.startswith(("text/", JSON)):
        return _make_text(uri, artifact.data.decode(errors="replace"), kind)
    blob = base64.b64encode(artifact.data).decode()
    return _make_result(t.BlobResourceContents(uri=uri, mime_type=kind, blob=blob))


def _make_json(uri: str, value: Any) -> t.ReadResourceResult:
    plain = value if isinstance(value, dict) else adapter(type(value)).dump_python(value, mode="json")
    return _make_text(uri, json.dumps(plain, ensure_ascii=False), JSON)


def _make_text(uri: str, text: str, kind: str, ttl_ms: int = 0) -> t.ReadResourceResult:
    return _make_result(t.TextResourceContents(uri=uri, mime_type=kind, text=text), ttl_ms)


def _make_result(
    contents: t.TextResourceContents | t.BlobResourceContents, ttl_ms: int = 0
) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms, cache_scope="private")
