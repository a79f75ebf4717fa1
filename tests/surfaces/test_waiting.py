"""What the agent does later, through REST, MCP and the command line: listed and cancelled."""

import asyncio
import json

import pytest

from sash.demo.demo_home import demo_home
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel, calling
from tests.surfaces.command_line import chat_once
from tests.surfaces.promises import WHEN_IT_LEAKS, promise
from tests.surfaces.serving import WAIT_S, is_final, listen, problem, serving
from tests.surfaces.speaking import call, eras, refused, talking

LATER = {
    "summary": "turn on the hallway light",
    "in_s": 60,
    "calls": [{"service": "light.turn_on", "entity_ids": ["light.hallway"]}],
}
ACTING = {"allow_actuation": True, "allowlisted_services": ("*",)}


@pytest.fixture
async def house(tmp_path):
    """A server of the demo home, whose model does something in a minute."""
    clock = FakeClock()
    home = demo_home(clock)
    lines = (calling("do_later", **LATER), "I will.")
    async with serving(tmp_path, *lines, home=home, clock=clock, **ACTING) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        served.clock, served.home = clock, home
        yield served


async def test_a_rest_client_lists_and_cancels_what_waits(house):
    session_id, other = await house.start(policy=ACTING), await house.start()
    assert (await house.client.get("/v1/waiting")).json() == {"waiting": []}
    await house.wait(await house.send(session_id, "turn on the hallway light in a minute, my dear"))
    [shown] = (await house.client.get("/v1/waiting")).json()["waiting"]
    assert (shown["summary"], shown["session_id"]) == ("turn on the hallway light", session_id)
    assert shown["at"].startswith("2026-01-01T") and shown["when"] is None
    assert shown["calls"] == [{"service": "light.turn_on", "entity_ids": ["light.hallway"], "data": {}}]
    at = "/v1/sessions/{}/waiting"
    assert (await house.client.get(at.format(session_id))).json()["waiting"] == [shown]
    assert (await house.client.get(at.format(other))).json()["waiting"] == []
    problem(await house.client.get(at.format("nothing")), 404, "session_not_found")
    cancelled = await house.client.delete(f"/v1/waiting/{shown['id']}")
    assert (cancelled.status_code, cancelled.json()) == (200, shown)
    problem(await house.client.delete(f"/v1/waiting/{shown['id']}"), 404, "waiting_turn_not_found")
    house.clock.advance(61)
    assert await house.runtime.fire_waiting_turns() == []


async def test_a_condition_is_shown_in_words(house):
    session_id = await house.start()
    await house.runtime.store.add_waiting_turn(promise(session_id, clock=house.clock, **WHEN_IT_LEAKS))
    [shown] = (await house.client.get("/v1/waiting")).json()["waiting"]
    assert shown["at"] is None
    assert shown["when"] == "Bathroom leak sensor is wet"
    assert (shown["say"], shown["entity_ids"]) == ("The bathroom leaks.", ["binary_sensor.bathroom_leak"])


async def test_a_client_that_follows_the_events_hears_what_became_of_it(house):
    session_id = await house.start(policy=ACTING)
    await house.wait(await house.send(session_id, "turn on the hallway light in a minute, my dear"))
    last = await house.runtime.store.last_cursor("local", session_id)
    following = asyncio.create_task(listen(house.client, session_id, is_final, params={"after": last}))
    house.clock.advance(60)
    await house.runtime.fire_waiting_turns()
    events = await asyncio.wait_for(following, WAIT_S)
    fired = next(
        event["data"]["payload"]["step"]["detail"] for event in events if event.get("event") == "step"
    )
    assert (fired["event"], fired["outcome"]) == ("waiting_turn_fired", "due")
    assert (
        events[-1]["data"]["payload"]["final_response"]["final_message"] == "Done: turn on the hallway light."
    )
    assert (await house.client.get("/v1/waiting")).json() == {"waiting": []}


async def test_a_caller_who_may_not_act_cannot_cancel_what_an_acting_session_does(house):
    house.token("local")
    acting = await house.runtime.start_session()
    turn = await house.runtime.store.add_waiting_turn(promise(acting.id, clock=house.clock))
    may_not = house.token("local", "read", "converse")
    problem(await house.client.delete(f"/v1/waiting/{turn.id}", headers=may_not), 403, "forbidden")
    assert len(await house.runtime.list_waiting()) == 1


@eras
async def test_an_mcp_client_lists_and_cancels_what_waits(house, era):
    async with talking(house.url, era) as mcp:
        session_id = (await call(mcp, "ha_agent_start_session"))["session_id"]
        turn = await house.runtime.store.add_waiting_turn(promise(session_id, clock=house.clock))
        for query in ({}, {"session_id": session_id}):
            [shown] = (await call(mcp, "ha_agent_list_waiting", **query))["waiting"]
            assert (shown["id"], shown["summary"]) == (turn.id, "turn off the kitchen light")
        cancelled = await call(mcp, "ha_agent_cancel_waiting", waiting_id=turn.id)
        assert cancelled["id"] == turn.id
        assert await refused(mcp, "ha_agent_cancel_waiting", waiting_id=turn.id) == "waiting_turn_not_found"
        assert await refused(mcp, "ha_agent_list_waiting", session_id="x") == "session_not_found"
        assert (await call(mcp, "ha_agent_list_waiting"))["waiting"] == []


def store_promise(cli, session_id, **fields):
    async def add():
        store = SqliteStore(cli.data / "sash.db")
        await store.open()
        turn = await store.add_waiting_turn(promise(session_id, **fields))
        await store.close()
        return turn

    return asyncio.run(add())


def test_the_command_line_lists_and_cancels_what_waits(cli):
    session = chat_once(cli)
    assert cli("waiting").stderr.startswith("Nothing waits: ask for something later")
    first = store_promise(cli, session)
    second = store_promise(cli, session, **WHEN_IT_LEAKS)
    table = " ".join(cli("waiting").stdout.split())
    assert first.id in table and "turn off the kitchen light" in table and session in table
    assert "Bathroom leak is on" in table and "binary_sensor" not in table
    listed = json.loads(cli("waiting", "list", "--json", "--session", session).stdout)["waiting"]
    assert [each["id"] for each in listed] == [first.id, second.id]
    assert cli("waiting", "cancel", first.id).stdout == "Cancelled: turn off the kitchen light\n"
    assert cli("waiting", "cancel", first.id).returncode == 3
    assert [each["id"] for each in json.loads(cli("waiting", "--json").stdout)["waiting"]] == [second.id]


async def test_the_default_model_is_not_asked_when_it_fires(tmp_path):
    clock, model = FakeClock(), ScriptedModel("ok")
    async with serving(tmp_path, model=model, clock=clock) as served:
        session_id = await served.start()
        await served.runtime.store.add_waiting_turn(
            promise(session_id, clock=clock, calls=(), say="Tea!", at=clock.now(), due_at=clock.now())
        )
        await served.runtime.recover()
        await served.runtime._waiting_turns.reload()
        await served.runtime.fire_waiting_turns()
        await served.runtime.wait_for_turns()
        [turn] = (await served.client.get("/v1/continuations")).json()["continuations"]
        assert turn["response"]["final_message"] == "Tea!"
        assert turn["request"]["fired"]["turn"]["say"] == "Tea!"
        assert model.requests == []
