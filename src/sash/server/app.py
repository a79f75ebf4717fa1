"""The web application: all routes and all middleware over one service."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from sash import __version__
from sash.app.access import Tokens
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.engine.owner_pacing import OwnerPacing
from sash.server.conversation_service import ConversationService
from sash.server.http_errors import install_error_handlers
from sash.server.mcp.streamable_http import McpRoute, make_session_manager
from sash.server.metrics import Metrics
from sash.server.middleware.authentication import Authentication
from sash.server.middleware.body_limits import BodyLimits
from sash.server.middleware.framing_guard import FramingGuard
from sash.server.middleware.host_guard import HostGuard
from sash.server.middleware.request_metrics import RequestMetrics
from sash.server.middleware.request_shares import RequestPacing, RequestShares
from sash.server.middleware.request_tracing import RequestTracing
from sash.server.openapi import DESCRIPTION, build_openapi
from sash.server.routes import (
    continuation_routes,
    conversation_routes,
    event_routes,
    health_routes,
    note_routes,
    owner_routes,
    page_routes,
    session_routes,
)
from sash.server.timeouts import Timeouts
from sash.server.tracing import Tracing

ROUTERS = (
    session_routes.router,
    continuation_routes.router,
    note_routes.router,
    note_routes.owner_router,
    owner_routes.router,
    conversation_routes.router,
    event_routes.router,
    health_routes.router,
)


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
    app = FastAPI(
        title="Sash",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: mcp.run(),
    )
    app.state.service = service
    app.state.metrics = metrics
    app.state.streams = event_routes.EventStreams(
        settings.max_subscribers, settings.max_subscribers_per_owner, metrics, timeouts
    )
    app.state.conversations = ConversationService(
        service,
        settings.conversation_max_turns,
        answer_s=timeouts.answer_s,
        auto_create_ids=settings.auto_create_conversation_id,
    )
    install_error_handlers(app)
    app.router.routes.append(McpRoute(mcp))  # first: routes are tried one after the other
    for router in ROUTERS:
        app.include_router(router)
    app.include_router(page_routes.make_router(app, tokens))
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]
    app.add_middleware(RequestShares, shares=service.shares)
    pacing = OwnerPacing()
    app.add_middleware(BodyLimits, settings=settings, timeouts=timeouts, shares=service.shares, pacing=pacing)
    app.add_middleware(RequestPacing, pacing=pacing)
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
