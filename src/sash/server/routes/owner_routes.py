"""`/v1/me`, `/v1/search`, `/v1/stats` and `/v1/owners/me`: all data of the calling owner."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from sash.app.caller_view import CallerShown
from sash.app.schemas import Erased, MessageList
from sash.engine.report_verbs import MAX_DAYS, STATISTICS_DAYS
from sash.server.routes.dependencies import (
    ERRORS,
    CurrentCaller,
    MaxTokens,
    PageSize,
    QueryRoute,
    SearchWords,
    Service,
    make_json_response,
)

router = APIRouter(prefix="/v1", tags=["owner"], responses=ERRORS, route_class=QueryRoute)


@router.get("/me", name="me", response_model=CallerShown)
async def get_caller(service: Service, caller: CurrentCaller) -> Response:
    """Return your rights, and the defaults of the sessions that you start."""
    return make_json_response(await service.describe_caller(caller))


@router.get("/search", name="search_all", response_model=MessageList)
async def search_all_messages(
    service: Service,
    caller: CurrentCaller,
    q: SearchWords,
    limit: PageSize = 10,
    max_tokens: MaxTokens = None,
) -> Response:
    """Search the messages of all your sessions, best match first. There is only one page."""
    found = await service.search(caller, q, limit=limit, max_tokens=max_tokens)
    return make_json_response(MessageList.of_best(found))


@router.get("/stats", name="stats", response_model=dict[str, Any])
async def get_statistics(
    service: Service, caller: CurrentCaller, days: Annotated[int, Query(ge=1, le=MAX_DAYS)] = STATISTICS_DAYS
) -> Response:
    """Return the usage and cost of your sessions: in total, today, and per day."""
    return make_json_response(await service.statistics(caller, days))


@router.delete("/owners/me", name="erase", response_model=Erased)
async def erase_owner(service: Service, caller: CurrentCaller) -> Response:
    """Delete all your data permanently."""
    return make_json_response(Erased(await service.erase(caller)))
