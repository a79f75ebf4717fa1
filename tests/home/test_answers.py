"""What the tools that read a house return is what their schemas say, for every entity and every way to ask."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.home.result_schemas import ANSWERS
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from tests.home.known import WAIT_S
from tests.houses import large_house

HOUSES = {"demo": demo_home, "large": lambda clock: large_house(36, clock)}


@pytest.fixture(params=HOUSES)
async def known(request, caplog):
    """A house with its runtime; that a result breaks its schema is logged, and that is a failure."""
    caplog.set_level(logging.WARNING, "sash.ports.tools")
    clock = FakeClock(datetime(2026, 1, 15, 14, 0, tzinfo=UTC))
    home = HOUSES[request.param](clock)
    async with Runtime(MemoryStore(), home=home, clock=clock, time_zone=UTC) as runtime:
        async with asyncio.timeout(WAIT_S):
            await runtime.home.ready()
        runtime.house = home
        yield runtime
    assert [record.getMessage() for record in caplog.get_records("call")] == []


def test_every_tool_that_may_be_called_directly_says_what_it_returns():
    runtime = Runtime(MemoryStore(), home=demo_home())
    assert {spec.name: spec.output_schema for spec in runtime.direct_tools} == ANSWERS


async def test_entities_are_told_as_promised(known):
    for entity_id in known.home.index.entities:
        one = {"entity_ids": [entity_id]}
        await known.call_tool("get_states", {"entity_ids": [entity_id, "light.nowhere"]})
        await known.call_tool("get_history", one)
        await known.call_tool("get_history", {**one, "hours": 168, "until": "2026-01-01T00:00"})
        await known.call_tool("get_logbook", {**one, "hours": 168, "limit": 100})
        await known.call_tool("diagnose_entity", {"entity_id": entity_id})


async def test_entities_that_went_away_are_told_as_promised(known):
    for entity_id in list(known.home.index.entities)[::3]:
        known.house.set_state(entity_id, "unavailable")
        await known.call_tool("get_history", {"entity_ids": [entity_id], "hours": 1})
        await known.call_tool("diagnose_entity", {"entity_id": entity_id})


async def test_the_whole_house_is_told_as_promised(known):
    session = await known.start_session()
    some = list(known.home.index.entities)[:8]
    for wanted in ({}, {"query": "light"}, {"state": "unavailable"}, {"domain": "sensor", "limit": 50}):
        await known.call_tool("search_index", wanted)
    drawn = await known.call_tool("get_history", {"entity_ids": some, "plot": True}, session_id=session.id)
    assert drawn["entities"]
    for timeframe in ("1h", "24h", "7d"):
        for severity in ("warning", "error", "critical"):
            await known.call_tool("analyze_errors", {"timeframe": timeframe, "severity": severity})
