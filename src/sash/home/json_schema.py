"""Short forms for the JSON schemas of tools."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def object_of(optional: Schema | None = None, **required: Schema) -> Schema:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def time_and(value: Schema) -> Schema:
    """Return the schema of a pair: a time and a value."""
    return {"type": "array", "items": {"anyOf": [TEXT, value]}, "minItems": 2, "maxItems": 2}


def arguments_of(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Return the schema of a tool's arguments: these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def entity_ids(max_items: int) -> Schema:
    return {"type": "array", "items": TEXT, "minItems": 1, "maxItems": max_items}


def positive_integer(maximum: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": maximum}
