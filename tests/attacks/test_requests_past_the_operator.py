"""No request passes the operator's limits: over REST, by PATCH, by options of a turn, or by MCP arguments."""

import pytest

from sash.testing import ScriptedModel, calling
from tests.surfaces.serving import problem, serving
from tests.surfaces.speaking import call, eras, refused, talking
from tests.tools import Switch

ALLOWED = {"allow_actuation": True, "allowlisted_services": ("light",), "max_cost_per_day_usd": 1.0}
ACTING = {"allow_actuation": True}
TOO_MUCH = {
    "another service": {"policy": ACTING | {"allowlisted_services": ["switch"]}},
    "all services": {"policy": ACTING | {"allowlisted_services": ["*"]}},
    "actions per minute": {"policy": {"max_actions_per_minute": 10**12}},
    "no limit of actions": {"policy": {"max_actions_per_minute": None}},
    "nothing denied": {"policy": {"denylisted_services": []}},
    "no confirmation": {"policy": {"require_confirmation": []}},
    "answers without a check": {"policy": {"grounded_answers": False}},
    "steps": {"budgets": {"max_steps": 10**12}},
    "tool calls": {"budgets": {"max_tool_calls": 10**12}},
    "time": {"budgets": {"max_duration_ms": 10**12}},
    "tokens": {"budgets": {"max_tokens_per_turn": 10**12}},
    "dollars of a day": {"budgets": {"max_cost_per_day_usd": 50}},
}
PER_TURN = {"max_steps": 10**9, "time_budget_ms": 86_400_000}


@pytest.fixture
async def operated(tmp_path):
    """Return a server whose operator allows lights only, and the switch that its model always calls."""
    switch = Switch()
    model = ScriptedModel(calling("switch"))
    async with serving(tmp_path, model=model, tools=[switch.tool], **ALLOWED) as served:
        yield served, switch


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_new_session_over_rest_is_refused(operated, what):
    served, _ = operated
    started = await served.client.post("/v1/sessions", json=TOO_MUCH[what])
    problem(started, 403, "policy_exceeds_operator")


@pytest.mark.parametrize("what", [what for what in TOO_MUCH if "budgets" in TOO_MUCH[what]])
async def test_a_question_over_rest_is_refused(operated, what):
    served, _ = operated
    asked = await served.client.post("/v1/ask", json={"message": "switch it on"} | TOO_MUCH[what])
    problem(asked, 403, "policy_exceeds_operator")


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_patch_past_the_operator_is_refused_and_changes_nothing(operated, what):
    served, _ = operated
    at = f"/v1/sessions/{await served.start()}"
    before = (await served.client.get(at)).json()
    for body in (TOO_MUCH[what], {"preferences": {"a": 1}, "name": "mine"} | TOO_MUCH[what]):
        problem(await served.client.patch(at, json=body), 403, "policy_exceeds_operator")
    assert (await served.client.get(at)).json() == before
    await served.client.patch(at, json={"preferences": TOO_MUCH[what]})
    after = (await served.client.get(at)).json()
    for part in ("policy", "budgets"):
        assert after["session"][part] == before["session"][part]


async def test_a_patch_in_two_steps_passes_no_allowlist(operated):
    served, _ = operated
    at = f"/v1/sessions/{await served.start(policy={'allow_actuation': False})}"
    listed = await served.client.patch(at, json={"policy": {"allowlisted_services": ["switch"]}})
    assert listed.status_code == 200
    problem(await served.client.patch(at, json={"policy": ACTING}), 403, "policy_exceeds_operator")


async def test_a_patch_within_the_limits_of_the_operator_works(operated):
    served, _ = operated
    at = f"/v1/sessions/{await served.start(policy={'allow_actuation': False})}"
    policy = ACTING | {"allowlisted_services": ["light.turn_on"], "denylisted_services": ["fan"]}
    body = {"policy": policy, "budgets": {"max_steps": 2, "max_cost_per_day_usd": 0.5}}
    patched = (await served.client.patch(at, json=body)).json()["session"]
    assert patched["policy"]["allow_actuation"] is True
    assert patched["policy"]["allowlisted_services"] == ["light.turn_on"]
    assert {"fan", "hassio"} <= set(patched["policy"]["denylisted_services"])
    assert (patched["budgets"]["max_steps"], patched["budgets"]["max_cost_per_day_usd"]) == (2, 0.5)
    assert patched["budgets"]["max_tool_calls"] == 16


async def test_options_of_a_turn_pass_no_budget_and_no_policy(operated):
    served, switch = operated
    session_id = await served.start(policy=ACTING | {"allowlisted_services": ["light"]})
    ended = await served.wait(await served.send(session_id, "switch it on", **PER_TURN))
    assert ended["response"]["stopped_by"] == "max_steps"
    assert {action["outcome"] for action in ended["response"]["actions"]} == {"denied"}
    sent = await served.client.post(
        f"/v1/sessions/{session_id}/messages", json={"message": "switch it on", "policy": ACTING}
    )
    problem(sent, 422, "invalid_input")
    assert switch.count == 0


@eras
async def test_arguments_of_mcp_pass_no_budget_and_no_policy(operated, era):
    served, switch = operated
    async with talking(served.url, era) as client:
        for body in TOO_MUCH.values():
            assert await refused(client, "ha_agent_start_session", **body) == "policy_exceeds_operator"
            if "budgets" in body:
                asked = await refused(client, "ha_agent_ask", message="switch it on", **body)
                assert asked == "policy_exceeds_operator"
        policy = ACTING | {"allowlisted_services": ["light"]}
        session_id = (await call(client, "ha_agent_start_session", policy=policy))["session_id"]
        sent = await call(
            client, "ha_agent_send_message", session_id=session_id, message="switch it on", **PER_TURN
        )
        ended = await served.wait(sent["continuation_id"])
    assert ended["response"]["stopped_by"] == "max_steps"
    assert {action["outcome"] for action in ended["response"]["actions"]} == {"denied"}
    assert switch.count == 0
