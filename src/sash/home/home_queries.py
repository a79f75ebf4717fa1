"""The tools that read the home. Each decorated method of `HomeQueries` is one tool.

To add a tool, add a method: the decorator holds its description, its arguments and its result schema.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, get_args

from sash.errors import EntityNotFound, InvalidInput
from sash.home.diagnosis import Confidence, Status, diagnose_entity
from sash.home.history import summarize_history
from sash.home.history_analysis import DEFAULT_HOURS, DESCRIPTION, MAX_ENTITIES, Analysis, describe_analysis
from sash.home.history_analysis import MAX_HOURS as MAX_ANALYSED_HOURS
from sash.home.incidents import SEVERITIES, TIMEFRAMES, analyze_incidents
from sash.home.index import HomeIndex
from sash.home.json_schema import (
    COUNT,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    Schema,
    arguments_of,
    array_of,
    entity_ids,
    object_of,
    positive_integer,
    time_and,
)
from sash.home.live_home import LiveHome
from sash.home.query_sandbox import MAX_SQL_CHARS
from sash.home.service_call import parse_service_call
from sash.home.service_list import describe_services
from sash.home.state_text import read_state_text
from sash.ports.home import Entity, HistoryPoint, LogbookEntry, Service
from sash.ports.tools import ToolContext
from sash.values.clock import Clock
from sash.values.state_words import name_on_off

MAX_SEARCH_RESULTS = 50
DEFAULT_SEARCH_RESULTS = 10
MAX_STATES = 50
MAX_HISTORIES = 8
MAX_HOURS = 24 * 7
MAX_LOGBOOK_ENTRIES = 100
DEFAULT_LOGBOOK_ENTRIES = 20
# The attributes that a user may ask for. The others are technical.
SHOWN_ATTRIBUTES = (
    "brightness",
    "color_temp_kelvin",
    "rgb_color",
    "current_temperature",
    "temperature",
    "target_temp_low",
    "target_temp_high",
    "hvac_action",
    "hvac_modes",
    "humidity",
    "current_position",
    "percentage",
    "preset_mode",
    "fan_mode",
    "volume_level",
    "is_volume_muted",
    "source",
    "source_list",
    "media_title",
    "media_artist",
    "battery_level",
    "last_triggered",
    "wind_speed",
    "forecast",
    "options",
    "device_class",
)
MAX_VALUE_CHARS = 300

_ARTIFACT: Schema = object_of(artifact=TEXT, type=TEXT)
# A scene or a button has no state.
_PLACE_AND_STATE: Schema = {"area": TEXT, "state": TEXT, "unit": TEXT}
Query = Callable[["HomeQueries", dict[str, Any], ToolContext], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class QueryTool:
    """A tool that reads the home. The function is a method of `HomeQueries`.

    A tool with `keeps_artifacts` may store a picture or a table.
    """

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    function: Query
    keeps_artifacts: bool = False


QUERY_TOOLS: dict[str, QueryTool] = {}


def _query_tool(
    description: str, arguments: Schema, result: Schema, *, keeps_artifacts: bool = False
) -> Callable[[Query], Query]:
    """Return a decorator that registers a method of `HomeQueries` as the tool of the same name."""

    def register(function: Query) -> Query:
        name = function.__name__
        QUERY_TOOLS[name] = QueryTool(name, description, arguments, result, function, keeps_artifacts)
        return function

    return register


class HomeQueries:
    """The tools that read the home. Every method returns JSON values."""

    def __init__(self, live_home: LiveHome, clock: Clock, zone: tzinfo | None = None) -> None:
        self._live_home = live_home
        self._clock = clock
        self._zone = zone

    @_query_tool(
        "Find entities and their states by words, area, domain or state; typing mistakes do not matter. Use "
        "it if you do not know an entity id. Without arguments it lists the areas.",
        arguments_of(
            query={"type": "string", "description": "Words of a name, an alias, an area, a kind of device."},
            area={"type": "string", "description": "Name or id of an area."},
            state={"type": "string", "description": "Only entities in this state: on, open, unavailable, …"},
            domain={"type": "string", "description": "light, sensor, cover, …"},
            limit=positive_integer(MAX_SEARCH_RESULTS),
        ),
        object_of(
            {
                "entities": array_of(object_of(_PLACE_AND_STATE, entity_id=TEXT, name=TEXT)),
                # The other properties are the number of entities by domain.
                "areas": array_of(
                    {
                        "type": "object",
                        "properties": {"area": TEXT, "floor": TEXT},
                        "required": ["area"],
                        "additionalProperties": COUNT,
                    }
                ),
                # The words of the query that the first entity does not match.
                "unmatched": array_of(TEXT),
            },
            total=COUNT,
        ),
    )
    async def search_index(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        index = self._live_home.index
        query, area = arguments.get("query", ""), arguments.get("area")
        if not query.strip() and arguments.keys() <= {"query", "limit"}:
            return {"areas": _describe_areas(index), "total": len(index.entities)}
        found, total = index.search(
            query,
            domain=arguments.get("domain"),
            area_id=index.find_area(area).id if area else None,
            state=arguments.get("state"),
            limit=arguments.get("limit", DEFAULT_SEARCH_RESULTS),
        )
        result = {"entities": [_describe_entity(index, entity) for entity in found], "total": total}
        unmatched = index.find_unmatched_words(query, found[0].id) if found else []
        return result | ({"unmatched": unmatched} if unmatched else {})

    @_query_tool(
        "Read the present states of entities, with their attributes and the time of the last change. For the "
        "past use get_history.",
        arguments_of(("entity_ids",), entity_ids=entity_ids(MAX_STATES)),
        object_of(
            {"not_found": array_of(TEXT)},
            entities=array_of(
                object_of(
                    {**_PLACE_AND_STATE, "since": TEXT, "attributes": {"type": "object"}},
                    entity_id=TEXT,
                    name=TEXT,
                )
            ),
        ),
    )
    async def get_states(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        index, entities, not_found = self._live_home.index, [], []
        for name in arguments["entity_ids"]:
            try:
                entities.append(self._describe_with_attributes(index, index.find(name)))
            except EntityNotFound as error:
                not_found.append(error.message)
        return {"entities": entities} | ({"not_found": not_found} if not_found else {})

    @_query_tool(
        "Read how entities changed: minimum, maximum, mean and course of numbers; for other states, how long "
        "each lasted and when it changed. For sums use analyze_history, for who did it get_logbook.",
        arguments_of(
            ("entity_ids",),
            entity_ids=entity_ids(MAX_HISTORIES),
            hours=positive_integer(MAX_HOURS),
            until={"type": "string", "description": "The end as an ISO time; the default is now."},
            plot={"type": "boolean", "description": "Also draw the history for the user, as a picture."},
        ),
        object_of(
            {"plot": _ARTIFACT},
            **{
                "from": TEXT,
                "to": TEXT,
                "entities": array_of(
                    object_of(
                        {
                            "note": TEXT,
                            "times_unavailable": COUNT,
                            **dict.fromkeys(("min", "max", "mean", "first", "last"), NUMBER),
                            **dict.fromkeys(("unit", "min_at", "max_at", "state"), TEXT),
                            "points": array_of(time_and(NUMBER)),
                            "lasted": {"type": "object", "additionalProperties": TEXT},
                            "changes": COUNT,
                            "last_changes": array_of(time_and(TEXT)),
                        },
                        entity_id=TEXT,
                        name=TEXT,
                    )
                ),
            },
        ),
        keeps_artifacts=True,
    )
    async def get_history(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        index = self._live_home.index
        entities = [index.find(name) for name in dict.fromkeys(arguments["entity_ids"])]
        end = self._parse_end(arguments.get("until"))
        start = end - timedelta(hours=arguments.get("hours", 24))
        histories = await self._live_home.home.get_history([e.id for e in entities], start, end)
        units = {e.id: s.unit for e in entities if (s := index.states.get(e.id))}
        result: dict[str, Any] = {
            "from": start.astimezone(self._zone).isoformat(timespec="minutes"),
            "to": end.astimezone(self._zone).isoformat(timespec="minutes"),
            "entities": [
                {"entity_id": e.id, "name": e.name}
                | summarize_history(
                    _name_states(index, e, histories.get(e.id, [])),
                    start,
                    end,
                    units.get(e.id, ""),
                    self._zone,
                )
                for e in entities
            ],
        }
        if arguments.get("plot") and any(histories.values()):
            # Pillow is an optional dependency.
            from sash.home.history_plot import draw_history

            counts = Counter(e.name for e in entities)
            names = {e.id: e.name if counts[e.name] == 1 else f"{e.name} ({e.id})" for e in entities}
            named = {names[e.id]: histories.get(e.id, []) for e in entities}
            named_units = {names[e.id]: units.get(e.id, "") for e in entities}
            image = await asyncio.to_thread(draw_history, named, named_units, start, end, self._zone)
            ref = await context.keep(image, "image/png", "history.png")
            result["plot"] = {"artifact": ref.id, "type": ref.type}
        return result

    @_query_tool(
        DESCRIPTION,
        arguments_of(
            ("entity_ids", "sql"),
            entity_ids=entity_ids(MAX_ENTITIES),
            sql={"type": "string", "maxLength": MAX_SQL_CHARS},
            hours=positive_integer(MAX_ANALYSED_HOURS),
            plot={"type": "boolean", "description": "Also draw the numbers over the first column of times."},
        ),
        object_of(
            {"artifact": _ARTIFACT, "plot": _ARTIFACT, "note": TEXT},
            **{
                "from": TEXT,
                "to": TEXT,
                "entities": array_of(object_of(entity_id=TEXT, name=TEXT)),
                "columns": array_of(TEXT),
                "rows": array_of({"type": "array"}),
                "total": COUNT,
            },
        ),
        keeps_artifacts=True,
    )
    async def analyze_history(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        index, end = self._live_home.index, self._clock.now()
        entities = [index.find(name) for name in dict.fromkeys(arguments["entity_ids"])]
        hours = arguments.get("hours", DEFAULT_HOURS)
        # A span begins with a full hour, so that it has whole hours of statistics.
        start = (end - timedelta(hours=hours)).replace(minute=0, second=0, microsecond=0)
        analysis = Analysis(entities, arguments["sql"], start, end, self._zone)
        context.progress("Analysing the history")
        found = await analysis.run(self._live_home)
        return await describe_analysis(analysis, found, context, plot=arguments.get("plot", False))

    @_query_tool(
        "Read what happened in the home or to some entities, when, and who or what caused it. For values use "
        "get_history.",
        arguments_of(
            entity_ids=entity_ids(MAX_STATES),
            hours=positive_integer(MAX_HOURS),
            limit=positive_integer(MAX_LOGBOOK_ENTRIES),
        ),
        object_of(
            entries=array_of(object_of({"entity_id": TEXT, "cause": TEXT}, at=TEXT, name=TEXT, message=TEXT)),
            total=COUNT,
        ),
    )
    async def get_logbook(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        index = self._live_home.index
        wanted = [index.find(name).id for name in arguments.get("entity_ids") or ()]
        end = self._clock.now()
        start = end - timedelta(hours=arguments.get("hours", 24))
        entries = await self._live_home.home.get_logbook(start, end, wanted)
        exposed = [entry for entry in entries if entry.entity_id is None or entry.entity_id in index.entities]
        lines = []
        for entry in exposed[-arguments.get("limit", DEFAULT_LOGBOOK_ENTRIES) :]:
            line = {
                "at": entry.at.astimezone(self._zone).isoformat(timespec="seconds"),
                "name": entry.name,
                "message": index.redact(entry.message),
            }
            if entry.entity_id:
                line["entity_id"] = entry.entity_id
            if cause := _describe_cause(index, entry):
                line["cause"] = cause
            lines.append(line)
        return {"entries": lines, "total": len(exposed)}

    @_query_tool(
        "Find out why an entity does not work: likely causes with evidence, what else is affected, and what "
        "to do. For its state use get_states.",
        arguments_of(("entity_id",), entity_id={"type": "string"}),
        object_of(
            entity_id=TEXT,
            name=TEXT,
            status={"enum": list(get_args(Status))},
            current_state=TEXT,
            last_changed=TEXT_OR_NULL,
            device={
                "anyOf": [
                    object_of({"via": TEXT}, name=TEXT, manufacturer=TEXT, model=TEXT),
                    {"type": "null"},
                ]
            },
            area=TEXT_OR_NULL,
            root_causes=array_of(
                object_of(
                    description=TEXT,
                    confidence={"enum": list(get_args(Confidence))},
                    evidence=array_of(TEXT),
                )
            ),
            impact=object_of(
                affected_entities=array_of(TEXT),
                affected_automations=array_of(object_of({"entity_id": TEXT}, name=TEXT, kind=TEXT)),
            ),
            recommendations=array_of(TEXT),
        ),
    )
    async def diagnose_entity(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        context.progress("Gathering history, logs and related entities")
        return await diagnose_entity(self._live_home, arguments["entity_id"], self._clock.now(), self._zone)

    @_query_tool(
        "Summarize recent problems of the whole home: incidents, which caused which, and what to do. For one "
        "entity use diagnose_entity.",
        arguments_of(
            timeframe={"enum": list(TIMEFRAMES)},
            severity={"enum": list(SEVERITIES), "description": "The minimum severity to report."},
        ),
        object_of(
            timeframe={"enum": list(TIMEFRAMES)},
            severity={"enum": list(SEVERITIES)},
            total_incidents=COUNT,
            incidents=array_of(
                object_of(
                    severity={"enum": list(SEVERITIES)},
                    source=TEXT,
                    message=TEXT,
                    count=COUNT,
                    first_at=TEXT,
                    last_at=TEXT,
                    entities=array_of(TEXT),
                )
            ),
            cascades=array_of(
                object_of(at=TEXT, began_with=TEXT, followed_by=array_of(TEXT), incidents=COUNT)
            ),
            recommendations=array_of(TEXT),
        ),
    )
    async def analyze_errors(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        context.progress("Reading the log of the home")
        timeframe, severity = arguments.get("timeframe", "24h"), arguments.get("severity", "warning")
        return await analyze_incidents(self._live_home, timeframe, severity, self._clock.now(), self._zone)

    @_query_tool(
        "List the services of a domain with their arguments. Use it if you are not sure what call_service or "
        "query_service takes.",
        arguments_of(("domain",), domain={"type": "string", "description": "light, vacuum, media_player, …"}),
        object_of(
            services=array_of(
                object_of(
                    {"description": TEXT, "arguments": {"type": "object"}, "note": TEXT},
                    service=TEXT,
                    takes_entities={"type": "boolean"},
                )
            ),
            total=COUNT,
        ),
    )
    async def list_services(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return describe_services(self._live_home.index, self._live_home.services, arguments["domain"])

    @_query_tool(
        "Ask a service or script that only answers, for forecasts, calendars and lists. A script takes no "
        "entity_ids. To change something use call_service.",
        arguments_of(
            ("service",),
            service={"type": "string", "description": "weather.get_forecasts, calendar.get_events, …"},
            entity_ids=entity_ids(MAX_HISTORIES),
            data={"type": "object", "description": 'Arguments of the service: {"type": "daily"}.'},
        ),
        object_of(service=TEXT, response={"type": "object"}),
    )
    async def query_service(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Call a service that only returns data about exposed entities, or a script of such services."""
        call = parse_service_call(arguments, self._live_home.index, self._list_answering_services())
        response = await self._live_home.home.call_service(
            call.service,
            call.data,
            call.entity_ids,
            caller=context.caller,
            turn_id=context.continuation_id,
            return_response=True,
        )
        return {"service": call.service, "response": response or {}}

    def _list_answering_services(self) -> dict[str, Service]:
        services, index = self._live_home.services, self._live_home.index
        # A service without a target, such as recorder.get_statistics, could read entities that are hidden.
        answering = {
            name: service
            for name, service in services.items()
            if service.response == "only" and service.target is not None
        }
        scripts = {
            name: service
            for name, service in services.items()
            if service.response == "optional"
            and name.startswith("script.")
            and name in index.entities
            and index.list_contents(name)[1] <= answering.keys()
        }
        return answering | scripts

    def _describe_with_attributes(self, index: HomeIndex, entity: Entity) -> dict[str, Any]:
        description = _describe_entity(index, entity)
        if (state := index.states.get(entity.id)) is None:
            return description
        description["since"] = state.changed_at.astimezone(self._zone).isoformat(timespec="seconds")
        attributes = {
            name: value
            for name in SHOWN_ATTRIBUTES
            if (value := state.attributes.get(name)) is not None and len(str(value)) <= MAX_VALUE_CHARS
        }
        return description | ({"attributes": attributes} if attributes else {})

    def _parse_end(self, text: str | None) -> datetime:
        """Return the time in an ISO text, at most now. None is now. Raise `InvalidInput` for another text."""
        now = self._clock.now()
        if text is None:
            return now
        try:
            at = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInput(f"until must be a time such as 2026-01-31T18:00, not {text!r:.40}") from error
        if not 1970 < at.year < 3000:
            raise InvalidInput(f"until must be in the years 1971 to 2999, got the year {at.year}")
        at = at.astimezone() if at.tzinfo is None and self._zone is None else at
        return min(at.replace(tzinfo=self._zone) if at.tzinfo is None else at, now)


def _describe_cause(index: HomeIndex, entry: LogbookEntry) -> str:
    """Return the cause of an entry. Only the user is told of a cause that is not exposed."""
    if entry.cause_id is None or entry.cause_id in index.entities:
        return index.redact(entry.cause)
    return f"by {entry.user}" if entry.user else ""


def _name_states(index: HomeIndex, entity: Entity, points: list[HistoryPoint]) -> list[HistoryPoint]:
    """Return a history with on and off in the words of the device class, such as open and closed."""
    device_class = index.get_device_class(entity.id)
    if name_on_off("on", entity.domain, device_class) == "on":
        return points
    return [replace(point, state=name_on_off(point.state, entity.domain, device_class)) for point in points]


def _describe_areas(index: HomeIndex) -> list[dict[str, Any]]:
    """Return each area that has entities, with the number of entities by domain."""
    areas = []
    for area in index.areas.values():
        counts = Counter(entity.domain for entity in index.list_area_entities(area.id))
        floor = index.floors.get(area.floor_id) if area.floor_id else None
        if counts:
            areas.append({"area": area.name} | ({"floor": floor.name} if floor else {}) | dict(counts))
    return areas


def _describe_entity(index: HomeIndex, entity: Entity) -> dict[str, Any]:
    area = index.get_area(entity)
    description = {"entity_id": entity.id, "name": entity.name}
    if area is not None:
        description["area"] = area.name
    shown = read_state_text(index, entity.id)
    return description | {key: text for key, text in (("state", shown.text), ("unit", shown.unit)) if text}
