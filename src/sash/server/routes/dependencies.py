"""Parts that all routes share: the caller, the service, JSON responses and the documented errors."""

from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_snake
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import InvalidInput
from sash.server.http_errors import MEDIA_TYPE
from sash.values.codec import adapter

_ERROR_DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "A token is missing, unknown or expired.",
    403: "The token lacks the required scope, or the Origin is not allowed.",
    404: "The record does not exist, or belongs to another owner.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with a running turn, or with an existing record.",
    410: "The session has ended.",
    413: "The body or the message is too large.",
    415: "The Content-Type of the body is not JSON.",
    421: "The Host header names another server.",
    422: "A value is invalid.",
    429: "A limit of the owner or of the server is reached.",
    502: "The model, a tool or the home failed.",
    503: "The store or the home is unavailable, or the server is shutting down.",
}

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, description in _ERROR_DESCRIPTIONS.items()
}

MAX_PAGE = 500

Id = Annotated[str, Path(min_length=1, max_length=256)]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE)]
SearchWords = Annotated[
    str,
    Query(
        min_length=1,
        max_length=256,
        description="Words to find in the messages, or a question. A message needs only one of the words. "
        "Of at most 32 words, the first 12 that are not stop words are searched. A question also finds the "
        "messages around its words, and may name a time or a speaker.",
    ),
]
MaxTokens = Annotated[
    int | None,
    Query(
        ge=1,
        le=1_000_000,
        description="The maximum number of tokens of all texts together. The result then also contains "
        "messages around the matches, ranked by score. Messages that do not fit are skipped.",
    ),
]


class QueryRoute(APIRoute):
    """A route that also accepts its query parameters in camelCase."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        if query != query.lower():
            known = {field.alias for field in self.dependant.query_params}
            scope["query_string"] = _rename_parameters(query, known)
        await super().handle(scope, receive, send)


def _rename_parameters(query: bytes, known: set[str]) -> bytes:
    """Return a query string with the known parameters in snake_case.

    Raise `InvalidInput` if a parameter has both spellings.
    """
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    sent = {name for name, _ in given}
    for name in sent:
        if (known_name := to_snake(name)) != name and known_name in known & sent:
            raise InvalidInput(f"{known_name} was sent in both spellings: send one of the two")
    renamed = [(to_snake(name) if to_snake(name) in known else name, value) for name, value in given]
    return urlencode(renamed).encode()


async def _get_caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


async def _get_service(request: Request) -> AgentService:
    service: AgentService = request.app.state.service
    return service


CurrentCaller = Annotated[Caller, Depends(_get_caller)]
Service = Annotated[AgentService, Depends(_get_service)]


def make_json_response(value: Any, status: int = 200) -> Response:
    """Return a response with the JSON form of a dataclass or a plain value."""
    return Response(adapter(type(value)).dump_json(value), status, media_type="application/json")
