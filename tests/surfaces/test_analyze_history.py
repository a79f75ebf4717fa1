"""`analyze_history` over REST with a model, and directly over MCP."""

import pytest

from sash.demo.demo_home import demo_home
from sash.home.history_analysis import MAX_INLINE_ROWS
from sash.testing import calling
from tests.surfaces.serving import serving
from tests.surfaces.speaking import ERAS, call, refused, talking

BY_HOUR = (
    "SELECT local_start, round(change, 2) AS kwh FROM statistics, clock "
    "WHERE date(local_start) IN (yesterday, date(yesterday, '-1 day')) ORDER BY start"
)
ENERGY = {"entity_ids": ["House energy"], "sql": BY_HOUR}


@pytest.fixture
async def house(tmp_path):
    async with serving(
        tmp_path, calling("analyze_history", plot=True, **ENERGY), "You used some kWh.", home=demo_home()
    ) as served:
        await served.runtime.home.wait_until_ready()
        yield served


async def test_a_model_answers_how_much_energy_was_used_by_hour(house):
    session_id = await house.start()
    question = "How many kWh did we use yesterday and the day before, by hour?"
    shown = await house.wait(await house.send(session_id, question))
    assert shown["response"]["final_message"] == "You used some kWh."
    [result] = [s["detail"]["content"] for s in shown["steps"] if s["type"] == "tool_result"]
    assert '"total": 48' in result and '"kwh"' in result
    assert [a["type"] for a in shown["artifacts"]] == ["image/png"]
    [cited] = shown["response"]["citations"]
    assert (cited["type"], cited["entity_id"]) == ("history", "sensor.house_energy")


async def test_mcp_calls_it_directly(house):
    async with talking(house.url, ERAS[1]) as mcp:
        listed = {tool.name: tool for tool in (await mcp.list_tools()).tools}
        assert listed["analyze_history"].annotations.read_only_hint
        found = await call(mcp, "analyze_history", **ENERGY)
        assert found["columns"] == ["local_start", "kwh"] and found["total"] == 48
        days = {row[0][:10] for row in found["rows"]}
        assert len(days) == 2 and all(0.1 < row[1] < 3 for row in found["rows"])
        by_day = (
            "SELECT date(local_start) AS day, sum(change) AS kwh, max(h.value) - min(h.value) AS metered "
            "FROM statistics s JOIN history h USING (entity_id) GROUP BY day LIMIT 1"
        )
        assert (await call(mcp, "analyze_history", entity_ids=["sensor.house_energy"], sql=by_day))["rows"]


async def test_a_large_result_is_an_artifact_with_a_preview(house):
    session_id = await house.start()
    arguments = {"entity_ids": ["sensor.house_power"], "sql": "SELECT local_time, value FROM history"}
    async with talking(house.url, ERAS[1]) as mcp:
        found = await call(mcp, "analyze_history", session_id=session_id, **arguments)
        assert found["total"] > MAX_INLINE_ROWS > len(found["rows"])
        kept = await mcp.read_resource(f"sash://artifacts/{found['artifact']['artifact']}")
        assert kept.contents[0].text.splitlines()[0] == "local_time,value"
        assert len(kept.contents[0].text.splitlines()) == found["total"] + 1
        without = await call(mcp, "analyze_history", **arguments)
        assert "artifact" not in without and "session_id" in without["note"]


async def test_hidden_entities_and_writes_are_refused(house):
    hidden = next(e.id for e in (await house.runtime.home.home.get_layout()).entities if not e.exposed)
    async with talking(house.url, ERAS[1]) as mcp:
        sql = "SELECT * FROM states"
        assert await refused(mcp, "analyze_history", entity_ids=[hidden], sql=sql) == "entity_not_found"
        one = ["sensor.house_energy"]
        assert await refused(mcp, "analyze_history", entity_ids=one, sql="PRAGMA x") == "invalid_input"
        assert len((await call(mcp, "analyze_history", entity_ids=one, sql=sql))["rows"]) == 1


@pytest.mark.parametrize(
    ("times", "is_drawn"),
    [
        (("2026-01-01", "2026-01-02"), True),
        (("1970-01-01", "2099-12-31"), True),
        (("0001-01-01", "9999-12-31"), False),
    ],
)
async def test_only_times_of_a_home_are_drawn(house, times, is_drawn):
    session_id = await house.start()
    sql = "SELECT '{}' AS at, 1 AS n UNION ALL SELECT '{}', 2".format(*times)
    arguments = {"entity_ids": ["sensor.house_energy"], "sql": sql, "plot": True}
    async with talking(house.url, ERAS[1]) as mcp:
        found = await call(mcp, "analyze_history", session_id=session_id, **arguments)
    assert ("plot" in found, found["total"]) == (is_drawn, 2)
