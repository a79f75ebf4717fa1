"""The OpenAPI document: problem+json errors instead of FastAPI's own, and the bearer token."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sash.server.http_errors import Problem

DESCRIPTION = (
    "Conversations with an agent that remember exactly, cost little, and never lose or repeat anything. "
    "Errors are problem+json with a stable `code`."
)
TAGS = {
    "sessions": "Conversations that last for weeks, each with its model, budgets, policy and memory.",
    "continuations": "Turns: a message, the steps of the agent, and the answer.",
    "memory": "Facts and pins, which stay when the window slides.",
    "events": "The events of a session as they happen.",
    "conversation": "Conversations by name: a window of unchanged turns, and one call that runs the agent.",
    "home": "The home as the agent sees it, and the agent's actions in it.",
    "owner": "All your data.",
    "server": "The state of the server.",
}
_FASTAPI_ERRORS = ("HTTPValidationError", "ValidationError")


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an app. It is built at the first call."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=[{"name": name, "description": description} for name, description in TAGS.items()],
        )
        components = schema.setdefault("components", {})
        components["schemas"] = {
            name: component
            for name, component in {
                **components.get("schemas", {}),
                "Problem": Problem.model_json_schema(),
            }.items()
            if name not in _FASTAPI_ERRORS
        }
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        app.openapi_schema = schema
    return app.openapi_schema
