"""Removes secrets from text and JSON before they are written, logged or streamed."""

import json
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sash.errors import InvalidInput
from sash.values.long_text import iterate_matches
from sash.values.step_codec import decode_body, encode_body
from sash.values.steps import Plan, StepBody, ToolCall, ToolResult
from sash.values.validation import check_size

MARK = "[redacted]"
MAX_OBJECT_BYTES = 16 << 10
# No secret without spaces is longer, except one that the pattern finds from its first characters on.
MAX_SECRET_CHARS = 2 << 10

# A text without any of these has no secret. Most texts have none, and this test is much cheaper.
_hint = re.compile(
    r"""pass|pwd|authorization|key|secret|token[:= "'\\]|bearer|://|sk-|eyj|gh|glpat-|xox|akia|aiza|sash_"""
)

_secret = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:(?!-----END)[\s\S]){0,8192}"
            r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
            # A web token without its header, which `_iterate_secrets` adds.
            r"(?<=[\w-])\.eyJ[\w-]{8,}+(?:\.[\w-]{8,}+)?",
            r"\bsk-(?:[a-z]+-)?[\w-]{20,}",
            r"\b(?:gh[pousr]_\w{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,})",
            r"\bAKIA[0-9A-Z]{16}\b",
            r"\bAIza[\w-]{35,}",
            r"\bsash_[0-9a-f]{8}_[\w-]{40,}",
            r"(?i:(?<=bearer )[\w.~+/=-]{16,})",
            r"(?<=://)[^\s/:@]{1,64}:[^\s/@]{1,256}(?=@)",
            r"(?i:(?<=authorization: )\w{1,20} [^\s\"']{6,512})",
            r"(?i:(?P<told>\b(?:password|passwort|passphrase) (?:is|ist|lautet):? )(?=\S{0,512}\d)\S{6,512})",
            r"""(?ix:(?P<name>(?:password|passwd|passphrase|[_-]pass|pwd|api[_-]?key|access[_-]?key|secret[_-]?key
            |private[_-]?key|token|secret)(?:\\{0,3}["'])?(?:\sis)?\s{0,3}[:=]\s{0,3})
            (?:(?P<quote>\\{0,3}["'])(?:(?!(?P=quote))[^\n]){4,512}(?P=quote)?|[^\s"',;&}\\]{4,512}))""",
        )
    )
)
_HEADER_CHARS = string.ascii_letters + string.digits + "_-"
_SECRET_KEYS = re.compile(r"(?i)(?:password|passwd|api[_-]?key|token|secret|secret[_-]?key|private[_-]?key)$")


def redact(text: str) -> str:
    """Return the text with `[redacted]` in place of each secret."""
    return GrowingText().redact(text) if _has_hint(text) else text


class GrowingText:
    """Redacts a text that grows. Only its end is read again, where new text can complete a secret."""

    def __init__(self) -> None:
        self._settled = 0
        self._clean = ""

    def count_unsettled(self, text: str) -> int:
        """Return the number of characters that `redact` would read."""
        return len(text) - self._settled

    def redact(self, text: str) -> str:
        """Return the whole text without secrets. It must start with the text of the last call."""
        clean, at = self._clean, self._settled
        limit = len(text) - MAX_SECRET_CHARS
        for start, end, mark in _iterate_secrets(text, at):
            if at < limit <= start:
                self._settled, self._clean = limit, clean + text[at:limit]
            clean, at = clean + text[at:start] + mark, end
            if end <= limit:
                self._settled, self._clean = end, clean
        if at < limit:
            self._settled, self._clean = limit, clean + text[at:limit]
        return clean + text[at:]


def _has_hint(text: str) -> bool:
    return next(iterate_matches(_hint, text.lower()), None) is not None


def _iterate_secrets(text: str, at: int) -> Iterator[tuple[int, int, str]]:
    """Yield the start and the end of each secret after `at`, and the text in its place."""
    for found in iterate_matches(_secret, text, at):
        start = found.start()
        if found.group().startswith("."):  # The header of a web token is in front of what the pattern finds.
            start = at + len(text[at:start].rstrip(_HEADER_CHARS))
        at = found.end()
        yield start, at, _mark(found)


def _mark(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    return f"{found['name'] or found['told'] or ''}{quote}{MARK}{quote}"


def redact_json(value: Any) -> Any:
    """Return JSON values without secrets. Values under keys such as `password` are secrets, too."""
    return _redact_json(value) if value and _has_hint(json.dumps(value)) else value


def clean_object(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object without secrets. Raise `MessageTooLarge` if it is too large."""
    if not value:
        return value
    clean: dict[str, Any] = redact_json(value)
    check_size(len(json.dumps(clean)), MAX_OBJECT_BYTES)
    return clean


def clean_label(name: str, label: str) -> str:
    """Return a label unchanged. Raise `InvalidInput` if it looks like a secret: labels are not redacted."""
    if redact(label) != label:
        raise InvalidInput(f"the {name} seems to contain a secret: use another {name}")
    return label


def redact_attachment(part: dict[str, Any]) -> dict[str, Any]:
    """Return an attachment without secrets. The data of an image or a recording stays as it is."""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    is_data = part["type"] == "input_audio" or str(url).startswith("data:")
    clean: dict[str, Any] = part if is_data else redact_json(part)
    return clean


def measure_result(result: Any) -> int:
    """Return the number of characters of a result; 0 if it cannot be written as JSON."""
    try:
        return len(result) if isinstance(result, str) else len(json.dumps(result, default=str))
    except (TypeError, ValueError, RecursionError):
        return 0


def redact_result(result: Any) -> Any:
    """Return the result of a tool as JSON values without secrets; other objects become text."""
    if isinstance(result, str):
        return redact(result)
    try:
        return redact_json(json.loads(json.dumps(result, default=str)))
    except (TypeError, ValueError, RecursionError):
        return redact(str(result))


def redact_step(step: StepBody) -> StepBody:
    """Return the step without secrets. The ids and names of tool calls stay: other steps refer to them."""
    match step:
        case Plan(content, calls):
            return replace(step, content=redact(content), tool_calls=tuple(map(_redact_call, calls)))
        case ToolCall(call_id, name, arguments):
            return ToolCall(call_id, name, _redact_arguments(arguments))
        case ToolResult(content=content, action=None):
            clean_content = redact(content)
            return step if clean_content is content else replace(step, content=clean_content)
    detail = encode_body(step)
    clean_detail = redact_json(detail)
    return step if clean_detail is detail else decode_body(step.type, clean_detail)


def _redact_call(call: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call in OpenAI's form without secrets in its arguments and in a provider's own fields."""
    function = call["function"]
    clean = _redact_extra(function, "name", "arguments")
    clean = clean | {"arguments": _redact_arguments(function["arguments"])}
    return _redact_extra(call, "id", "type", "function") | {"function": clean}


def _redact_extra(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields without secrets. The `known` ones stay as they are."""
    extra = {key: value for key, value in fields.items() if key not in known}
    return fields | redact_json(extra) if extra else fields


def _redact_json(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_item(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_json(item) for item in value]
    return value


def _redact_item(key: str, item: Any) -> Any:
    if _SECRET_KEYS.search(key) and isinstance(item, str | int | float) and item and item is not True:
        return MARK
    if key == "arguments" and isinstance(item, str):
        return _redact_arguments(item)
    return _redact_json(item)


def _redact_arguments(text: str) -> str:
    """Return the arguments of a tool call without secrets: JSON text, which stays valid JSON."""
    if not _has_hint(text) and "\\" not in text:  # JSON may write any letter as an escape
        return text
    try:
        arguments = json.loads(text)
        clean = _redact_json(arguments)
    except (ValueError, RecursionError):
        return redact(text)
    return text if clean == arguments else json.dumps(clean, ensure_ascii=False)
