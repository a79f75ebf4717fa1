"""The decorator that makes an MCP tool of a handler, and the descriptions of the tools' arguments."""

from collections.abc import Callable
from functools import partial
from typing import get_type_hints

from sash.server.mcp.json_schemas import make_input_schema, make_output_schema
from sash.server.mcp.tool import Handler, Tool
from sash.server.mcp.tool_outputs import TurnSummary
from sash.values.validated import parse

ARGUMENT_DESCRIPTIONS = {
    "session_id": "The session_id that ha_agent_start_session returned.",
    "continuation_id": "The continuation_id of the turn, as ha_agent_send_message returned it.",
    "message": "The user's message or question, in any language.",
    "planner_hints": "Hints for the agent, such as entities that matter.",
    "allow_tools": "Whether the agent may use its tools.",
    "time_budget_ms": "The maximum duration of the turn.",
    "idempotency_key": "If a message is sent again with the same key, it is answered only once.",
    "stream": "Send the text of the answer as progress messages while it is written, if the call waits for "
    "it. The events of a turn are always available at /events/{session_id}.",
    "busy": "If another turn is running: reject this one, wait for the other, or cancel the other.",
    "timeout_ms": "The maximum time to wait. After it, the result is the state so far; nothing is lost.",
    "call_id": "The call that needs an approval, from waiting_calls.",
    "approved": "The user's answer. Never approve for the user.",
    "reason": "The reason, for the record.",
    "policy": "What the agent may do in the house. Without it, the settings of the server decide.",
    "keep": "Keep the session, so that the conversation can continue. Otherwise it is deleted later.",
    "at": "The continuation_id of the last turn of the copy. Without it the whole session is copied.",
    "tags": "Marks for the message, such as important, pinned, ephemeral or context:lights.",
    "tag_filter": "Show only messages that have one of these tags.",
    "message_id": "The id of a message, from ha_agent_list_messages.",
    "name": "A name to find the session by.",
    "instructions": "Who the agent is and how it speaks, instead of the server's own prompt.",
    "text": "The fact, or the text to pin, in one sentence.",
    "fact_id": "The id of a fact, from ha_agent_list_facts.",
    "waiting_id": "The id of something that waits, from ha_agent_list_waiting.",
    "pin_id": "The id of a pin, from ha_agent_list_pins.",
    "entity_id": "An entity of the house, whose present state the agent is told in every turn.",
    "area": "The area of the house where the user is.",
    "language": "The language that the user speaks, such as de.",
    "caller": "The user who speaks, and the device that the user speaks to.",
}


def agent_tool(name: str, title: str, description: str, **hints: bool) -> Callable[[Handler], Tool]:
    """Return a decorator that makes a tool of a handler. `hints` are flags of `Tool`.

    The schemas come from the annotations of the handler.
    """

    def make_tool(handler: Handler) -> Tool:
        types = get_type_hints(handler)
        result = TurnSummary if hints.get("waits_for_turn") else types["return"]
        types.pop("return")
        types.pop("context")
        [arguments] = types.values()
        return Tool(
            name,
            title,
            description,
            handler,
            make_input_schema(arguments, ARGUMENT_DESCRIPTIONS),
            make_output_schema(result),
            partial(parse, arguments),
            **hints,
        )

    return make_tool
