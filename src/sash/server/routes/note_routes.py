"""`/facts` and `/pins`: notes that stay when a window slides, and `/preferences`.

Below `/v1` they belong to the calling owner, and below `/v1/sessions/{session_id}` to one session.
"""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from sash.app.schemas import FactList, PinList, PreferenceList
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Id, QueryRoute, Service, make_json_response
from sash.values.requests import Note, PinRequest, Preferences
from sash.values.sessions import Fact, Pin


def make_router(prefix: str, get_session_id: Callable[..., str | None]) -> APIRouter:
    """Return the routes of the notes of a session, or of the owner if `get_session_id` returns None."""
    router = APIRouter(prefix=prefix, tags=["memory"], responses=ERRORS, route_class=QueryRoute)
    session = Annotated[str | None, Depends(get_session_id)]

    @router.get("/facts", name="facts", response_model=FactList)
    async def list_facts(service: Service, caller: CurrentCaller, session_id: session) -> Response:
        """List the facts that the agent remembers."""
        return make_json_response(FactList(await service.list_facts(caller, session_id)))

    @router.post("/facts", name="remember", status_code=201, response_model=Fact)
    async def add_fact(service: Service, caller: CurrentCaller, session_id: session, body: Note) -> Response:
        """Add a fact."""
        return make_json_response(await service.remember(caller, body, session_id), 201)

    @router.patch("/facts/{fact_id}", name="edit_fact", response_model=Fact)
    async def edit_fact(
        service: Service, caller: CurrentCaller, session_id: session, fact_id: Id, body: Note
    ) -> Response:
        """Replace the text of a fact."""
        return make_json_response(await service.edit_fact(caller, fact_id, body, session_id))

    @router.delete("/facts/{fact_id}", name="forget", response_model=FactList)
    async def delete_fact(
        service: Service, caller: CurrentCaller, session_id: session, fact_id: Id
    ) -> Response:
        """Delete a fact and return it."""
        return make_json_response(FactList((await service.forget(caller, fact_id, session_id),)))

    @router.get("/pins", name="pins", response_model=PinList)
    async def list_pins(service: Service, caller: CurrentCaller, session_id: session) -> Response:
        """List the texts and entities that are part of every context."""
        return make_json_response(PinList(await service.list_pins(caller, session_id)))

    @router.post("/pins", name="pin", status_code=201, response_model=Pin)
    async def add_pin(
        service: Service, caller: CurrentCaller, session_id: session, body: PinRequest
    ) -> Response:
        """Add a text, or the state of an entity, to every context."""
        return make_json_response(await service.pin(caller, body, session_id), 201)

    @router.delete("/pins/{pin_id}", name="unpin", status_code=204)
    async def delete_pin(
        service: Service, caller: CurrentCaller, session_id: session, pin_id: Id
    ) -> Response:
        """Delete a pin."""
        await service.unpin(caller, pin_id, session_id)
        return Response(status_code=204)

    return router


def _get_session_id(session_id: Id) -> str:
    return session_id


def _get_no_session() -> None:
    return None


router = make_router("/v1/sessions/{session_id}", _get_session_id)
owner_router = make_router("/v1", _get_no_session)


@owner_router.get("/preferences", name="preferences", response_model=PreferenceList)
async def list_preferences(service: Service, caller: CurrentCaller) -> Response:
    """Return the preferences with which your new sessions start."""
    return make_json_response(PreferenceList((await service.owner_notes(caller)).preferences))


@owner_router.patch("/preferences", name="prefer", response_model=PreferenceList)
async def change_preferences(service: Service, caller: CurrentCaller, body: Preferences) -> Response:
    """Change preferences of your new sessions. A preference with the value null is deleted."""
    notes = await service.set_owner_preferences(caller, body.preferences)
    return make_json_response(PreferenceList(notes.preferences))
