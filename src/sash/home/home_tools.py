"""The tools of a home: the queries, and the two tools that change something."""

from collections.abc import Iterator
from datetime import tzinfo
from functools import partial

from sash.home.actions import HomeActions
from sash.home.home_queries import QUERY_TOOLS, HomeQueries
from sash.home.json_schema import arguments_of, entity_ids
from sash.home.live_home import LiveHome
from sash.home.service_call import MAX_ENTITIES
from sash.home.undo import ActionUndo
from sash.ports.tools import ToolSpec
from sash.values.clock import Clock


def build_home_tools(live_home: LiveHome, clock: Clock, zone: tzinfo | None = None) -> Iterator[ToolSpec]:
    """Yield the tools of a home. Times are shown in `zone`; None is the time zone of the machine."""
    queries, actions = HomeQueries(live_home, clock, zone), HomeActions(live_home)
    undo = ActionUndo(actions)
    for query in QUERY_TOOLS.values():
        yield ToolSpec(
            query.name,
            query.description,
            query.input_schema,
            partial(query.function, queries),
            query.output_schema,
            safety="idempotent",
            direct=True,
            keeps_artifacts=query.keeps_artifacts,
        )
    yield ToolSpec(
        "call_service",
        "Change something in the home, only when the user asks for it. The state is read back: tell the user "
        "the result, also if the call was refused or not verified.",
        arguments_of(
            ("service",),
            service={"type": "string", "description": "light.turn_on, cover.open_cover, …"},
            entity_ids=entity_ids(MAX_ENTITIES),
            areas={
                "type": "array",
                "items": {"type": "string"},
                "description": "Instead of entity_ids: all entities of these areas that the service accepts.",
            },
            data={"type": "object", "description": 'Other arguments of the service: {"brightness_pct": 40}.'},
        ),
        actions.call,
        safety="verify",
        action=True,
        tells_policy=True,
        verify=actions.verify,
        uses=actions.list_uses,
        preview=actions.preview,
        already_so=actions.find_already_so,
    )
    yield ToolSpec(
        "undo_last_action",
        "If the user wants a change undone, restore the states from before the last action of this session, "
        "unless they changed since. Call it again to undo the action before that.",
        arguments_of(),
        undo.invoke,
        action=True,
        uses=undo.list_uses,
        preview=undo.preview,
    )
