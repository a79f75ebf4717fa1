"""The prompts for MCP clients, and the completion of their arguments."""

from dataclasses import dataclass

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import SashError
from sash.home.incidents import TIMEFRAMES

MAX_COMPLETIONS = 20
MAX_SESSIONS = 100
SESSION_TEMPLATE = "sash://sessions/{session_id}"


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt: how it is listed, its text with placeholders, and the defaults of its arguments."""

    listed: t.Prompt
    text: str
    defaults: dict[str, str]


def _make_prompt(
    name: str, title: str, description: str, text: str, *arguments: t.PromptArgument, **defaults: str
) -> _Prompt:
    listed = t.Prompt(name=name, title=title, description=description, arguments=list(arguments))
    return _Prompt(listed, text, defaults)


_PROMPTS = {
    prompt.listed.name: prompt
    for prompt in (
        _make_prompt(
            "diagnose",
            "What is wrong with it?",
            "Find out why a device in the house does not work as it should.",
            "Find out what is wrong with {entity} in my house. Call diagnose_entity with it; if it is not an "
            "entity id, find the id with search_index. Call get_history if the causes remain unclear. Tell "
            "me the most likely cause with its evidence, what else is affected, and what I should do first.",
            t.PromptArgument(name="entity", description="The name or id of the entity.", required=True),
        ),
        _make_prompt(
            "house_report",
            "How is the house?",
            "Summarize the state of the house: recent errors, what is open or on, what needs attention.",
            "Write a short report on my house. Call analyze_errors for the last {timeframe}, search_index "
            "for unavailable entities, and get_logbook for unusual events. Start with what needs "
            "attention, then say what can wait, and leave out everything that is normal.",
            t.PromptArgument(name="timeframe", description="1h, 24h or 7d; the default is 24h."),
            timeframe="24h",
        ),
    )
}
PROMPTS = tuple(prompt.listed for prompt in _PROMPTS.values())


def fill_prompt(name: str, given: dict[str, str]) -> t.GetPromptResult:
    """Return the text of a prompt with its arguments. Raise `MCPError` if one is missing or unknown."""
    prompt = _PROMPTS.get(name)
    if prompt is None:
        raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {name}; there are: {', '.join(_PROMPTS)}")
    values, arguments = prompt.defaults | given, prompt.listed.arguments or []
    if missing := [argument.name for argument in arguments if argument.name not in values]:
        raise MCPError(t.INVALID_PARAMS, f"Missing arguments: {', '.join(missing)}")
    text = prompt.text
    for argument in arguments:
        text = text.replace(f"{{{argument.name}}}", values[argument.name])
    message = t.PromptMessage(role="user", content=t.TextContent(text=text))
    return t.GetPromptResult(description=prompt.listed.description, messages=[message])


async def complete_argument(
    service: AgentService, caller: Caller, params: t.CompleteRequestParams
) -> t.CompleteResult:
    """Return the possible values of an argument; empty if they are unknown."""
    typed = params.argument.value
    match params.ref, params.argument.name:
        case t.PromptReference(name="diagnose"), "entity":
            found = await _find_entities(service, caller, typed)
        case t.PromptReference(name="house_report"), "timeframe":
            found = [name for name in TIMEFRAMES if name.startswith(typed)]
        case t.ResourceTemplateReference(uri=uri), "session_id" if uri == SESSION_TEMPLATE:
            found = await _find_sessions(service, caller, typed)
        case _:
            found = []
    return t.CompleteResult(completion=t.Completion(values=found, total=len(found), has_more=False))


async def _find_entities(service: AgentService, caller: Caller, typed: str) -> list[str]:
    """Return the ids of entities that match the typed text; empty if the home is unavailable."""
    if not typed.strip():
        return []
    try:
        found = await service.call_tool(caller, "search_index", {"query": typed, "limit": MAX_COMPLETIONS})
    except SashError:
        return []
    return [entity["entity_id"] for entity in found["entities"]]


async def _find_sessions(service: AgentService, caller: Caller, typed: str) -> list[str]:
    try:
        page = await service.list_sessions(caller, limit=MAX_SESSIONS)
    except SashError:
        return []
    return [session.id for session in page.items if session.id.startswith(typed)][:MAX_COMPLETIONS]
