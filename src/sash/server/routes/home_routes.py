"""`/v1/home`, `/v1/actions` and undo: the home as the agent sees it, and the agent's actions in it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from sash.app.action_view import ActionList
from sash.app.home_service import HomeService
from sash.app.home_view import HomeShown
from sash.app.schemas import Acknowledged
from sash.engine.past_actions import ACTION_CURSOR
from sash.server.routes.dependencies import ERRORS, CurrentCaller, Id, QueryRoute, Service, make_json_response
from sash.values.requests import Undo

MAX_ACTIONS = 200

router = APIRouter(prefix="/v1", tags=["home"], responses=ERRORS, route_class=QueryRoute)


async def _get_home_service(service: Service) -> HomeService:
    return HomeService(service)


Home = Annotated[HomeService, Depends(_get_home_service)]


@router.get("/home", name="home", response_model=HomeShown)
async def show_home(
    home: Home,
    caller: CurrentCaller,
    language: Annotated[
        str | None,
        Query(
            min_length=2, max_length=35, description="The language of `shown`. Default: the home's language."
        ),
    ] = None,
) -> Response:
    """Return the entities that the agent sees, with their states.

    Without a home, `name` is null. While the home does not answer, `problem` says why.
    """
    return make_json_response(await home.show_home(caller, language))


@router.get("/actions", name="actions", response_model=ActionList)
async def list_actions(
    home: Home,
    caller: CurrentCaller,
    session_id: Annotated[
        str | None, Query(min_length=1, max_length=256, description="Only the actions of this session.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ACTIONS)] = 50,
    cursor: Annotated[
        str | None,
        Query(pattern=f"^{ACTION_CURSOR.pattern}$", description="The `next_cursor` of the previous page."),
    ] = None,
) -> Response:
    """List your agent's actions, newest first, with the sentence that led to each of them.

    Denied and previewed actions are listed, too: see `outcome`. The list reaches back 1000 turns.
    """
    return make_json_response(
        await home.list_actions(caller, session_id=session_id, limit=limit, cursor=cursor)
    )


@router.post("/sessions/{session_id}/undo", name="undo", status_code=202, response_model=Acknowledged)
async def undo_action(
    home: Home, caller: CurrentCaller, session_id: Id, body: Undo | None = None
) -> Response:
    """Start a turn that undoes the last action of a session, as if you had said "undo that".

    The policy of the session applies, and the turn may wait for an approval. If another turn runs, this one
    follows it. With the ids of the expected action, nothing happens if another action would be undone (409
    `last_action_changed`), or while another turn runs (409 `session_busy`).
    """
    turn = await home.undo(caller, session_id, body or Undo())
    return make_json_response(Acknowledged(turn.id), 202)
