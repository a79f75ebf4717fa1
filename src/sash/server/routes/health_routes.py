"""`/health`, `/ready` and `/metrics`: the state of the server."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from sash import __version__
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Service, make_json_response

router = APIRouter(tags=["server"])


@router.head("/health", include_in_schema=False)
@router.get("/health", name="health", response_model=dict[str, str])
async def get_health() -> Response:
    """Return the version. A response means that the process is alive."""
    return make_json_response({"status": "ok", "version": __version__})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", name="ready", response_model=dict[str, str], responses={503: ERRORS[503]})
async def get_readiness(service: Service) -> Response:
    """Return "ready" if turns can start: the store can be written, and the server is not shutting down."""
    await service.runtime.check()
    return make_json_response({"status": "ready"})


@router.get(
    "/metrics",
    name="numbers",
    response_class=Response,
    responses={
        **{status: ERRORS[status] for status in (401, 403, 421)},
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    },
)
async def get_metrics(request: Request, service: Service, caller: CurrentCaller) -> Response:
    """Return the metrics of the server in the Prometheus text format."""
    caller.need("admin")
    metrics = request.app.state.metrics
    metrics.count_swept(service.runtime.swept)
    text = metrics.render(service.runtime.sum_cached_windows())
    return Response(text, media_type="text/plain; version=0.0.4")
