"""The web application of the server: the REST API with MCP, metrics, pages and all middleware."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from sash.app.access import Tokens
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server.mcp.streamable_http import McpRoute, make_session_manager
from sash.server.metrics import Metrics
from sash.server.middleware.authentication import Authentication
from sash.server.middleware.framing_guard import FramingGuard
from sash.server.middleware.host_guard import HostGuard
from sash.server.middleware.request_metrics import RequestMetrics
from sash.server.middleware.request_tracing import RequestTracing
from sash.server.rest_api import make_rest_api
from sash.server.routes import metrics_routes, page_routes
from sash.server.timeouts import Timeouts
from sash.server.tracing import Tracing


def make_app(
    service: AgentService,
    settings: Settings,
    tokens: Tokens,
    metrics: Metrics,
    tracing: Tracing | None = None,
    timeouts: Timeouts | None = None,
) -> FastAPI:
    """Return the web application over the open runtime of `service`."""
    timeouts = timeouts or Timeouts()
    mcp = make_session_manager(service, settings, timeouts)
    app = make_rest_api(
        service, settings, timeouts, on_streams=metrics.subscribers.set, lifespan=lambda _: mcp.run()
    )
    app.state.metrics = metrics
    app.router.routes.insert(0, McpRoute(mcp))  # Routes are tried one after the other.
    app.include_router(metrics_routes.router)
    app.include_router(page_routes.make_router(app, tokens))
    _add_middleware(app, settings, tokens, metrics, tracing, timeouts)
    return app


def _add_middleware(
    app: FastAPI,
    settings: Settings,
    tokens: Tokens,
    metrics: Metrics,
    tracing: Tracing | None,
    timeouts: Timeouts,
) -> None:
    """Add the middleware, innermost first. The middleware that is added last sees a request first."""
    app.add_middleware(Authentication, settings=settings, tokens=tokens, token_check_s=timeouts.token_check_s)
    app.add_middleware(HostGuard, settings=settings)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["*"],
            allow_headers=["*"],
        )
    app.add_middleware(FramingGuard)
    app.add_middleware(RequestMetrics, metrics=metrics)
    if tracing is not None:
        app.add_middleware(RequestTracing, tracing=tracing)
