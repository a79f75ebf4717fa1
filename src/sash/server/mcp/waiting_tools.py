"""The MCP tools for what the agent does later."""

from sash.app.schemas import WaitingList, WaitingShown
from sash.server.mcp.agent_tool import agent_tool
from sash.server.mcp.tool import CallContext
from sash.values.sessions import Label
from sash.values.validated import validated


@validated(kw_only=True)
class WaitingQuery:
    session_id: Label | None = None


@validated(kw_only=True)
class WaitingId:
    waiting_id: Label


@agent_tool(
    "ha_agent_list_waiting",
    "List what waits",
    "List what the agent does later, such as a light to turn off at seven, or a reminder. With a session_id, "
    "only what it does in that session. To make it do something later, ask it in a message.",
    is_read_only=True,
    is_idempotent=True,
)
async def list_waiting(context: CallContext, query: WaitingQuery) -> WaitingList:
    return await context.service.list_waiting(context.caller, query.session_id)


@agent_tool(
    "ha_agent_cancel_waiting",
    "Cancel what waits",
    "Cancel something that the agent would do later. It undoes nothing that was done already.",
    is_destructive=True,
)
async def cancel_waiting(context: CallContext, waiting: WaitingId) -> WaitingShown:
    return await context.service.cancel_waiting(context.caller, waiting.waiting_id)


WAITING_TOOLS = (list_waiting, cancel_waiting)
