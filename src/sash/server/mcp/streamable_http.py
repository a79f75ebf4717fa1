"""MCP over Streamable HTTP at `/mcp`, stateless: any process can answer any request."""

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Match, Route
from starlette.types import Scope

from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server.mcp.handlers import McpHandlers
from sash.server.timeouts import Timeouts

PATH = "/mcp"


class McpRoute(Route):
    """The route of MCP. It has no GET: without sessions, a GET stream would never send anything."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        endpoint = StreamableHTTPASGIApp(manager)
        super().__init__(PATH, endpoint=endpoint, methods=["POST"], include_in_schema=False)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Put the route into the scope, as FastAPI's routes do; the metrics read it."""
        match, found = super().matches(scope)
        return match, {**found, "route": self} if match is not Match.NONE else found


def make_session_manager(
    service: AgentService, settings: Settings, timeouts: Timeouts
) -> StreamableHTTPSessionManager:
    """Return the SDK's session manager. It checks no Host, Origin or token: the middleware does."""
    return StreamableHTTPSessionManager(
        app=McpHandlers(service, timeouts).build_server(),
        stateless=True,
        max_request_body_size=settings.max_body_bytes,
    )
