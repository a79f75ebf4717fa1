"""JSON schemas from Home Assistant's schemas: for the arguments of tools, and for structured answers."""

from collections.abc import Callable
from typing import Any

import fastjsonschema
import probatio
from homeassistant.helpers import llm

from sash.errors import InvalidInput

# Keywords that OpenAI refuses at the top of a tool's schema.
_NOT_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf")
# Keywords that strict structured output refuses.
_NOT_STRICT = frozenset({"default", "examples", "uniqueItems", "format"})

type Serializer = Callable[[Any], Any]


def make_json_schema(schema: Any, serializer: Serializer | None = None) -> dict[str, Any]:
    """Return the JSON schema of one of Home Assistant's schemas."""
    made: dict[str, Any] = probatio.to_openapi(
        schema, custom_serializer=serializer or llm.selector_serializer, openapi_version="3.1.0"
    )
    return made


def make_input_schema(parameters: Any, serializer: Serializer | None = None) -> dict[str, Any]:
    """Return the schema of a tool's arguments, for our own check and for a model.

    Home Assistant checks the arguments again. Its formats are wider than those of JSON schema, so `format` is
    a part of the description. Raise `InvalidInput` if the arguments are not an object.
    """
    schema = _describe_formats(make_json_schema(parameters, serializer))
    schema = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    if schema.get("type", "object") != "object":
        raise InvalidInput(f"its arguments are of type {schema['type']}, not an object")
    return {"type": "object", "properties": {}, **schema}


def _describe_formats(schema: dict[str, Any]) -> dict[str, Any]:
    described = {key: value for key, value in schema.items() if key != "format"}
    if isinstance(form := schema.get("format"), str):
        described["description"] = " ".join(filter(None, (schema.get("description"), f"({form})")))
    return _map_schemas(described, _describe_formats)


def make_response_format(name: str, structure: Any, serializer: Serializer | None = None) -> dict[str, Any]:
    """Return the option `response_format` for an answer that has a structure.

    A strict format makes the model write every field, and null for an optional one. A structure with free
    objects cannot be strict.
    """
    schema = make_json_schema(structure, serializer)
    is_strict = _is_closed(schema)
    if is_strict:
        schema = _make_strict(schema)
    named = {"name": name, "schema": schema, "strict": is_strict}
    return {"type": "json_schema", "json_schema": named}


def find_mismatch(response_format: dict[str, Any], data: Any) -> str | None:
    """Return why data does not fit a response format, or None if it does."""
    try:
        fastjsonschema.validate(response_format["json_schema"]["schema"], data, use_formats=False)
    except fastjsonschema.JsonSchemaValueException as error:
        return str(error.message)
    return None


def _is_closed(schema: dict[str, Any]) -> bool:
    """Return True if a schema names all fields of its objects, and the types of all values."""
    nested = [*schema.get("properties", {}).values()]
    nested += [schema["items"]] if isinstance(schema.get("items"), dict) else []
    nested += [variant for key in _LISTS_OF_SCHEMAS for variant in schema.get(key, ())]
    if "object" in _get_types(schema) and (
        "properties" not in schema or schema.get("additionalProperties", False) is not False
    ):
        return False
    if "array" in _get_types(schema) and not isinstance(schema.get("items"), dict):
        return False
    has_type = bool(schema.keys() & {"type", "enum", "const", "anyOf"})
    return has_type and not schema.keys() & {"oneOf", "allOf", "not"} and all(map(_is_closed, nested))


def _make_strict(schema: dict[str, Any]) -> dict[str, Any]:
    strict = {key: value for key, value in schema.items() if key not in _NOT_STRICT}
    strict = _map_schemas(strict, _make_strict)
    if "object" in _get_types(strict):
        required = strict.get("required", ())
        strict["properties"] = {
            key: field if key in required else {"anyOf": [field, {"type": "null"}]}
            for key, field in strict["properties"].items()
        }
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict


def _map_schemas(
    schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Return a schema whose nested schemas are changed."""
    mapped = dict(schema)
    if isinstance(fields := schema.get("properties"), dict):
        mapped["properties"] = {key: change(field) for key, field in fields.items()}
    if isinstance(items := schema.get("items"), dict):
        mapped["items"] = change(items)
    for key in _LISTS_OF_SCHEMAS:
        if key in schema:
            mapped[key] = [change(variant) for variant in schema[key]]
    return mapped


def _get_types(schema: dict[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)
