"""The web application: routes over one desk, behind one gate."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, Response

from sash import __version__
from sash.access import Tokens
from sash.desk import Desk
from sash.server import events, problems, rest
from sash.server.gate import Gate
from sash.server.metrics import Counting, Metrics
from sash.server.page import PAGE
from sash.server.tracing import Traced, Tracing
from sash.server.wire import ERRORS, Problem, Who, reply
from sash.settings import Settings

DESCRIPTION = (
    "Conversations with an agent that remember exactly, cost little, and never lose or repeat anything. "
    "Errors are problem+json with a stable `code`."
)


def make_app(
    desk: Desk, settings: Settings, tokens: Tokens, metrics: Metrics, tracing: Tracing | None = None
) -> FastAPI:
    """Return the application over a runtime that is open."""
    app = FastAPI(title="Sash", version=__version__, description=DESCRIPTION, redoc_url=None)
    app.state.desk = desk
    app.state.metrics = metrics
    app.state.streams = events.Streams(settings.max_subscribers, metrics)
    problems.install(app)
    app.include_router(rest.router)
    app.include_router(events.router)
    _add_health(app, desk, metrics)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(Gate, settings=settings, tokens=tokens)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.allowed_origins, allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(Counting, metrics=metrics)
    if tracing is not None:
        app.add_middleware(Traced, tracing=tracing)
    return app


def _add_health(app: FastAPI, desk: Desk, metrics: Metrics) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(
            PAGE, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        )

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
            title=app.title, version=app.version, description=app.description, routes=app.routes
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
