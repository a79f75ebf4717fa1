"""Errors as problem+json responses (RFC 9457): the table from error codes to HTTP statuses."""

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from sash.engine.redaction import redact
from sash.errors import SashError, is_wrong_input
from sash.values.faults import describe_faults

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = "2"

STATUS_BY_CODE = {
    "invalid_json": 400,
    "length_ambiguous": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "origin_refused": 403,
    "conversation_not_found": 404,
    "session_not_found": 404,
    "continuation_not_found": 404,
    "note_not_found": 404,
    "message_not_found": 404,
    "waiting_turn_not_found": 404,
    "artifact_not_found": 404,
    "tool_not_found": 404,
    "entity_not_found": 404,
    "conversation_exists": 409,
    "session_exists": 409,
    "session_busy": 409,
    "key_reused": 409,
    "notes_changed": 409,
    "session_changed": 409,
    "last_action_changed": 409,
    "continuation_final": 409,
    "continuation_open": 409,
    "not_awaiting_approval": 409,
    "model_fixed": 409,
    "policy_exceeds_operator": 403,
    "session_ended": 410,
    "body_too_slow": 408,
    "message_too_large": 413,
    "body_too_large": 413,
    "host_refused": 421,
    "too_many_sessions": 429,
    "too_many_turns": 429,
    "too_many_waiting_turns": 429,
    "too_many_requests": 429,
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
# The codes of errors that the web framework raises.
CODE_BY_STATUS = {
    400: "invalid_json",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    500: "internal_error",
}

_logger = logging.getLogger(__name__)


class Problem(BaseModel):
    """An error: its cause and the remedy (RFC 9457). `code` is stable; the wording of `detail` may change."""

    type: str
    title: str
    status: int
    detail: str
    code: str


def get_status(code: str) -> int:
    """Return the HTTP status of an error code: 422 for unlisted codes of wrong input, else 500."""
    return STATUS_BY_CODE.get(code, 422 if is_wrong_input(code) else 500)


def make_problem(
    status: int, code: str, detail: str, headers: dict[str, str] | None = None, **fields: Any
) -> Response:
    """Return a problem+json response. `fields` are added to its body."""
    body = {
        "type": f"urn:sash:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": redact(detail),
        "code": code,
        **fields,
    }
    headers = dict(headers or {})
    if status in (429, 503):
        headers["Retry-After"] = RETRY_AFTER_S
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sash"'
    return Response(json.dumps(body, default=str), status, headers, MEDIA_TYPE)


def make_error_response(error: SashError) -> Response:
    """Return the problem+json response for a `SashError`."""
    return make_problem(get_status(error.code), error.code, error.message, **error.details)


def install_error_handlers(app: FastAPI) -> None:
    """Make the app answer every error with a problem+json response."""

    @app.exception_handler(SashError)
    async def handle_sash_error(request: Request, error: SashError) -> Response:
        return make_error_response(error)

    @app.exception_handler(RequestValidationError)
    async def handle_invalid_request(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        for fault in errors:
            if fault["type"] == "json_invalid":
                detail = f"the body is not JSON: {fault['ctx']['error']} at character {fault['loc'][-1]}"
                return make_problem(400, "invalid_json", detail)
        if any(e["loc"] == ("body",) for e in errors) and _has_other_media_type(request):
            return make_problem(
                415, "unsupported_media_type", "send the body with Content-Type: application/json"
            )
        return make_problem(422, "invalid_input", describe_faults(errors))

    @app.exception_handler(HTTPException)
    async def handle_http_exception(request: Request, error: HTTPException) -> Response:
        code, headers = CODE_BY_STATUS.get(error.status_code, "error"), dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(sorted(_find_methods(app, request))) or headers.get("Allow", "GET")
        detail = f"{request.method} {request.url.path}: {error.detail}: see /docs"
        return make_problem(error.status_code, code, detail, headers)

    @app.exception_handler(Exception)
    async def handle_unexpected(request: Request, error: Exception) -> Response:
        # The message of a foreign exception may contain a secret, so only its type is logged.
        _logger.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__)
        return make_problem(500, "internal_error", "an unexpected error occurred: see the server's log")


def _has_other_media_type(request: Request) -> bool:
    """Return True if the request has a body whose Content-Type is not JSON."""
    has_body = request.headers.get("content-length", "0") != "0"
    return has_body and "json" not in request.headers.get("content-type", "")


def _find_methods(app: FastAPI, request: Request) -> set[str]:
    """Return the methods of all routes at the request's path. Each route knows only its own methods."""
    paths = app.openapi()["paths"].items()
    exact = [operations for path, operations in paths if path == request.url.path]
    matching = exact or [ops for path, ops in paths if compile_path(path)[0].match(request.url.path)]
    return {method.upper() for operations in matching for method in operations}
