"""A session is changed over REST and MCP: only the given fields, from the next turn on."""

import pytest

from tests.surfaces.serving import problem, serving
from tests.surfaces.speaking import call, eras, refused, talking


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "ok") as served:
        yield served


async def test_only_the_given_fields_change(served):
    at = f"/v1/sessions/{await served.start(name='one', preferences={'a': 1, 'b': 2})}"
    before = (await served.client.get(at)).json()["session"]
    body = {
        "model": {"temperature": 0.5},
        "budgets": {"max_steps": 3},
        "policy": {"dry_run": True},
        "window": {"max_turns": 5},
        "preferences": {"a": None, "c": 3},
        "name": "two",
    }
    patched = await served.client.patch(at, json=body)
    assert patched.status_code == 200, patched.text
    after = (await served.client.get(at)).json()["session"]
    assert patched.json()["session"] == after
    for part in ("model", "budgets", "policy", "window"):
        assert after[part] == before[part] | body[part]
    assert (after["preferences"], after["name"]) == ({"b": 2, "c": 3}, "two")
    same = {*before} - {*body} - {"version", "updated_at"}
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


async def test_null_removes_the_name_and_limits_and_leaves_whole_objects(served):
    at = f"/v1/sessions/{await served.start(name='one', budgets={'max_steps': 3})}"
    body = {"name": None, "window": {"max_tokens": None}, "budgets": None, "policy": None, "model": None}
    after = (await served.client.patch(at, json=body)).json()["session"]
    assert after["name"] is None
    assert after["window"]["max_tokens"] is None
    assert after["budgets"]["max_steps"] == 3
    assert (await served.client.patch(at, json={})).json()["session"]["name"] is None


async def test_instructions_change_stay_and_are_removed(served):
    at = f"/v1/sessions/{await served.start(instructions='You are a parrot.')}"
    for body, expected in (
        ({"name": "bird"}, "You are a parrot."),
        ({"instructions": "You are a cat."}, "You are a cat."),
        ({"instructions": None}, None),
    ):
        assert (await served.client.patch(at, json=body)).json()["session"]["instructions"] == expected
        assert (await served.client.get(at)).json()["session"]["instructions"] == expected


async def test_a_name_is_unique_among_active_sessions(served):
    await served.start(name="taken")
    at = f"/v1/sessions/{await served.start()}"
    problem(await served.client.patch(at, json={"name": "taken"}), 409, "session_exists")
    assert (await served.client.get(at)).json()["session"]["name"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"instructions": ""},
        {"instructions": "x" * 20_001},
        {"budgets": {"max_steps": -1}},
        {"budgets": {"max_stepz": 1}},
        {"budgets": 5},
        {"policy": {"denylisted_services": "lock"}},
        {"window": {"max_tokens": 0}},
        {"window": {"evict_to": 2}},
        {"model": {"temperature": "hot"}},
        {"area": "kitchen"},
    ],
)
async def test_wrong_changes_are_refused_and_change_nothing(served, body):
    at = f"/v1/sessions/{await served.start()}"
    before = (await served.client.get(at)).json()
    refused = await served.client.patch(at, json=body)
    assert refused.status_code == 422, refused.text
    assert (await served.client.get(at)).json() == before


async def test_a_change_of_the_policy_needs_the_scope_act(served):
    talker = served.token("local", "read", "converse")
    owner = served.token()
    started = await served.client.post(
        "/v1/sessions", json={"policy": {"allow_actuation": False}}, headers=owner
    )
    at = f"/v1/sessions/{started.json()['session_id']}"
    patched = await served.client.patch(at, json={"policy": {"dry_run": True}}, headers=talker)
    problem(patched, 403, "forbidden")
    assert (await served.client.patch(at, json={"name": "x"}, headers=talker)).status_code == 200
    assert (
        await served.client.patch(at, json={"policy": {"dry_run": True}}, headers=owner)
    ).status_code == 200


@eras
async def test_mcp_changes_a_session(served, era):
    async with talking(served.url, era) as client:
        session_id = (await call(client, "ha_agent_start_session"))["session_id"]
        changed = await call(
            client, "ha_agent_update_session", session_id=session_id, name="den", budgets={"max_steps": 2}
        )
        shown = await call(client, "ha_agent_get_session", session_id=changed["session_id"])
        assert (shown["session"]["name"], shown["session"]["budgets"]["max_steps"]) == ("den", 2)
        over = await refused(
            client, "ha_agent_update_session", session_id=session_id, budgets={"max_steps": 10**9}
        )
        assert over == "policy_exceeds_operator"


async def test_a_smaller_window_cuts_with_the_next_turn(served):
    session_id = await served.start(window={"max_tokens": None})
    for n in range(5):
        await served.wait(await served.send(session_id, f"message {n}"))
    at = f"/v1/sessions/{session_id}"
    await served.client.patch(at, json={"window": {"max_turns": 2, "evict_to": 1.0}})
    shown = (await served.client.get(f"{at}/messages")).json()["messages"]
    assert all(message["in_window"] for message in shown)
    await served.wait(await served.send(session_id, "the last one"))
    shown = (await served.client.get(f"{at}/messages")).json()["messages"]
    assert [m["content"] for m in shown if m["in_window"] and m["role"] == "user"] == [
        "message 4",
        "the last one",
    ]


async def test_changes_may_be_in_camel_case(served):
    at = f"/v1/sessions/{await served.start()}"
    changed = await served.client.patch(at, json={"budgets": {"maxSteps": 3}, "policy": {"dryRun": True}})
    assert changed.status_code == 200, changed.text
    session = (await served.client.get(at)).json()["session"]
    assert session["budgets"]["max_steps"] == 3 and session["policy"]["dry_run"]
    assert session["budgets"]["max_tool_calls"] == 16
