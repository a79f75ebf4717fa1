"""Input in camelCase, as seed 004 writes it, beside snake_case."""

import pytest

from sash.errors import InvalidInput
from sash.values.requests import SendMessage, StartSession
from sash.values.validated import parse
from tests.surfaces.serving import problem, serving
from tests.surfaces.speaking import call, eras, talking

SESSION = {
    "model": {"name": "scripted"},
    "budgets": {"maxSteps": 3, "maxToolCalls": 2, "maxDurationMs": 5000, "maxTokensPerTurn": 900},
    "policy": {
        "allowActuation": False,
        "allowlistedServices": ["light"],
        "enforceFixedModel": True,
        "maxActionsPerMinute": 2,
    },
    "window": {"maxTurns": 4, "evictTo": 0.5},
    "preferences": {"favouriteColour": "red", "nestedThing": {"deepKey": 1}},
}
MESSAGE = {
    "message": "hi",
    "plannerHints": {"preferShort": True},
    "allowTools": False,
    "timeBudgetMs": 4000,
    "maxSteps": 2,
    "idempotencyKey": "k",
    "metadata": {"sourceName": "x"},
}


def check_session(session):
    assert session["budgets"] | {"max_steps": 3, "max_tool_calls": 2} == session["budgets"]
    assert (session["budgets"]["max_duration_ms"], session["budgets"]["max_tokens_per_turn"]) == (5000, 900)
    policy = session["policy"]
    assert (policy["allowlisted_services"], policy["enforce_fixed_model"]) == (["light"], True)
    assert (session["window"]["max_turns"], session["window"]["evict_to"]) == (4, 0.5)
    assert session["preferences"] == SESSION["preferences"], "the content is free-form"


def check_request(request):
    assert (request["allow_tools"], request["time_budget_ms"], request["max_steps"]) == (False, 4000, 2)
    assert request["idempotency_key"] == "k"
    assert request["planner_hints"] == {"preferShort": True}
    assert request["metadata"] == {"sourceName": "x"}


async def test_rest_bodies_may_be_in_camel_case(served):
    session_id = await served.start(**SESSION)
    shown = (await served.client.get(f"/v1/sessions/{session_id}")).json()
    check_session(shown["session"])
    body = {key: value for key, value in MESSAGE.items() if key != "message"}
    turn = await served.wait(await served.send(session_id, "hi", **body))
    check_request(turn["request"])
    assert turn["continuation_id"] and "continuationId" not in turn, "output is in snake_case"


async def test_conversation_bodies_may_be_in_camel_case(served):
    added = await served.client.post(
        "/conversation/turn",
        json={"userMessage": "q", "aiResponse": "a", "conversationId": "hall", "metadata": {"aB": 1}},
    )
    assert added.status_code == 200, added.text
    said = await served.client.post("/conversation", json={"text": "hi", "conversationId": "hall"})
    assert said.json()["conversation_id"] == "hall"


async def test_query_parameters_may_be_in_camel_case(served):
    await served.client.post(
        "/conversation/turn?conversationId=hall", json={"user_message": "q & ä", "ai_response": "a"}
    )
    kept = await served.client.get("/conversation?conversationId=hall&formatText=true")
    assert "User: q & ä" in kept.json()["turns"]
    session_id = await served.start()
    sent = await served.send(session_id)
    done = await served.client.get(f"/v1/continuations/{sent}?waitMs=40000")
    assert done.json()["status"] == "completed"


@eras
async def test_mcp_arguments_may_be_in_camel_case(served, era):
    async with talking(served.url, era) as mcp:
        started = await call(mcp, "ha_agent_start_session", **SESSION)
        shown = await call(mcp, "ha_agent_get_session", sessionId=started["session_id"])
        check_session(shown["session"])
        sent = await call(mcp, "ha_agent_send_message", sessionId=started["session_id"], **MESSAGE)
        turn = await call(
            mcp, "ha_agent_await_continuation", continuationId=sent["continuation_id"], timeoutMs=40_000
        )
        assert turn["status"] == "completed"
        check_request((await served.wait(sent["continuation_id"]))["request"])


async def test_both_spellings_of_a_field_are_an_error_that_names_it(served):
    session_id = await served.start()
    body = {"message": "hi", "timeBudgetMs": 1, "time_budget_ms": 2}
    told = problem(
        await served.client.post(f"/v1/sessions/{session_id}/messages", json=body), 422, "invalid_input"
    )
    assert "time_budget_ms was sent in both spellings" in told["detail"]
    nested = {"budgets": {"maxSteps": 1, "max_steps": 1}}
    told = problem(await served.client.post("/v1/sessions", json=nested), 422, "invalid_input")
    assert "budgets.maxSteps" in told["detail"] and "max_steps was sent in both" in told["detail"]
    asked = await served.client.get("/conversation?conversationId=a&conversation_id=b")
    assert "conversation_id was sent in both spellings" in problem(asked, 422, "invalid_input")["detail"]


async def test_an_error_names_the_field_as_the_client_wrote_it(served):
    told = problem(
        await served.client.post("/v1/ask", json={"message": "x", "timeoutMs": "y"}), 422, "invalid_input"
    )
    assert told["detail"].startswith("timeoutMs:")


@pytest.mark.parametrize("wrong", ["TimeBudgetMs", "time_budgetMs", "timebudgetms", "TIME_BUDGET_MS"])
def test_other_spellings_are_refused(wrong):
    with pytest.raises(InvalidInput):
        parse(SendMessage, {"message": "x", wrong: 1})


async def test_the_schemas_show_snake_case_only(tmp_path):
    async with serving(tmp_path) as served:
        text = (await served.client.get("/openapi.json")).text
    assert "timeBudgetMs" not in text and "time_budget_ms" in text
    assert StartSession(name="x") == parse(StartSession, {"name": "x"})
