"""`/v1/home`: the home as the agent sees it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from sash.app.home_service import HomeService
from sash.app.home_view import HomeShown
from sash.server.routes.dependencies import ERRORS, CurrentCaller, QueryRoute, Service, make_json_response

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
