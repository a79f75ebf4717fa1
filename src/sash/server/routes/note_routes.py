"""`/v1/sessions/{session_id}/facts` and `/pins`: notes that a session keeps when its window slides."""

from fastapi import APIRouter
from starlette.responses import Response

from sash.app.schemas import FactList, PinList
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Id, QueryRoute, Service, make_json_response
from sash.values.requests import Note
from sash.values.sessions import Fact, Pin

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["memory"], responses=ERRORS, route_class=QueryRoute
)


@router.get("/facts", name="facts", response_model=FactList)
async def list_facts(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """List the facts that the agent remembers."""
    session = await service.get_session(caller, session_id)
    return make_json_response(FactList(session.memory.facts))


@router.post("/facts", name="remember", status_code=201, response_model=Fact)
async def add_fact(service: Service, caller: CurrentCaller, session_id: Id, body: Note) -> Response:
    """Add a fact."""
    return make_json_response(await service.remember(caller, session_id, body), 201)


@router.delete("/facts/{fact_id}", name="forget", response_model=FactList)
async def delete_fact(service: Service, caller: CurrentCaller, session_id: Id, fact_id: Id) -> Response:
    """Delete a fact and return it."""
    return make_json_response(FactList((await service.forget(caller, session_id, fact_id),)))


@router.get("/pins", name="pins", response_model=PinList)
async def list_pins(service: Service, caller: CurrentCaller, session_id: Id) -> Response:
    """List the texts that are part of every context."""
    session = await service.get_session(caller, session_id)
    return make_json_response(PinList(session.memory.pins))


@router.post("/pins", name="pin", status_code=201, response_model=Pin)
async def add_pin(service: Service, caller: CurrentCaller, session_id: Id, body: Note) -> Response:
    """Add a text to every context."""
    return make_json_response(await service.pin(caller, session_id, body), 201)


@router.delete("/pins/{pin_id}", name="unpin", status_code=204)
async def delete_pin(service: Service, caller: CurrentCaller, session_id: Id, pin_id: Id) -> Response:
    """Delete a pin."""
    await service.unpin(caller, session_id, pin_id)
    return Response(status_code=204)
