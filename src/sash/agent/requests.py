"""What comes in with a message, checked and without secrets, before anything of it is kept."""

import json
from dataclasses import replace
from typing import Any

from sash.agent.redaction import redact, redact_json
from sash.checks import (
    check_count,
    check_flag,
    check_json,
    check_kind,
    check_label,
    check_parts,
    check_size,
    check_text,
)
from sash.errors import InvalidInput
from sash.sessions import ModelConfig
from sash.steps import ContinuationRequest

ATTACHMENTS = ("image_url", "input_audio")
MOST_HINTS_BYTES = 16 << 10


def read_request(most_bytes: int, message: Any, **options: Any) -> ContinuationRequest:
    """Return a request of which a message may have so many bytes, and so may its attachments."""
    key, model = options["idempotency_key"], options["model"]
    return ContinuationRequest(
        message=redact(_check_message(message, most_bytes)),
        allow_tools=check_flag("allow_tools", options["allow_tools"]),
        max_steps=_check_budget("max_steps", options["max_steps"]),
        time_budget_ms=_check_budget("time_budget_ms", options["time_budget_ms"]),
        planner_hints=_check_hints(options["planner_hints"]),
        idempotency_key=None if key is None else _check_key(key),
        model=None if model is None else read_model(model),
        attachments=_check_attachments(options["attachments"], most_bytes) if options["attachments"] else (),
    )


def read_model(model: Any) -> ModelConfig:
    """Return which model is to answer; None is the usual one."""
    config = check_kind("model", model, ModelConfig)
    return replace(config, options=redact_json(check_json("options", config.options)))


def _check_message(message: Any, most_bytes: int) -> str:
    if not isinstance(message, str) or not message.strip():
        raise InvalidInput("message must be a non-empty string")
    check_size(len(check_text(message).encode()), most_bytes)
    return message


def _check_budget(name: str, value: Any) -> int | None:
    return None if value is None else check_count(name, value)


def _check_hints(hints: Any) -> dict[str, Any]:
    clean: dict[str, Any] = redact_json(check_json("planner_hints", hints))
    check_size(len(json.dumps(clean)), MOST_HINTS_BYTES)
    return clean


def _check_key(key: Any) -> str:
    """Refuse an idempotency key with a secret in it: it is kept, and cannot be changed."""
    if redact(check_label("idempotency_key", key)) != key:
        raise InvalidInput("the idempotency_key looks like it has a secret in it: use a random id")
    return str(key)


def _check_attachments(attachments: Any, most_bytes: int) -> tuple[dict[str, Any], ...]:
    parts = check_parts(attachments)
    for part in parts:
        if part["type"] not in ATTACHMENTS:
            known = " or ".join(ATTACHMENTS)
            raise InvalidInput(f"an attachment is a part of type {known}, not {part['type']!r:.80}")
        if not part.get(part["type"]):
            raise InvalidInput(f"an attachment of type {part['type']} needs its {part['type']}")
    check_size(len(json.dumps(parts)), most_bytes)
    return tuple(part if _carries_data(part) else redact_json(part) for part in parts)


def _carries_data(part: dict[str, Any]) -> bool:
    """Whether a part is its image or recording, in which no secret is looked for, and not its address."""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    return part["type"] == "input_audio" or str(url).startswith("data:")
