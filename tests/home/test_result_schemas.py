"""The results of the query tools match their schemas, for every entity and every argument."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.home.home_queries import QUERY_TOOLS
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from tests.home.small_home import WAIT_S
from tests.large_home import make_large_home

HOMES = {"demo": demo_home, "large": lambda clock: make_large_home(36, clock)}


class Known:
    """A home, the ids of its exposed entities, and a runtime that is connected to it."""

    def __init__(self, runtime, home, entity_ids):
        self.runtime, self.home, self.entity_ids = runtime, home, entity_ids
        self.call_tool = runtime.call_tool


@pytest.fixture(params=HOMES)
async def known(request, caplog):
    """A home with its runtime. A result that breaks its schema is logged, and fails the test."""
    caplog.set_level(logging.WARNING, "sash.ports.tools")
    clock = FakeClock(datetime(2026, 1, 15, 14, 0, tzinfo=UTC))
    home = HOMES[request.param](clock)
    async with Runtime(MemoryStore(), home=home, clock=clock, time_zone=UTC) as runtime:
        async with asyncio.timeout(WAIT_S):
            await runtime.home_ready()
        layout = await home.get_layout()
        yield Known(runtime, home, [entity.id for entity in layout.entities if entity.exposed])
    assert [record.getMessage() for record in caplog.get_records("call")] == []


def test_every_tool_that_may_be_called_directly_says_what_it_returns():
    runtime = Runtime(MemoryStore(), home=demo_home())
    assert {spec.name: spec.output_schema for spec in runtime.direct_tools} == {
        name: tool.output_schema for name, tool in QUERY_TOOLS.items()
    }


async def test_entities_are_told_as_promised(known):
    for entity_id in known.entity_ids:
        one = {"entity_ids": [entity_id]}
        await known.call_tool("get_states", {"entity_ids": [entity_id, "light.nowhere"]})
        await known.call_tool("get_history", one)
        await known.call_tool("get_history", {**one, "hours": 168, "until": "2026-01-01T00:00"})
        await known.call_tool("get_logbook", {**one, "hours": 168, "limit": 100})
        await known.call_tool("diagnose_entity", {"entity_id": entity_id})


async def test_entities_that_went_away_are_told_as_promised(known):
    for entity_id in known.entity_ids[::3]:
        known.home.set_state(entity_id, "unavailable")
        await known.call_tool("get_history", {"entity_ids": [entity_id], "hours": 1})
        await known.call_tool("diagnose_entity", {"entity_id": entity_id})


async def test_the_whole_house_is_told_as_promised(known):
    session = await known.runtime.start_session()
    some = known.entity_ids[:8]
    for wanted in ({}, {"query": "light"}, {"state": "unavailable"}, {"domain": "sensor", "limit": 50}):
        await known.call_tool("search_index", wanted)
    drawn = await known.call_tool("get_history", {"entity_ids": some, "plot": True}, session_id=session.id)
    assert drawn["entities"]
    for timeframe in ("1h", "24h", "7d"):
        for severity in ("warning", "error", "critical"):
            await known.call_tool("analyze_errors", {"timeframe": timeframe, "severity": severity})
