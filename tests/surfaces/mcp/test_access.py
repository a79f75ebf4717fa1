"""MCP: owners, tokens and scopes."""

import json

from tests.surfaces.mcp.unlocking import LET_IT_UNLOCK, YES, locked_turn
from tests.surfaces.speaking import AGENT_TOOL_NAMES, rpc, use


async def test_an_owner_cannot_reach_data_of_another_owner(locked):
    anna, ben = locked.token("anna"), locked.token("ben")
    started = await use(locked, "ha_agent_start_session", {"policy": LET_IT_UNLOCK}, headers=anna)
    session_id = started["structuredContent"]["session_id"]
    message = {"session_id": session_id, "message": "Unlock the door"}
    sent = await use(locked, "ha_agent_send_message", message, headers=anna)
    turn_id = sent["structuredContent"]["continuation_id"]
    await use(locked, "ha_agent_await_continuation", {"continuation_id": turn_id}, headers=anna, tasks=False)
    of_session, of_turn = {"session_id": session_id}, {"continuation_id": turn_id}
    arguments = {
        "ha_agent_get_session": of_session,
        "ha_agent_send_message": message,
        "ha_agent_end_session": of_session,
        "ha_agent_update_session": {**of_session, "name": "mine"},
        "ha_agent_fork_session": of_session,
        "ha_agent_delete_session": of_session,
        "ha_agent_reset_session": of_session,
        "ha_agent_list_messages": of_session,
        "ha_agent_tag_message": {**of_session, "message_id": "x", "tags": ["important"]},
        "ha_agent_list_waiting": of_session,
        "ha_agent_cancel_waiting": {"waiting_id": "01KDVDNA003ES3FC9C2EWV9HZJ"},
        "ha_agent_list_facts": of_session,
        "ha_agent_remember": {**of_session, "text": "x"},
        "ha_agent_forget": {**of_session, "fact_id": "x"},
        "ha_agent_list_pins": of_session,
        "ha_agent_pin": {**of_session, "text": "x"},
        "ha_agent_unpin": {**of_session, "pin_id": "x"},
        "ha_agent_await_continuation": of_turn,
        "ha_agent_resume": of_turn,
        "ha_agent_retry": of_turn,
        "ha_agent_approve": {**of_turn, "call_id": "call", "approved": True},
    }
    for tasks in (True, False):
        for name, given in arguments.items():
            result = await use(locked, name, given, headers=ben, tasks=tasks)
            assert result["isError"], name
            assert result["structuredContent"]["code"].endswith("_not_found"), name
        cancelled = await use(locked, "ha_agent_cancel", of_turn, headers=ben, tasks=tasks)
        assert cancelled["structuredContent"] == {"status": "not_found"}
        listed = await use(locked, "ha_agent_list_sessions", {}, headers=ben, tasks=tasks)
        assert listed["structuredContent"]["sessions"] == []
    for uri in (f"sash://sessions/{session_id}", f"sash://continuations/{turn_id}"):
        assert (await rpc(locked, "resources/read", {"uri": uri}, headers=ben))["error"]["code"] == -32602
    listed = (await rpc(locked, "resources/read", {"uri": "sash://sessions"}, headers=ben))["result"]
    assert session_id not in json.dumps(listed)
    for method in ("get", "update", "cancel"):
        params = {"taskId": turn_id, "inputResponses": {"call": YES}}
        assert (await rpc(locked, f"tasks/{method}", params, headers=ben))["error"]["code"] == -32602
    wanted = {
        "ref": {"type": "ref/resource", "uri": "sash://sessions/{session_id}"},
        "argument": {"name": "session_id", "value": ""},
    }
    completed = await rpc(locked, "completion/complete", wanted, headers=ben)
    assert completed["result"]["completion"]["values"] == []
    shown = await use(locked, "ha_agent_await_continuation", of_turn, headers=anna, tasks=False)
    assert shown["structuredContent"]["status"] == "awaiting_approval"
    untouched = {*AGENT_TOOL_NAMES} - {*arguments} - {"ha_agent_cancel", "ha_agent_list_sessions"}
    own = {"ha_agent_get_preferences", "ha_agent_set_preferences"}
    assert untouched == {"ha_agent_ask", "ha_agent_start_session"} | own


async def test_a_plot_of_another_owner_is_not_shown(house):
    anna, ben = house.token("anna"), house.token("ben")
    started = await use(house, "ha_agent_start_session", {}, headers=anna)
    session_id = started["structuredContent"]["session_id"]
    arguments = {"entity_ids": ["sensor.outdoor_temperature"], "plot": True, "session_id": session_id}
    drawn = await use(house, "get_history", arguments, headers=anna)
    uri = f"sash://artifacts/{drawn['structuredContent']['plot']['artifact']}"
    assert "result" in await rpc(house, "resources/read", {"uri": uri}, headers=anna)
    assert (await rpc(house, "resources/read", {"uri": uri}, headers=ben))["error"]["code"] == -32602
    drawn = await use(house, "get_history", arguments, headers=ben)
    assert drawn["structuredContent"]["code"] == "session_not_found"


async def test_every_request_needs_a_token_once_one_exists(served):
    served.token("anna")
    asked = await served.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert asked.status_code == 401 and asked.headers["www-authenticate"]


NEEDS = [
    ("ha_agent_list_sessions", {}, "read"),
    ("ha_agent_get_session", {"session_id": "x"}, "read"),
    ("ha_agent_await_continuation", {"continuation_id": "x"}, "read"),
    ("ha_agent_ask", {"message": "hi"}, "read"),
    ("ha_agent_ask", {"message": "hi"}, "converse"),
    ("ha_agent_start_session", {}, "converse"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi"}, "converse"),
    ("ha_agent_cancel", {"continuation_id": "x"}, "converse"),
    ("ha_agent_resume", {"continuation_id": "x"}, "converse"),
    ("ha_agent_retry", {"continuation_id": "x"}, "converse"),
    ("ha_agent_end_session", {"session_id": "x"}, "converse"),
    ("ha_agent_update_session", {"session_id": "x", "name": "n"}, "converse"),
    ("ha_agent_fork_session", {"session_id": "x"}, "converse"),
    ("ha_agent_delete_session", {"session_id": "x"}, "converse"),
    ("ha_agent_reset_session", {"session_id": "x"}, "converse"),
    ("ha_agent_list_messages", {"session_id": "x"}, "read"),
    ("ha_agent_tag_message", {"session_id": "x", "message_id": "x", "tags": ["a"]}, "converse"),
    ("ha_agent_list_waiting", {}, "read"),
    ("ha_agent_cancel_waiting", {"waiting_id": "x"}, "converse"),
    ("ha_agent_list_facts", {}, "read"),
    ("ha_agent_remember", {"text": "x"}, "converse"),
    ("ha_agent_forget", {"fact_id": "x"}, "converse"),
    ("ha_agent_list_pins", {}, "read"),
    ("ha_agent_pin", {"text": "x"}, "converse"),
    ("ha_agent_unpin", {"pin_id": "x"}, "converse"),
    ("ha_agent_get_preferences", {}, "read"),
    ("ha_agent_set_preferences", {"preferences": {"language": "de"}}, "converse"),
    ("ha_agent_update_session", {"session_id": "x", "policy": {"dry_run": True}}, "act"),
    ("ha_agent_approve", {"continuation_id": "x", "call_id": "x", "approved": True}, "act"),
    ("ha_agent_start_session", {"policy": {"allow_actuation": True}}, "act"),
    ("get_states", {"entity_ids": ["light.hallway"]}, "read"),
    ("get_history", {"entity_ids": ["light.hallway"], "plot": True, "session_id": "x"}, "converse"),
]


async def test_every_tool_needs_its_scope(house):
    for name, arguments, scope in NEEDS:
        others = [one for one in ("read", "converse", "act", "admin") if one != scope]
        result = await use(house, name, arguments, headers=house.token("anna", *others), tasks=False)
        assert result["isError"], (name, scope)
        told = result["structuredContent"]
        assert (told["code"], told["scope"]) == ("forbidden", scope), (name, scope)
    assert {*AGENT_TOOL_NAMES} <= {name for name, _, _ in NEEDS}
    assert (await house.client.get("/v1/sessions", headers=house.token("anna"))).json()["sessions"] == []


async def test_resources_and_tasks_need_their_scopes(locked):
    anna, reader = locked.token("anna"), locked.token("anna", "read")
    turn_id = await locked_turn(locked, anna)
    session = await rpc(
        locked, "resources/read", {"uri": "sash://sessions"}, headers=locked.token("anna", "act")
    )
    assert (session["error"]["code"], session["error"]["data"]["code"]) == (-32600, "forbidden")
    shown = await rpc(locked, "tasks/get", {"taskId": turn_id}, headers=reader)
    assert shown["result"]["status"] == "input_required"
    params = {"taskId": turn_id, "inputResponses": {"call": YES}}
    for method in ("update", "cancel"):
        answer = await rpc(locked, f"tasks/{method}", params, headers=reader)
        assert answer["error"]["data"]["code"] == "forbidden"
    shown = await rpc(locked, "tasks/get", {"taskId": turn_id}, headers=anna)
    assert shown["result"]["status"] == "input_required"
