"""The web application: routes over one desk, behind one gate."""

from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, Response

from sash import __version__
from sash.app.access import Tokens
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server import events, problems, rest, turns
from sash.server.conversation import Conversations
from sash.server.docs import docs_page
from sash.server.gate import Gate
from sash.server.mcp.http import McpRoute, make_manager
from sash.server.metrics import Counting, Metrics
from sash.server.page import HEADERS, PAGE
from sash.server.tracing import Traced, Tracing
from sash.server.wire import ERRORS, Problem, Who, reply

DESCRIPTION = (
    "Conversations with an agent that remember exactly, cost little, and never lose or repeat anything. "
    "Errors are problem+json with a stable `code`."
)
# Stands for the server's address, which is as whoever asks has written it; the gate has looked at that.
ANY_BASE = "http://sash.invalid"
TAGS = {
    "sessions": "A conversation that lives for weeks, with its model, budgets, policy and memory.",
    "continuations": "One turn each: a message, what was done about it, and the answer.",
    "memory": "What is not forgotten when the window slides: facts and pins.",
    "events": "What happens in a session, as it happens.",
    "conversation": "Conversations by name: a window of turns, word for word, and one turn of the agent.",
    "owner": "All that is yours.",
    "server": "How the server is.",
}


def make_app(
    desk: AgentService, settings: Settings, tokens: Tokens, metrics: Metrics, tracing: Tracing | None = None
) -> FastAPI:
    """Return the application over a runtime that is open."""
    mcp = make_manager(desk, settings)
    app = FastAPI(
        title="Sash",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: mcp.run(),
    )
    app.state.desk = desk
    app.state.metrics = metrics
    app.state.streams = events.Streams(settings.max_subscribers, metrics)
    problems.install(app)
    app.state.conversations = Conversations(desk, settings.conversation_max_turns)
    app.include_router(rest.router)
    app.include_router(turns.router)
    app.include_router(events.router)
    app.router.routes.append(McpRoute(mcp))
    _add_pages(app, tokens)
    _add_health(app, desk, metrics)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(Gate, settings=settings, tokens=tokens)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["*"],
            allow_headers=["*"],
        )
    app.add_middleware(Counting, metrics=metrics)
    if tracing is not None:
        app.add_middleware(Traced, tracing=tracing)
    return app


def _add_pages(app: FastAPI, tokens: Tokens) -> None:
    @cache
    def rendered(token: bool) -> str:
        return docs_page(app.openapi(), ANY_BASE, token=token)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(PAGE, headers=HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        page = rendered(bool(tokens.list())).replace(ANY_BASE, str(request.base_url).rstrip("/"))
        return HTMLResponse(page, headers=HEADERS)


def _add_health(app: FastAPI, desk: AgentService, metrics: Metrics) -> None:
    @app.get("/health", tags=["server"], response_model=dict[str, str])
    async def health() -> Response:
        """Say that the process lives."""
        return reply({"status": "ok", "version": __version__})

    @app.get("/ready", tags=["server"], response_model=dict[str, str], responses={503: ERRORS[503]})
    async def ready() -> Response:
        """Say whether turns can begin: the store answers, and the server does not shut down."""
        await desk.runtime.check()
        return reply({"status": "ready"})

    @app.get(
        "/metrics",
        tags=["server"],
        response_class=Response,
        responses={
            **{status: ERRORS[status] for status in (401, 403, 421)},
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        },
    )
    async def numbers(who: Who) -> Response:
        """Return the server's numbers, for Prometheus."""
        who.need("admin")
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Describe the API: problems instead of FastAPI's own errors, and the token."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=[{"name": name, "description": said} for name, said in TAGS.items()],
        )
        parts = schema.setdefault("components", {})
        parts["schemas"] = {
            name: part
            for name, part in {**parts.get("schemas", {}), "Problem": Problem.model_json_schema()}.items()
            if name not in ("HTTPValidationError", "ValidationError")
        }
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        app.openapi_schema = schema
    return app.openapi_schema
