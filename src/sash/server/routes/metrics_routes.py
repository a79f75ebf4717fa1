"""`/metrics`: the numbers of the server. It is not part of `rest_api.py`, because it needs Prometheus."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from sash.server.metrics import Metrics
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Service

router = APIRouter(tags=["server"])


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
    metrics: Metrics = request.app.state.metrics
    metrics.count_swept(service.runtime.swept)
    text = metrics.render(service.runtime.sum_cached_windows())
    return Response(text, media_type="text/plain; version=0.0.4")
