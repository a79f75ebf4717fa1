"""Words for JSON schemas: the type, bounds and choices of a value as HTML."""

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

Schema = dict[str, Any]

_BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
_NOT_LETTERS = re.compile(r"\W+")


def describe_type(schema: Schema) -> str:
    """Return the values that a schema allows, in words, as HTML."""
    if "$ref" in schema:
        name = get_reference_name(schema)
        return f'<a href="#{make_anchor("type", name)}">{escape(name)}</a>'
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(describe_type, sorted(choices, key=lambda choice: choice == {"type": "null"})))
    if "const" in schema:
        return render_literal(schema["const"])
    if "enum" in schema:
        return " or ".join(map(render_literal, schema["enum"]))
    bounds = ", ".join(_describe_bounds(schema))
    return f"{_describe_plain_type(schema)} ({bounds})" if bounds else _describe_plain_type(schema)


def _describe_plain_type(schema: Schema) -> str:
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    if fields := schema.get("properties"):
        return f"{{{', '.join(f'{escape(name)}: {describe_type(field)}' for name, field in fields.items())}}}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {describe_type(values)}"
    return " or ".join(map(escape, [kind] if isinstance(kind, str) else kind))


def _describe_bounds(schema: Schema) -> Iterator[str]:
    for low, high, unit in _BOUNDS:
        if low in schema and high in schema:
            yield f"{_format_number(schema[low])} to {_format_number(schema[high])}{unit}"
        elif low in schema:
            yield f"{_format_number(schema[low])} or more{unit}"
        elif high in schema:
            yield f"at most {_format_number(schema[high])}{unit}"
    for key, words in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        if key in schema:
            yield f"{words} {_format_number(schema[key])}"
    for key in ("pattern", "format"):
        if key in schema:
            yield f"{key} <code>{escape(schema[key])}</code>"


def render_literal(value: Any) -> str:
    return f"<code>{escape(json.dumps(value, ensure_ascii=False))}</code>"


def _format_number(value: float) -> str:
    return f"{int(value) if value == int(value) else value:,}"


def get_reference_name(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix("#/components/schemas/")


def make_anchor(*names: str) -> str:
    return _NOT_LETTERS.sub("-", "-".join(names))
