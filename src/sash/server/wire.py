"""What all routes share: who calls, how an answer is written, which problems there may be."""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel
from starlette.responses import Response

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.server.problems import MEDIA_TYPE
from sash.values.codec import adapter


class Problem(BaseModel):
    """What was wrong, and what to do (RFC 9457); `code` stays the same when the words change."""

    type: str
    title: str
    status: int
    detail: str
    code: str


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


async def _desk(request: Request) -> AgentService:
    desk: AgentService = request.app.state.desk
    return desk


Who = Annotated[Caller, Depends(_caller)]
At = Annotated[AgentService, Depends(_desk)]

_SAID = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "The token has not the scope, or the page not the right.",
    404: "There is none, as far as this owner is concerned.",
    408: "The body did not come in time.",
    409: "Something else is under way, or was first.",
    410: "The session is over.",
    413: "Too large.",
    415: "The body does not say that it is JSON.",
    421: "This server has another name.",
    422: "Something in it is wrong.",
    429: "Too many.",
    502: "The model, a tool or the house has failed.",
    503: "Not now: the store or the house is not there, or the server shuts down.",
}


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _SAID[status], "content": content} for status in statuses}


ERRORS = _problems(*_SAID)


def reply(value: Any, status: int = 200) -> Response:
    """Return a value as JSON, by the one definition that its dataclass is."""
    return Response(adapter(type(value)).dump_json(value), status, media_type="application/json")
