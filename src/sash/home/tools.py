"""The tools by which an agent knows the house and acts in it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sash.errors import EntityNotFound, InvalidInput
from sash.home.actions import Actions
from sash.home.diagnosis import diagnose
from sash.home.history import summarize
from sash.home.incidents import SEVERITIES, TIMEFRAMES, analyze
from sash.home.index import Index
from sash.home.live import LiveHome
from sash.home.plot import plot
from sash.home.result_schemas import ANSWERS
from sash.home.service_call import MAX_ENTITIES
from sash.home.undo import Undo
from sash.ports.home import Entity, LogbookEntry
from sash.ports.tools import ToolContext, ToolSpec
from sash.values.clock import Clock

MAX_FOUND = 50
FOUND = 10
MAX_STATES = 50
MAX_HISTORIES = 8
MAX_HOURS = 24 * 7
MAX_LINES = 100
# What an entity's attributes tell beside its state; the rest is for programs.
TELLING = (
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
LONGEST_VALUE = 300


class HomeTools:
    """The house, as an agent asks it: each method is a tool, and can be called as well."""

    def __init__(self, known: LiveHome, clock: Clock, zone: tzinfo | None = None) -> None:
        self._known = known
        self._clock = clock
        self._zone = zone

    async def search_index(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Find entities by words, area and domain; asked for nothing in particular it shows the areas."""
        index = self._known.index
        query, domain = arguments.get("query", ""), arguments.get("domain")
        called = arguments.get("area")
        if not query.strip() and arguments.keys() <= {"query", "limit"}:
            return {"areas": self._areas(index), "total": len(index.entities)}
        area_id = index.find_area(called).id if called else None
        most = arguments.get("limit", FOUND)
        state = arguments.get("state")
        found, total = index.search(query, domain=domain, area_id=area_id, state=state, most=most)
        result = {"entities": [self._brief(index, entity) for entity in found], "total": total}
        unmatched = index.unmatched(query, found[0].id) if found else []
        return result | ({"unmatched": unmatched} if unmatched else {})

    async def get_states(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say what entities are just now, with what matters of their attributes."""
        index, entities, unknown = self._known.index, [], []
        for called in arguments["entity_ids"]:
            try:
                entities.append(self._whole(index, index.find(called)))
            except EntityNotFound as error:
                unknown.append(error.message)
        return {"entities": entities} | ({"not_found": unknown} if unknown else {})

    async def get_history(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say how entities were over some time, and draw it if that is wanted."""
        index = self._known.index
        entities = [index.find(called) for called in dict.fromkeys(arguments["entity_ids"])]
        end = self._until(arguments.get("until"))
        start = end - timedelta(hours=arguments.get("hours", 24))
        history = await self._known.home.history([e.id for e in entities], start, end)
        units = {e.id: s.unit for e in entities if (s := index.states.get(e.id))}
        result: dict[str, Any] = {
            "from": start.astimezone(self._zone).isoformat(timespec="minutes"),
            "to": end.astimezone(self._zone).isoformat(timespec="minutes"),
            "entities": [
                {"entity_id": e.id, "name": e.name}
                | summarize(history.get(e.id, []), start, end, units.get(e.id, ""), self._zone)
                for e in entities
            ],
        }
        if arguments.get("plot") and any(history.values()):
            twice = Counter(e.name for e in entities)
            names = {e.id: e.name if twice[e.name] == 1 else f"{e.name} ({e.id})" for e in entities}
            named = {names[e.id]: history.get(e.id, []) for e in entities}
            named_units = {names[e.id]: units.get(e.id, "") for e in entities}
            picture = await asyncio.to_thread(plot, named, named_units, start, end, self._zone)
            ref = await context.keep(picture, "image/png", "history.png")
            result["plot"] = {"artifact": ref.id, "type": ref.type}
        return result

    async def get_logbook(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say what happened, newest last."""
        index = self._known.index
        wanted = [index.find(called).id for called in arguments.get("entity_ids") or ()]
        end = self._clock.now()
        start = end - timedelta(hours=arguments.get("hours", 24))
        entries = await self._known.home.logbook(start, end, wanted)
        shown = [entry for entry in entries if entry.entity_id is None or entry.entity_id in index.entities]
        lines = [
            {
                "at": entry.at.astimezone(self._zone).isoformat(timespec="seconds"),
                "name": entry.name,
                "message": index.hide(entry.message),
            }
            | ({"entity_id": entry.entity_id} if entry.entity_id else {})
            | ({"cause": index.hide(entry.cause)} if _is_told(index, entry) else {})
            for entry in shown[-arguments.get("limit", FOUND * 2) :]
        ]
        return {"entries": lines, "total": len(shown)}

    async def diagnose_entity(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say what is wrong with an entity."""
        context.progress("Gathering history, logs and related entities")
        return await diagnose(self._known, arguments["entity_id"], self._clock.now(), self._zone)

    async def analyze_errors(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say what went wrong in the house."""
        context.progress("Reading the house's log")
        timeframe, severity = arguments.get("timeframe", "24h"), arguments.get("severity", "warning")
        return await analyze(self._known, timeframe, severity, self._clock.now(), self._zone)

    def _areas(self, index: Index) -> list[dict[str, Any]]:
        areas = []
        for area in index.areas.values():
            kinds = Counter(entity.domain for entity in index.in_area(area.id))
            floor = index.floors.get(area.floor_id) if area.floor_id else None
            if kinds:
                areas.append({"area": area.name} | ({"floor": floor.name} if floor else {}) | dict(kinds))
        return areas

    def _brief(self, index: Index, entity: Entity) -> dict[str, Any]:
        state, area = index.states.get(entity.id), index.area(entity)
        brief = {"entity_id": entity.id, "name": entity.name}
        if area is not None:
            brief["area"] = area.name
        brief["state"] = index.state(entity.id)
        return brief | ({"unit": state.unit} if state and state.unit else {})

    def _whole(self, index: Index, entity: Entity) -> dict[str, Any]:
        whole = self._brief(index, entity)
        if (state := index.states.get(entity.id)) is None:
            return whole
        whole["since"] = state.changed_at.astimezone(self._zone).isoformat(timespec="seconds")
        known = {name: state.attributes[name] for name in TELLING if state.attributes.get(name) is not None}
        shown = {name: value for name, value in known.items() if len(str(value)) <= LONGEST_VALUE}
        return whole | ({"attributes": shown} if shown else {})

    def _until(self, text: str | None) -> datetime:
        now = self._clock.now()
        if text is None:
            return now
        try:
            at = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInput(f"until must be a time such as 2026-01-31T18:00, not {text!r:.40}") from error
        if not 1970 < at.year < 3000:
            raise InvalidInput(f"nothing is known of the year {at.year}")
        at = at.astimezone() if at.tzinfo is None and self._zone is None else at
        return min(at.replace(tzinfo=self._zone) if at.tzinfo is None else at, now)


def home_tools(known: LiveHome, clock: Clock, zone: tzinfo | None = None) -> Iterator[ToolSpec]:
    """Return the tools of a house."""
    tools, actions = HomeTools(known, clock, zone), Actions(known)
    undo = Undo(actions)

    def reading(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
        takes, gives = _schema(required, **properties), ANSWERS[name]
        return ToolSpec(
            name, description, takes, getattr(tools, name), gives, safety="idempotent", direct=True
        )

    yield reading(
        "search_index",
        "Find entities and their states by words, area or domain; typing mistakes do not matter. Use it when "
        "you do not know the id of what the user speaks of. Without arguments it lists the areas.",
        query={"type": "string", "description": "Words of a name, an alias, an area, a kind of device."},
        area={"type": "string", "description": "Name or id of an area."},
        state={"type": "string", "description": "Only those in this state: on, open, unavailable, …"},
        domain={"type": "string", "description": "light, sensor, cover, …"},
        limit=_whole_number(MAX_FOUND),
    )
    yield reading(
        "get_states",
        "Read the present states of entities, with their attributes and since when they are so.",
        ("entity_ids",),
        entity_ids=_ids(MAX_STATES),
    )
    yield reading(
        "get_history",
        "Read how entities were over time: least, greatest, mean and course of numbers; how long each other "
        "state lasted and when it changed.",
        ("entity_ids",),
        entity_ids=_ids(MAX_HISTORIES),
        hours=_whole_number(MAX_HOURS),
        until={"type": "string", "description": "The end, as an ISO time; now if it is left out."},
        plot={"type": "boolean", "description": "Also draw it for the user, as a picture."},
    )
    yield reading(
        "get_logbook",
        "Read what happened in the house or to some entities, and what made it happen.",
        entity_ids=_ids(MAX_STATES),
        hours=_whole_number(MAX_HOURS),
        limit=_whole_number(MAX_LINES),
    )
    yield reading(
        "diagnose_entity",
        "Find out why an entity does not work as it should: likely causes with their evidence, what else is "
        "affected, and what to do.",
        ("entity_id",),
        entity_id={"type": "string"},
    )
    yield reading(
        "analyze_errors",
        "Sum up what went wrong in the house lately: incidents, which of them came of which, and what to do.",
        timeframe={"enum": list(TIMEFRAMES)},
        severity={"enum": list(SEVERITIES), "description": "The least to report."},
    )
    yield ToolSpec(
        "call_service",
        "Change something in the house, only when the user asks for it. The state is read back afterwards: "
        "tell the user what the result says, also if it was refused or not verified.",
        _schema(
            ("service",),
            service={"type": "string", "description": "light.turn_on, cover.open_cover, …"},
            entity_ids=_ids(MAX_ENTITIES),
            areas={
                "type": "array",
                "items": {"type": "string"},
                "description": "Instead of entity_ids: all in these areas that the service can be done to.",
            },
            data={"type": "object", "description": 'What else the service takes: {"brightness_pct": 40}.'},
        ),
        actions.call,
        safety="verify",
        action=True,
        verify=actions.verify,
        uses=actions.uses,
        preview=actions.preview,
    )
    yield ToolSpec(
        "undo_last_action",
        "Bring back what was before the last action of this session, unless it was changed since. Again: the "
        "action before that.",
        _schema(()),
        undo.invoke,
        action=True,
        uses=undo.uses,
        preview=undo.preview,
    )


def _schema(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def _is_told(index: Index, entry: LogbookEntry) -> bool:
    """Whether there is a cause that may be told: what a hidden entity did is not."""
    return bool(entry.cause) and (entry.cause_id is None or entry.cause_id in index.entities)


def _ids(most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": most}


def _whole_number(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}
