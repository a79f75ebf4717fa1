"""`/v1/stats` over REST: the numbers of today are never greater than the numbers of all days."""

from sash.errors import ModelUnreachable
from sash.ports.model import Answer, Usage
from sash.testing import calling
from tests.surfaces.serving import serving
from tests.tools import tool


async def test_today_is_at_most_the_total_after_a_session_was_deleted(tmp_path):
    priced = Answer("ok", usage=Usage(1_000_000, 0, 1000))
    async with serving(tmp_path, priced, sliding_window_max_tokens=4000) as served:
        model = {"model": {"name": "gpt-4o"}, "policy": {"allow_actuation": False}}
        session_id = await served.start(**model)
        await served.wait(await served.send(session_id))
        assert (await read(served))["estimated_cost_usd"] > 0
        await served.client.delete(f"/v1/sessions/{session_id}")
        shown = await read(served)
        assert shown["today"]["estimated_cost_usd"] > 0
        check(shown)


async def test_today_is_at_most_the_total_while_a_turn_is_interrupted(tmp_path):
    lines = calling("look"), ModelUnreachable("the model is away")
    async with serving(tmp_path, *lines, tools=[tool("look", lambda arguments, context: "seen")]) as served:
        session_id = await served.start()
        shown = await served.wait(await served.send(session_id))
        assert shown["status"] == "interrupted"
        counted = await read(served)
        assert counted["today"]["total_requests"] == 1
        check(counted)


async def read(served) -> dict:
    return (await served.client.get("/v1/stats")).json()


def check(shown: dict) -> None:
    """Assert that no count of today, and no sum over the days, is greater than that of all."""
    counts = [
        name for name, value in shown["today"].items() if name.startswith(("total", "estimated", "failed"))
    ]
    assert counts
    for name in counts:
        assert shown["today"][name] <= shown[name], name
        assert sum(day[name] for day in shown["days"]) <= shown[name] + 1e-9, name
