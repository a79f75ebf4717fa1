"""MCP's Streamable HTTP on one route: stateless, so that any process can answer any request."""

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Route

from sash.desk import Desk
from sash.server.mcp import make_mcp
from sash.settings import Settings

PATH = "/mcp"


def make_manager(desk: Desk, settings: Settings) -> StreamableHTTPSessionManager:
    """Return what runs MCP's requests, for as long as the app lives. The gate has looked at them by then."""
    return StreamableHTTPSessionManager(
        app=make_mcp(desk), stateless=True, max_request_body_size=settings.max_body_bytes
    )


def mcp_route(manager: StreamableHTTPSessionManager) -> Route:
    """Return the route of MCP; only for POST: a stream without a session would be silent for ever."""
    endpoint = StreamableHTTPASGIApp(manager)
    return Route(PATH, endpoint=endpoint, methods=["POST"], include_in_schema=False)
