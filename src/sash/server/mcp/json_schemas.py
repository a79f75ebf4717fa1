"""JSON schemas of dataclasses for models: short, and without references."""

from typing import Any

from sash.values.bounds import MAX_COUNT
from sash.values.codec import adapter

# Keys that cost tokens and do not help a model.
_OMITTED_KEYS = frozenset({"title", "examples"})
# Keys that do not help a client to read a result. Some clients refuse lists of tools above 64 kB.
_OMITTED_IN_OUTPUT = _OMITTED_KEYS | {
    *("default", "description", "minimum", "maximum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "pattern", "format"),
}
# The fields of a result and the fields of these are described. All fields would be ten kilobytes more.
_OUTPUT_DEPTH = 2
# A maximum without a meaning: almost every number has it.
_NO_MAXIMUM = ("maximum", MAX_COUNT)
_NULL = {"type": "null"}


def make_input_schema(kind: type[Any], descriptions: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the schema of a tool's arguments. A field with the default null becomes an optional field."""
    schema = _make_schema(kind, "validation")
    schema.pop("description", None)
    for name, text in (descriptions or {}).items():
        if name in schema["properties"]:
            schema["properties"][name]["description"] = text
    return schema


def make_output_schema(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a tool's result. Values deep inside have a type, but no fields."""
    outline: dict[str, Any] = _outline(_make_schema(kind, "serialization"), _OUTPUT_DEPTH)
    return outline


def _make_schema(kind: type[Any], mode: Any) -> dict[str, Any]:
    schema = adapter(kind).json_schema(mode=mode)
    resolved: dict[str, Any] = _resolve(schema, schema.pop("$defs", {}), mode == "validation")
    return resolved


def _resolve(node: Any, definitions: dict[str, Any], is_input: bool) -> Any:
    """Return a schema with references replaced by their definitions, without keys that models ignore."""
    if isinstance(node, list):
        return [_resolve(item, definitions, is_input) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        definition = definitions[node["$ref"].rpartition("/")[2]]
        merged = {**definition, **{key: node[key] for key in node if key != "$ref"}}
        return _resolve(merged, definitions, is_input)
    if is_input and node.get("default", ...) is None and _NULL in node.get("anyOf", ()):
        return _resolve(_remove_null(node), definitions, is_input)
    return {
        key: {name: _resolve(field, definitions, is_input) for name, field in value.items()}
        if key == "properties"
        else _resolve(value, definitions, is_input)
        for key, value in node.items()
        if key not in (_OMITTED_KEYS if is_input else _OMITTED_IN_OUTPUT) and (key, value) != _NO_MAXIMUM
    }


def _outline(node: Any, depth: int) -> Any:
    """Return a schema without the fields of objects that are more than `depth` objects inside of it."""
    if isinstance(node, list):
        return [_outline(item, depth) for item in node]
    if not isinstance(node, dict):
        return node
    if "oneOf" in node or (depth == 0 and node.get("type") == "object"):
        return {"type": "object"}
    return {
        key: {name: _outline(field, depth - 1) for name, field in value.items()}
        if key == "properties"
        else _outline(value, depth)
        for key, value in node.items()
    }


def _remove_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a nullable value without null and without the default."""
    others = [choice for choice in node["anyOf"] if choice != _NULL]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}
