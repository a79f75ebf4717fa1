"""MCP's Streamable HTTP on one route: stateless, so that any process can answer any request."""

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Match, Route
from starlette.types import Scope

from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server.mcp.server import Mcp

PATH = "/mcp"


class McpRoute(Route):
    """The route of MCP; only for POST: a stream without a session would be silent for ever."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        endpoint = StreamableHTTPASGIApp(manager)
        super().__init__(PATH, endpoint=endpoint, methods=["POST"], include_in_schema=False)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Note in the scope which route it is, as those of FastAPI do: requests are counted by it."""
        match, found = super().matches(scope)
        return match, {**found, "route": self} if match is not Match.NONE else found


def make_manager(desk: AgentService, settings: Settings) -> StreamableHTTPSessionManager:
    """Return what runs MCP's requests, for as long as the app lives. The gate has looked at them by then."""
    return StreamableHTTPSessionManager(
        app=Mcp(desk).server(), stateless=True, max_request_body_size=settings.max_body_bytes
    )
