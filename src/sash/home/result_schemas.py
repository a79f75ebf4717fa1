"""What the tools that read a house return, as JSON schemas by the tool's name."""

from typing import Any, get_args

from sash.home.diagnosis import Confidence, Status
from sash.home.incidents import SEVERITIES, TIMEFRAMES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(optional: Schema | None = None, **required: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _pair(second: Schema) -> Schema:
    """Return the schema of a time with what was so then."""
    return {"type": "array", "items": {"anyOf": [_TEXT, second]}, "minItems": 2, "maxItems": 2}


_BRIEF: Schema = {"area": _TEXT, "unit": _TEXT}
_ENTITY = _object(_BRIEF, entity_id=_TEXT, name=_TEXT, state=_TEXT)
_WHOLE_ENTITY = _object(
    {**_BRIEF, "since": _TEXT, "attributes": {"type": "object"}}, entity_id=_TEXT, name=_TEXT, state=_TEXT
)
# How many entities of each domain there are stands beside the area's name.
_AREA: Schema = {
    "type": "object",
    "properties": {"area": _TEXT, "floor": _TEXT},
    "required": ["area"],
    "additionalProperties": _COUNT,
}
_PAST = _object(
    {
        "note": _TEXT,
        "times_unavailable": _COUNT,
        **dict.fromkeys(("min", "max", "mean", "first", "last"), _NUMBER),
        **dict.fromkeys(("unit", "min_at", "max_at", "state"), _TEXT),
        "points": _list(_pair(_NUMBER)),
        "lasted": {"type": "object", "additionalProperties": _TEXT},
        "changes": _COUNT,
        "last_changes": _list(_pair(_TEXT)),
    },
    entity_id=_TEXT,
    name=_TEXT,
)
_DEVICE = _object({"via": _TEXT}, name=_TEXT, manufacturer=_TEXT, model=_TEXT)
_CAUSE = _object(description=_TEXT, confidence={"enum": list(get_args(Confidence))}, evidence=_list(_TEXT))
_IMPACT = _object(
    affected_entities=_list(_TEXT),
    affected_automations=_list(_object({"entity_id": _TEXT}, name=_TEXT, kind=_TEXT)),
)
_INCIDENT = _object(
    severity={"enum": list(SEVERITIES)},
    source=_TEXT,
    message=_TEXT,
    count=_COUNT,
    first_at=_TEXT,
    last_at=_TEXT,
    entities=_list(_TEXT),
)
_CASCADE = _object(at=_TEXT, began_with=_TEXT, followed_by=_list(_TEXT), incidents=_COUNT)

ANSWERS: dict[str, Schema] = {
    # `unmatched` are the words that the first of the entities has not.
    "search_index": _object(
        {"entities": _list(_ENTITY), "areas": _list(_AREA), "unmatched": _list(_TEXT)}, total=_COUNT
    ),
    "get_states": _object({"not_found": _list(_TEXT)}, entities=_list(_WHOLE_ENTITY)),
    "get_history": _object(
        {"plot": _object(artifact=_TEXT, type=_TEXT)},
        **{"from": _TEXT, "to": _TEXT, "entities": _list(_PAST)},
    ),
    "get_logbook": _object(
        entries=_list(_object({"entity_id": _TEXT, "cause": _TEXT}, at=_TEXT, name=_TEXT, message=_TEXT)),
        total=_COUNT,
    ),
    "diagnose_entity": _object(
        entity_id=_TEXT,
        name=_TEXT,
        status={"enum": list(get_args(Status))},
        current_state=_TEXT,
        last_changed=_TEXT_OR_NONE,
        device={"anyOf": [_DEVICE, {"type": "null"}]},
        area=_TEXT_OR_NONE,
        root_causes=_list(_CAUSE),
        impact=_IMPACT,
        recommendations=_list(_TEXT),
    ),
    "analyze_errors": _object(
        timeframe={"enum": list(TIMEFRAMES)},
        severity={"enum": list(SEVERITIES)},
        total_incidents=_COUNT,
        incidents=_list(_INCIDENT),
        cascades=_list(_CASCADE),
        recommendations=_list(_TEXT),
    ),
}
