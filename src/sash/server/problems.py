"""Errors as problem+json (RFC 9457): the one table from our codes to HTTP's."""

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from sash.engine.redaction import redact
from sash.errors import SashError, is_wrong_input

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = "2"

_STATUS = {
    "invalid_json": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "origin_refused": 403,
    "conversation_not_found": 404,
    "session_not_found": 404,
    "continuation_not_found": 404,
    "note_not_found": 404,
    "artifact_not_found": 404,
    "tool_not_found": 404,
    "entity_not_found": 404,
    "conversation_exists": 409,
    "session_exists": 409,
    "session_busy": 409,
    "key_reused": 409,
    "session_changed": 409,
    "continuation_final": 409,
    "continuation_open": 409,
    "not_awaiting_approval": 409,
    "model_fixed": 409,
    "session_ended": 410,
    "body_too_slow": 408,
    "message_too_large": 413,
    "body_too_large": 413,
    "host_refused": 421,
    "too_many_sessions": 429,
    "cursor_unknown": 409,
    "too_many_subscribers": 429,
    "model_error": 502,
    "model_key_refused": 502,
    "model_quota_reached": 502,
    "model_unknown": 502,
    "model_unreachable": 502,
    "context_too_long": 502,
    "content_filtered": 502,
    "tool_failed": 502,
    "home_error": 502,
    "service_failed": 502,
    "outcome_unknown": 502,
    "home_unauthorized": 502,
    "home_unavailable": 503,
    "store_unavailable": 503,
    "shutting_down": 503,
}
_CODES = {400: "invalid_json", 404: "not_found", 405: "method_not_allowed", 406: "not_acceptable"}

_logger = logging.getLogger(__name__)


def status_of(code: str) -> int:
    """Return the HTTP status of an error's code; what is not in the table is wrong input, or ours."""
    return _STATUS.get(code, 422 if is_wrong_input(code) else 500)


def problem(
    status: int, code: str, detail: str, headers: dict[str, str] | None = None, **data: Any
) -> Response:
    """Return a problem as a response."""
    body = {
        "type": f"urn:sash:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": redact(detail),
        "code": code,
        **data,
    }
    headers = dict(headers or {})
    if status in (429, 503):
        headers["Retry-After"] = RETRY_AFTER_S
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sash"'
    return Response(json.dumps(body, default=str), status, headers, MEDIA_TYPE)


def of_error(error: SashError) -> Response:
    """Return one of our errors as a problem."""
    return problem(status_of(error.code), error.code, error.message, **error.details)


def install(app: FastAPI) -> None:
    """Let every error of an app be a problem."""

    @app.exception_handler(SashError)
    async def ours(request: Request, error: SashError) -> Response:
        return of_error(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        if any(e["type"] == "json_invalid" for e in errors):
            return problem(400, "invalid_json", "the body is not JSON: " + _told(errors[0]))
        if any(e["loc"] == ("body",) for e in errors) and _is_no_json(request):
            return problem(415, "unsupported_media_type", "send the body with Content-Type: application/json")
        wrong = "; ".join(map(_told, errors[:5]))
        return problem(422, "invalid_input", wrong)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        code, headers = _CODES.get(error.status_code, "error"), dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(sorted(_methods(app, request))) or headers.get("Allow", "GET")
        detail = f"{request.method} {request.url.path}: {error.detail}: see /docs"
        return problem(error.status_code, code, detail, headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        _logger.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__)
        return problem(500, "internal_error", "something went wrong that should not: see the server's log")


def _is_no_json(request: Request) -> bool:
    """Whether there is a body that does not say that it is JSON."""
    there_is_one = request.headers.get("content-length", "0") != "0"
    return there_is_one and "json" not in request.headers.get("content-type", "")


def _methods(app: FastAPI, request: Request) -> set[str]:
    """Return all that can be done at a request's path: a route by itself knows only its own."""
    paths = app.openapi()["paths"].items()
    exact = [ways for path, ways in paths if path == request.url.path]
    fitting = exact or [ways for path, ways in paths if compile_path(path)[0].match(request.url.path)]
    return {method.upper() for ways in fitting for method in ways}


def _told(error: Any) -> str:
    """Say what is wrong, and where; not with which value, which may be a secret."""
    where = ".".join(str(part) for part in error["loc"] if part not in ("body",))
    return f"{where}: {error['msg']}" if where else str(error["msg"])
