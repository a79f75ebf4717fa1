"""`/waiting`: what sessions do later, at a time or when an entity has a state."""

from fastapi import APIRouter
from starlette.responses import Response

from sash.app.schemas import WaitingList, WaitingShown
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Id, QueryRoute, Service, make_json_response

router = APIRouter(prefix="/v1", tags=["waiting"], responses=ERRORS, route_class=QueryRoute)


@router.get("/waiting", name="waiting", response_model=WaitingList)
async def list_waiting(service: Service, caller: CurrentCaller) -> Response:
    """List what all your sessions do later."""
    return make_json_response(await service.list_waiting(caller))


@router.get("/sessions/{session_id}/waiting", name="session_waiting", response_model=WaitingList)
async def list_session_waiting(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """List what a session does later.

    When it is due, the session gets a new turn. Its first step is an observed event `waiting_turn_fired`.
    """
    return make_json_response(await service.list_waiting(caller, session_id))


@router.delete("/waiting/{waiting_id}", name="cancel_waiting", response_model=WaitingShown)
async def cancel_waiting(service: Service, caller: CurrentCaller, waiting_id: Id) -> Response:
    """Cancel something that a session would do later, and return it."""
    return make_json_response(await service.cancel_waiting(caller, waiting_id))
