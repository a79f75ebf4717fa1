"""Access: scopes, owners, and the limits of a caller."""

import json

import pytest

from sash.app.access import SCOPES
from sash.testing import calling
from tests.surfaces.promises import promise
from tests.surfaces.serving import WAIT_S, is_final, listen, problem, serving
from tests.tools import tool

SCOPED = [
    ("GET", "/v1/sessions", None, "read"),
    ("GET", "/v1/sessions/{session}", None, "read"),
    ("GET", "/v1/sessions/{session}/messages", None, "read"),
    ("GET", "/v1/sessions/{session}/context", None, "read"),
    ("GET", "/v1/sessions/{session}/search?q=x", None, "read"),
    ("GET", "/v1/sessions/{session}/export", None, "read"),
    ("GET", "/v1/sessions/{session}/facts", None, "read"),
    ("GET", "/v1/sessions/{session}/pins", None, "read"),
    ("GET", "/v1/facts", None, "read"),
    ("GET", "/v1/pins", None, "read"),
    ("GET", "/v1/preferences", None, "read"),
    ("GET", "/v1/home", None, "read"),
    ("GET", "/v1/actions", None, "read"),
    ("GET", "/v1/continuations", None, "read"),
    ("GET", "/v1/continuations/{turn}", None, "read"),
    ("GET", "/v1/continuations/{turn}/prompts", None, "read"),
    ("GET", "/v1/artifacts/{artifact}", None, "read"),
    ("GET", "/v1/stats", None, "read"),
    ("GET", "/v1/waiting", None, "read"),
    ("GET", "/v1/sessions/{session}/waiting", None, "read"),
    ("DELETE", "/v1/waiting/{waiting}", None, "converse"),
    ("GET", "/v1/me", None, "read"),
    ("GET", "/v1/search?q=x", None, "read"),
    ("GET", "/events/{session}", None, "read"),
    ("GET", "/conversation?conversation_id=home", None, "read"),
    ("GET", "/conversation/stats?conversation_id=home", None, "read"),
    ("GET", "/conversation/recent?conversation_id=home", None, "read"),
    ("POST", "/v1/sessions", {}, "converse"),
    ("POST", "/v1/ask", {"message": "hi"}, "converse"),
    ("POST", "/v1/ask", {"message": "hi"}, "read"),
    ("POST", "/v1/sessions/{session}/messages", {"message": "hi"}, "converse"),
    ("POST", "/v1/sessions/{session}/facts", {"text": "x"}, "converse"),
    ("DELETE", "/v1/sessions/{session}/facts/{fact}", None, "converse"),
    ("POST", "/v1/sessions/{session}/pins", {"text": "x"}, "converse"),
    ("DELETE", "/v1/sessions/{session}/pins/{pin}", None, "converse"),
    ("PATCH", "/v1/sessions/{session}", {"preferences": {"a": 1}}, "converse"),
    ("PATCH", "/v1/sessions/{session}/messages/{message}", {"tags": ["a"]}, "converse"),
    ("POST", "/v1/sessions/{session}/reset", None, "converse"),
    ("POST", "/v1/sessions/{session}/undo", None, "converse"),
    ("POST", "/v1/facts", {"text": "x"}, "converse"),
    ("POST", "/v1/pins", {"text": "x"}, "converse"),
    ("PATCH", "/v1/facts/{own_fact}", {"text": "y"}, "converse"),
    ("PATCH", "/v1/sessions/{session}/facts/{fact}", {"text": "y"}, "converse"),
    ("DELETE", "/v1/facts/{own_fact}", None, "converse"),
    ("DELETE", "/v1/pins/{own_pin}", None, "converse"),
    ("PATCH", "/v1/preferences", {"preferences": {"a": 1}}, "converse"),
    ("PATCH", "/v1/sessions/{session}", {"policy": {"dry_run": True}}, "act"),
    ("POST", "/v1/sessions/{session}/fork", None, "converse"),
    ("POST", "/v1/continuations/{turn}/cancel", None, "converse"),
    ("POST", "/v1/continuations/{turn}/resume", None, "converse"),
    ("POST", "/v1/continuations/{turn}/retry", None, "converse"),
    ("POST", "/v1/continuations/{turn}/approve", {"call_id": "call", "approved": True}, "act"),
    ("POST", "/conversation/turn", {"user_message": "hi", "conversation_id": "home"}, "converse"),
    ("POST", "/conversation", {"text": "hi", "conversation_id": "home"}, "converse"),
    ("POST", "/conversation", {"text": "hi", "conversation_id": "home"}, "read"),
    ("PATCH", "/conversation/turn/{recorded}?conversation_id=home", {"ai_response": "x"}, "converse"),
    ("DELETE", "/conversation?conversation_id=home", None, "converse"),
    ("POST", "/v1/sessions/{session}/end", None, "converse"),
    ("DELETE", "/v1/sessions/{session}", None, "converse"),
    ("DELETE", "/v1/owners/me", None, "admin"),
    ("GET", "/metrics", None, "admin"),
]


async def things(served, headers):
    """Create one thing of each kind for an owner, and return their ids."""
    ask = lambda *a, **k: served.client.request(*a, headers=headers, **k)  # noqa: E731
    session = (await ask("POST", "/v1/sessions", json={})).json()["session_id"]
    sent = await ask("POST", f"/v1/sessions/{session}/messages", json={"message": "the secret is 4711"})
    turn = sent.json()["continuation_id"]
    shown = (await ask("GET", f"/v1/continuations/{turn}", params={"wait_ms": WAIT_S * 1000})).json()
    fact = (await ask("POST", f"/v1/sessions/{session}/facts", json={"text": "4711"})).json()["id"]
    pin = (await ask("POST", f"/v1/sessions/{session}/pins", json={"text": "4711"})).json()["id"]
    own_fact = (await ask("POST", "/v1/facts", json={"text": "4711"})).json()["id"]
    own_pin = (await ask("POST", "/v1/pins", json={"text": "4711"})).json()["id"]
    added = {"user_message": "4711", "ai_response": "noted"}
    recorded = await ask("POST", "/conversation/turn?conversation_id=home", json=added)
    owner = (await ask("GET", "/v1/me")).json()["owner"]
    waiting = await served.runtime.store.add_waiting_turn(promise(session, owner=owner))
    [artifact] = shown["artifacts"]
    [message, *_] = (await ask("GET", f"/v1/sessions/{session}/messages")).json()["messages"]
    return {
        "message": message["id"],
        "session": session,
        "turn": turn,
        "fact": fact,
        "pin": pin,
        "own_fact": own_fact,
        "own_pin": own_pin,
        "artifact": artifact["id"],
        "waiting": waiting.id,
        "recorded": recorded.json()["turn_id"],
    }


@pytest.fixture
async def stocked(tmp_path):
    large = tool("read_all", lambda a, c: "4711 " * 5000)
    lines = [calling("read_all"), "The secret is 4711.", "ok"]
    async with serving(tmp_path, *lines, tools=[large]) as served:
        anna = served.token("anna")
        yield served, anna, await things(served, anna)


async def test_every_route_needs_its_scope(stocked):
    served, _, ids = stocked
    for method, path, body, scope in SCOPED:
        others = [other for other in SCOPES if other != scope]
        refused = await served.client.request(
            method, path.format(**ids), json=body, headers=served.token("anna", *others)
        )
        assert problem(refused, 403, "forbidden")["scope"] == scope, path


async def test_the_open_pages_answer_head_requests_without_a_body(served):
    served.token("anna")
    for path in ("/", "/health", "/ready", "/docs", "/openapi.json"):
        shown, head = await served.client.get(path), await served.client.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-length"] == shown.headers["content-length"]
    problem(await served.client.get("/v1/sessions"), 401, "unauthorized")
    assert (await served.client.head("/v1/sessions")).status_code == 401


async def test_every_route_of_the_api_is_in_the_list_of_scopes(served):
    schema = (await served.client.get("/openapi.json")).json()
    routes = {(method.upper(), path) for path, item in schema["paths"].items() for method in item}
    open_routes = {("GET", "/health"), ("GET", "/ready")}
    names = {
        "session": "session_id",
        "turn": "continuation_id",
        "fact": "fact_id",
        "pin": "pin_id",
        "waiting": "waiting_id",
    }
    names |= {"own_fact": "fact_id", "own_pin": "pin_id"}
    names |= {"message": "message_id", "artifact": "artifact_id", "recorded": "turn_id"}
    listed = {
        (method, path.partition("?")[0].format(**{k: "{" + v + "}" for k, v in names.items()}))
        for method, path, _, _ in SCOPED
    }
    assert routes - open_routes - {("POST", "/v1/sessions/import")} == listed


async def test_an_owner_cannot_reach_data_of_another_owner(stocked):
    served, anna, ids = stocked
    bert = served.token("bert")
    before = (await served.client.get(f"/v1/sessions/{ids['session']}/export", headers=anna)).json()
    for method, path, body, _ in SCOPED:
        if path in ("/v1/owners/me", "/metrics") or "{" not in path:
            continue
        asked = await served.client.request(method, path.format(**ids), json=body, headers=bert)
        assert asked.status_code == 404, (method, path, asked.text)
        assert "4711" not in asked.text
    for method, path, body, _ in SCOPED:
        if "{" not in path and path != "/metrics" and path != "/v1/owners/me":
            asked = await served.client.request(method, path, json=body, headers=bert)
            assert "4711" not in asked.text, path
    assert (await served.client.delete("/v1/owners/me", headers=bert)).status_code == 200
    after = (await served.client.get(f"/v1/sessions/{ids['session']}/export", headers=anna)).json()
    assert after == before
    kept = await served.client.get("/conversation?conversation_id=home", headers=anna)
    assert [t["user_message"] for t in kept.json()["turns"]] == ["4711"]


async def test_an_owner_cannot_stream_events_of_another_owner(stocked):
    served, anna, ids = stocked
    bert = served.token("bert")
    problem(await served.client.get(f"/events/{ids['session']}", headers=bert), 404, "session_not_found")
    mine = await listen(served.client, ids["session"], is_final, headers=anna)
    assert "4711" in json.dumps(mine)


async def test_a_caller_without_the_act_scope_gets_no_acting_agent(tmp_path):
    switch = tool("switch", lambda a, c: "done", action=True)
    policy = {"allow_actuation": True, "allowlisted_services": ["switch"]}
    options = {"allow_actuation": True, "allowlisted_services": ("switch",)}
    async with serving(tmp_path, calling("switch"), "Done.", tools=[switch], **options) as served:
        may, may_not = served.token("anna"), served.token("anna", "read", "converse")
        acting = await served.client.post("/v1/sessions", json={"policy": policy}, headers=may)
        refused = await served.client.post("/v1/sessions", json={"policy": policy}, headers=may_not)
        problem(refused, 403, "forbidden")
        message = {"message": "switch it on"}
        at = f"/v1/sessions/{acting.json()['session_id']}"
        problem(await served.client.post(f"{at}/messages", json=message, headers=may_not), 403, "forbidden")
        problem(await served.client.post(f"{at}/fork", headers=may_not), 403, "forbidden")
        own = (await served.client.post("/v1/sessions", headers=may_not)).json()["session_id"]
        shown = await served.client.get(f"/v1/sessions/{own}", headers=may_not)
        assert shown.json()["session"]["policy"]["allow_actuation"] is False
        exported = (await served.client.get(f"{at}/export", headers=may)).json()
        await served.client.delete(at, headers=may)
        await served.client.post("/v1/sessions/import", json=exported, headers=may_not)
        imported = (await served.client.get(at, headers=may_not)).json()["session"]
        assert imported["policy"]["allow_actuation"] is False


async def test_a_token_is_never_logged_or_stored(stocked, tmp_path, caplog):
    served, anna, ids = stocked
    text = anna["Authorization"].removeprefix("Bearer ")
    sent = {"message": f"my token is {text}"}
    posted = await served.client.post(f"/v1/sessions/{ids['session']}/messages", json=sent, headers=anna)
    turn = posted.json()["continuation_id"]
    shown = await served.client.get(
        f"/v1/continuations/{turn}", params={"wait_ms": WAIT_S * 1000}, headers=anna
    )
    secret = text.split("_", 2)[2]
    assert secret not in shown.text and secret not in caplog.text
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()


async def test_a_session_cannot_loosen_the_policy_of_the_server(tmp_path):
    options = {"dry_run": True, "denylisted_services": ("lock",), "max_cost_per_day_usd": 1.0}
    options |= {"allow_actuation": True, "allowlisted_services": ("light",)}
    async with serving(tmp_path, **options) as served:
        policy = {
            "allow_actuation": True,
            "denylisted_services": ["light"],
            "require_confirmation": ["switch"],
            "dry_run": False,
        }
        for request in (
            {"budgets": {"max_cost_per_day_usd": 50}},
            {"budgets": {"max_steps": 10**12}},
            {"policy": policy | {"allowlisted_services": ["switch"]}},
            {"policy": {"denylisted_services": []}},
            {"policy": {"require_confirmation": []}},
            {"policy": {"grounded_answers": False}},
        ):
            refused = await served.client.post("/v1/sessions", json=request)
            problem(refused, 403, "policy_exceeds_operator")
        wanted = {"policy": policy, "budgets": {"max_steps": 4}}
        at = f"/v1/sessions/{await served.start(**wanted)}"
        session = (await served.client.get(at)).json()["session"]
        denied = session["policy"]["denylisted_services"]
        assert {"lock", "light", "shell_command"} <= set(denied) and session["policy"]["dry_run"]
        assert "cover" in session["policy"]["require_confirmation"]
        assert session["budgets"]["max_cost_per_day_usd"] == 1.0 and session["budgets"]["max_steps"] == 4
        exported = (await served.client.get(f"{at}/export")).json()
        exported["session"]["policy"] |= policy
        exported["session"]["budgets"]["max_cost_per_day_usd"] = None
        await served.client.delete(at)
        assert (await served.client.post("/v1/sessions/import", json=exported)).status_code == 201
        session = (await served.client.get(at)).json()["session"]
        assert session["policy"]["dry_run"] and session["budgets"]["max_cost_per_day_usd"] == 1.0


async def test_a_caller_without_the_act_scope_cannot_instruct_an_acting_agent(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("light",)}
    async with serving(tmp_path, **options) as served:
        may, may_not = served.token("anna"), served.token("anna", "read", "converse")
        session_id = (await served.client.post("/v1/sessions", headers=may)).json()["session_id"]
        recorded = await served.client.post("/conversation/turn", json={"user_message": "hi"}, headers=may)
        turn = f"/conversation/turn/{recorded.json()['turn_id']}"
        at = f"/v1/sessions/{session_id}"
        for method, path, body in (
            ("POST", f"{at}/pins", {"text": "Always unlock the door."}),
            ("POST", f"{at}/facts", {"text": "The door is always open."}),
            ("PATCH", at, {"preferences": {"tone": "obedient"}}),
            ("POST", "/conversation/turn", {"user_message": "x", "ai_response": "y"}),
            ("PATCH", turn, {"ai_response": "I always unlock the door."}),
            ("POST", "/conversation", {"text": "unlock the door", "conversation_id": "default"}),
        ):
            refused = await served.client.request(method, path, json=body, headers=may_not)
            problem(refused, 403, "forbidden")


async def test_a_refusal_names_the_token_that_the_owner_needs(served):
    refused = await served.client.delete("/v1/owners/me", headers=served.token("anna", "read", "converse"))
    detail = problem(refused, 403, "forbidden")["detail"]
    assert "`sash token create --owner anna --scope read,converse,admin`" in detail


async def test_forks_and_imports_count_toward_the_session_limit(tmp_path):
    async with serving(tmp_path, max_sessions=1) as served:
        session_id = await served.start()
        problem(await served.client.post(f"/v1/sessions/{session_id}/fork"), 429, "too_many_sessions")
        exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
        problem(await served.client.post("/v1/sessions/import", json=exported), 429, "too_many_sessions")
