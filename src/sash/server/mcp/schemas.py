"""JSON schemas of dataclasses for clients that read them to a model: short, and without references."""

from typing import Any

from sash.values.codec import adapter

# What says nothing to who calls.
_NOISE = frozenset({"title", "examples"})
_NULL = {"type": "null"}


def input_schema(kind: type[Any], described: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the schema of arguments; one that may be null is one that may be left out."""
    schema = _schema(kind, "validation")
    schema.pop("description", None)
    for name, text in (described or {}).items():
        if name in schema["properties"]:
            schema["properties"][name]["description"] = text
    return schema


def output_schema(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a result, as it is written."""
    return _schema(kind, "serialization")


def _schema(kind: type[Any], mode: Any) -> dict[str, Any]:
    full = adapter(kind).json_schema(mode=mode)
    plain: dict[str, Any] = _plain(full, full.pop("$defs", {}), mode == "validation")
    return plain


def _plain(node: Any, parts: dict[str, Any], is_input: bool) -> Any:
    """Put the parts where they are referred to, and leave the noise out."""
    if isinstance(node, list):
        return [_plain(item, parts, is_input) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        part = parts[node["$ref"].rpartition("/")[2]]
        return _plain({**part, **{key: node[key] for key in node if key != "$ref"}}, parts, is_input)
    if is_input and node.get("default", ...) is None and _NULL in node.get("anyOf", ()):
        return _plain(_without_null(node), parts, is_input)
    return {
        key: {name: _plain(one, parts, is_input) for name, one in value.items()}
        if key == "properties"
        else _plain(value, parts, is_input)
        for key, value in node.items()
        if key not in _NOISE
    }


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of what may be null, for when it is there."""
    others = [one for one in node["anyOf"] if one != _NULL]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}
