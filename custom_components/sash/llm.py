"""Tools of Sash for other agents and for Home Assistant's MCP server: history, diagnosis and memory.

They come with the Assist API. Our own agents have these tools anyway, so they do not get them a second time.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, override

import probatio
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.llm import LLMTools
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.llm import (
    LLM_API_ASSIST,
    LLMContext,
    Tool,
    ToolAnnotations,
    ToolInput,
    ToolResult,
)
from homeassistant.util import dt as dt_util

from sash.engine.runtime import Runtime
from sash.errors import HomeUnavailable, SashError
from sash.ports.store import StoredMessage
from sash.ports.tools import ToolSpec
from sash.values.sessions import Fact

from .const import DOMAIN
from .entry_data import SashConfigEntry
from .session_scope import find_owner
from .speaker import find_person

MAX_FOUND = 10
# Seconds to wait for the home after Home Assistant has started.
HOME_WAIT_S = 10.0
# An argument that stores an image in a session. A call from outside has no session.
NEEDS_SESSION = "plot"

_READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_ADDS = ToolAnnotations(destructive=False, idempotent=True, open_world=False)
_DROPS = ToolAnnotations(idempotent=True, open_world=False)

type Function = Callable[[Runtime, str, dict[str, Any]], Coroutine[Any, Any, Any]]


@callback
def async_get_tools(hass: HomeAssistant, llm_context: LLMContext, api_id: str) -> LLMTools | None:
    """Return our tools for an agent that is not ours. They know what is exposed to conversation agents."""
    is_ours = llm_context.platform == DOMAIN
    if api_id != LLM_API_ASSIST or is_ours or llm_context.assistant != CONVERSATION_DOMAIN:
        return None
    # Several providers have the same home, and the oldest one has the longest memory.
    entries: list[SashConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    if not entries:
        return None
    runtime = entries[0].runtime_data.runtime
    return LLMTools(tools=[*_make_home_tools(runtime), *_make_memory_tools(runtime)])


class SashTool(Tool):
    """A tool of Sash. It acts for the user of a request, or for the house."""

    integration = DOMAIN

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        annotations: ToolAnnotations,
        function: Function,
    ) -> None:
        self.name = f"{DOMAIN}__{name}"
        self.title = name.replace("_", " ").capitalize()
        self.description = description
        self.parameters = probatio.from_openapi(input_schema)
        self.annotations = annotations
        self._runtime = runtime
        self._function = function

    @override
    async def async_call(
        self, hass: HomeAssistant, tool_input: ToolInput, llm_context: LLMContext
    ) -> ToolResult:
        """Call the tool. A failure is a result, so that the agent can read the reason."""
        person = await find_person(hass, llm_context.context.user_id if llm_context.context else None)
        owner = find_owner(None if person is None else person.id)
        try:
            arguments = self.parameters(_make_whole(tool_input.tool_args))
            result = await self._function(self._runtime, owner, arguments)
        except SashError as error:
            return ToolResult({"code": error.code, "error": error.message}, error=True)
        except probatio.Invalid as error:
            return ToolResult({"error": f"wrong arguments for {self.name}: {error}"}, error=True)
        return ToolResult(result if isinstance(result, dict) else {"result": result})


def _make_home_tools(runtime: Runtime) -> Iterator[Tool]:
    """Yield the tools that read the home."""
    for spec in runtime.direct_tools:
        yield SashTool(runtime, spec.name, spec.description, _get_schema(spec), _READS, _call_directly(spec))


def _call_directly(spec: ToolSpec) -> Function:
    async def call(runtime: Runtime, owner: str, arguments: dict[str, Any]) -> Any:
        try:
            return await runtime.call_tool(spec.name, arguments, owner=owner)
        except HomeUnavailable:
            await runtime.home_ready(timeout_s=HOME_WAIT_S)
            return await runtime.call_tool(spec.name, arguments, owner=owner)

    return call


def _get_schema(spec: ToolSpec) -> dict[str, Any]:
    properties = spec.input_schema.get("properties", {})
    return spec.input_schema | {"properties": {k: v for k, v in properties.items() if k != NEEDS_SESSION}}


def _make_memory_tools(runtime: Runtime) -> Iterator[Tool]:
    """Yield the tools that search conversations, and that read and change facts."""
    yield SashTool(
        runtime,
        "recall",
        "Find what the user and the home's assistant Sash said to each other, word for word.",
        _schema(query="The words to look for, or a question."),
        _READS,
        _recall,
    )
    yield SashTool(
        runtime,
        "list_facts",
        "List the facts that the home's assistant Sash remembers about the user and the household.",
        _schema(),
        _READS,
        _list_facts,
    )
    yield SashTool(
        runtime,
        "remember",
        "Note a fact that the user wants the home's assistant Sash to keep in mind from now on.",
        _schema(text="The fact, in one sentence."),
        _ADDS,
        _remember,
    )
    yield SashTool(
        runtime,
        "forget",
        "Drop facts that the home's assistant Sash has noted.",
        _schema(about="The id of a fact, or words that the facts to drop all contain."),
        _DROPS,
        _forget,
    )


async def _recall(runtime: Runtime, owner: str, arguments: dict[str, Any]) -> dict[str, Any]:
    found = await runtime.search(arguments["query"], owner=owner, limit=MAX_FOUND)
    remembered = {
        session_id
        for session_id in {message.session_id for message in found}
        if not (await runtime.get_session(session_id, owner=owner)).is_one_question
    }
    return {"messages": [_describe_message(each) for each in found if each.session_id in remembered]}


async def _list_facts(runtime: Runtime, owner: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"facts": [_describe_fact(fact) for fact in (await runtime.known_notes(owner=owner)).facts]}


async def _remember(runtime: Runtime, owner: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _describe_fact(await runtime.remember(arguments["text"], owner=owner))


async def _forget(runtime: Runtime, owner: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"forgotten": [fact.text for fact in await runtime.forget(arguments["about"], owner=owner)]}


def _describe_message(found: StoredMessage) -> dict[str, str]:
    message = found.message
    at = dt_util.as_local(message.timestamp).isoformat(timespec="minutes")
    return {"at": at, "from": message.role, "text": message.text}


def _describe_fact(fact: Fact) -> dict[str, str]:
    return {"id": fact.id, "fact": fact.text}


def _schema(**fields: str) -> dict[str, Any]:
    """Return the schema of an object with these texts, all required. The values are descriptions."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


def _make_whole(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with 24 for 24.0: Home Assistant tells models that a whole number is a number."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in arguments.items()
    }
