"""The REST and event routes over one service, without MCP, metrics, sign-in and pages.

The server adds those (`app.py`). The Home Assistant integration uses these routes as they are. A request
needs `scope["caller"]` and `scope["check_token"]`, as `middleware/authentication.py` sets them.
"""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from sash import __version__
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.engine.owner_pacing import OwnerPacing
from sash.server.conversation_service import ConversationService
from sash.server.http_errors import install_error_handlers
from sash.server.middleware.body_limits import BodyLimits
from sash.server.middleware.request_shares import RequestPacing, RequestShares
from sash.server.openapi import DESCRIPTION, build_openapi
from sash.server.routes import (
    continuation_routes,
    conversation_routes,
    event_routes,
    health_routes,
    home_routes,
    note_routes,
    owner_routes,
    session_routes,
    waiting_routes,
)
from sash.server.timeouts import Timeouts

ROUTERS = (
    session_routes.router,
    continuation_routes.router,
    waiting_routes.router,
    note_routes.router,
    note_routes.owner_router,
    owner_routes.router,
    home_routes.router,
    conversation_routes.router,
    event_routes.router,
    health_routes.router,
)


def make_rest_api(
    service: AgentService,
    settings: Settings,
    timeouts: Timeouts,
    *,
    on_streams: Callable[[int], None] | None = None,
    lifespan: Callable[[FastAPI], Any] | None = None,
) -> FastAPI:
    """Return the application over the open runtime of `service`.

    `on_streams` gets the number of open event streams after each change. The middleware limits the size of
    bodies, and the requests of one owner that run at a time. `app.state.pacing` may have a timer, which its
    `close` cancels.
    """
    app = FastAPI(
        title="Sash",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.streams = event_routes.EventStreams(
        settings.max_subscribers, settings.max_subscribers_per_owner, timeouts, on_streams
    )
    app.state.conversations = ConversationService(
        service,
        settings.conversation_max_turns,
        answer_s=timeouts.answer_s,
        auto_create_ids=settings.auto_create_conversation_id,
    )
    install_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]
    app.add_middleware(RequestShares, shares=service.shares)
    app.state.pacing = pacing = OwnerPacing()
    app.add_middleware(BodyLimits, settings=settings, timeouts=timeouts, shares=service.shares, pacing=pacing)
    app.add_middleware(RequestPacing, pacing=pacing)
    return app
