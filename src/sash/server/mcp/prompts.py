"""Prompts for MCP's clients, and what completes their arguments."""

from dataclasses import dataclass

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import SashError
from sash.home.incidents import TIMEFRAMES

MAX_VALUES = 20
MAX_SESSIONS = 100
SESSION_TEMPLATE = "sash://sessions/{session_id}"


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt, and its text with places for its arguments and what these are if they are left out."""

    listed: t.Prompt
    text: str
    usual: dict[str, str]


def _prompt(
    name: str, title: str, description: str, text: str, *arguments: t.PromptArgument, **usual: str
) -> _Prompt:
    listed = t.Prompt(name=name, title=title, description=description, arguments=list(arguments))
    return _Prompt(listed, text, usual)


_PROMPTS = {
    prompt.listed.name: prompt
    for prompt in (
        _prompt(
            "diagnose",
            "What is wrong with it?",
            "Find out why something in the house does not work as it should.",
            "Find out what is wrong with {entity} in my house. Call diagnose_entity with it (search_index "
            "finds its id if that is not one), and look at get_history where the causes leave a doubt. Tell "
            "me the likeliest cause with its evidence, what else is affected, and what I should do first.",
            t.PromptArgument(name="entity", description="Its name or entity id.", required=True),
        ),
        _prompt(
            "house_report",
            "How is the house?",
            "Sum up how the house is: what went wrong lately, what is open or on, what needs attention.",
            "Write a short report on my house. Call analyze_errors for the last {timeframe}, search_index "
            "for what is unavailable, and get_logbook for what stands out. Begin with what needs attention, "
            "say what can wait, and leave out what is as it should be.",
            t.PromptArgument(name="timeframe", description="1h, 24h or 7d; 24h if it is left out."),
            timeframe="24h",
        ),
    )
}
PROMPTS = tuple(prompt.listed for prompt in _PROMPTS.values())


def fill(name: str, given: dict[str, str]) -> t.GetPromptResult:
    """Return a prompt with its arguments in it."""
    prompt = _PROMPTS.get(name)
    if prompt is None:
        raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {name}; there are: {', '.join(_PROMPTS)}")
    values, arguments = prompt.usual | given, prompt.listed.arguments or []
    if missing := [one.name for one in arguments if one.name not in values]:
        raise MCPError(t.INVALID_PARAMS, f"Missing arguments: {', '.join(missing)}")
    text = prompt.text
    for one in arguments:
        text = text.replace(f"{{{one.name}}}", values[one.name])
    message = t.PromptMessage(role="user", content=t.TextContent(text=text))
    return t.GetPromptResult(description=prompt.listed.description, messages=[message])


async def complete(desk: AgentService, caller: Caller, params: t.CompleteRequestParams) -> t.CompleteResult:
    """Return what an argument may be; nothing, if nobody can say."""
    begun = params.argument.value
    match params.ref, params.argument.name:
        case t.PromptReference(name="diagnose"), "entity":
            found = await _entities(desk, caller, begun)
        case t.PromptReference(name="house_report"), "timeframe":
            found = [name for name in TIMEFRAMES if name.startswith(begun)]
        case t.ResourceTemplateReference(uri=uri), "session_id" if uri == SESSION_TEMPLATE:
            found = await _sessions(desk, caller, begun)
        case _:
            found = []
    return t.CompleteResult(completion=t.Completion(values=found, total=len(found), has_more=False))


async def _entities(desk: AgentService, caller: Caller, begun: str) -> list[str]:
    """Return the ids of entities that are called so; a house that is not there has none."""
    if not begun.strip():
        return []
    try:
        found = await desk.call_tool(caller, "search_index", {"query": begun, "limit": MAX_VALUES})
    except SashError:
        return []
    return [entity["entity_id"] for entity in found["entities"]]


async def _sessions(desk: AgentService, caller: Caller, begun: str) -> list[str]:
    try:
        page = await desk.list_sessions(caller, limit=MAX_SESSIONS)
    except SashError:
        return []
    return [session.id for session in page.sessions if session.id.startswith(begun)][:MAX_VALUES]
