"""`/health` and `/ready`: the state of the server."""

from fastapi import APIRouter
from starlette.responses import Response

from sash import __version__
from sash.server.routes.dependencies import ERRORS, Service, make_json_response

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
