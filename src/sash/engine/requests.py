"""What comes in with a message, checked and without secrets, before anything of it is kept."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sash.engine.redaction import redact, redact_json
from sash.errors import InvalidInput
from sash.ports.model import check_options
from sash.values.sessions import ModelConfig
from sash.values.steps import ContinuationRequest
from sash.values.validation import (
    check_count,
    check_flag,
    check_json,
    check_kind,
    check_label,
    check_parts,
    check_size,
    check_text,
)

ATTACHMENTS = ("image_url", "input_audio")
MAX_OBJECT_BYTES = 16 << 10


def read_request(most_bytes: int, message: Any, **options: Any) -> ContinuationRequest:
    """Return a request of which a message may have so many bytes, and so may its attachments."""
    model = options["model"]
    return ContinuationRequest(
        message=redact(_check_message(message, most_bytes)),
        allow_tools=check_flag("allow_tools", options["allow_tools"]),
        max_steps=_check_budget("max_steps", options["max_steps"]),
        time_budget_ms=_check_budget("time_budget_ms", options["time_budget_ms"]),
        planner_hints=read_object("planner_hints", options["planner_hints"]),
        idempotency_key=_read_key(options["idempotency_key"]),
        model=None if model is None else read_model(model, options["reserved_options"]),
        attachments=_check_attachments(options["attachments"], most_bytes) if options["attachments"] else (),
        metadata=read_object("metadata", options["metadata"]),
    )


def read_recorded(most_bytes: int, message: Any, metadata: Any, key: Any) -> ContinuationRequest:
    """Return the request of a turn that Sash does not run."""
    asked = redact(_check_message(message, most_bytes))
    return ContinuationRequest(
        asked, idempotency_key=_read_key(key), metadata=read_object("metadata", metadata)
    )


def read_answer(most_bytes: int, answer: Any) -> str:
    """Return an answer that somebody else has given."""
    if not isinstance(answer, str):
        raise InvalidInput(f"ai_response must be a string, got {type(answer).__name__}")
    check_size(len(check_text(answer).encode()), most_bytes)
    return redact(answer)


def read_object(name: str, value: Any) -> dict[str, Any]:
    """Return what somebody wants to be kept, if it is a JSON object and not too large."""
    clean: dict[str, Any] = redact_json(check_json(name, value))
    check_size(len(json.dumps(clean)), MAX_OBJECT_BYTES)
    return clean


def _read_key(key: Any) -> str | None:
    return None if key is None else read_label("idempotency_key", key)


def read_label(what: str, label: Any) -> str:
    """Refuse a label with a secret in it: it is kept, and cannot be changed."""
    if redact(check_label(what, label)) != label:
        raise InvalidInput(f"the {what} looks like it has a secret in it: use another one")
    return str(label)


def read_model(model: Any, reserved_options: frozenset[str]) -> ModelConfig:
    """Check which model a caller asks for, and its options. None is the runtime's usual model."""
    config = check_kind("model", model, ModelConfig)
    check_options(config.options, reserved_options)
    return replace(config, options=redact_json(check_json("options", config.options)))


def _check_message(message: Any, most_bytes: int) -> str:
    if not isinstance(message, str) or not message.strip():
        raise InvalidInput("message must be a non-empty string")
    check_size(len(check_text(message).encode()), most_bytes)
    return message


def _check_budget(name: str, value: Any) -> int | None:
    return None if value is None else check_count(name, value)


def _check_attachments(attachments: Any, most_bytes: int) -> tuple[dict[str, Any], ...]:
    parts = check_parts(attachments)
    for part in parts:
        if part["type"] not in ATTACHMENTS:
            known = " or ".join(ATTACHMENTS)
            raise InvalidInput(f"an attachment is a part of type {known}, not {part['type']!r:.80}")
        if not part.get(part["type"]):
            raise InvalidInput(f"an attachment of type {part['type']} needs its {part['type']}")
        if part["type"] == "input_audio" and not isinstance(part["input_audio"], Mapping):
            raise InvalidInput("input_audio is an object with the recording as its 'data'")
    check_size(len(json.dumps(parts)), most_bytes)
    return tuple(part if _carries_data(part) else redact_json(part) for part in parts)


def _carries_data(part: dict[str, Any]) -> bool:
    """Whether a part is its image or recording, in which no secret is looked for, and not its address."""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    return part["type"] == "input_audio" or str(url).startswith("data:")
