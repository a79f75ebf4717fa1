"""MCP: approvals, and turns as tasks of clients with the Tasks extension."""

import asyncio

from sash.errors import ContextTooLong
from sash.testing import calling
from tests.surfaces.mcp.unlocking import LET_IT_UNLOCK, YES, locked_turn
from tests.surfaces.serving import WAIT_S, WaitingModel, serving
from tests.surfaces.speaking import ERAS, call, eras, refused, rpc, talking, use
from tests.tools import tool


@eras
async def test_a_call_that_needs_an_approval_is_approved(locked, era):
    async with talking(locked.url, era) as mcp:
        session_id = (await call(mcp, "ha_agent_start_session", policy=LET_IT_UNLOCK))["session_id"]
        sent = await call(mcp, "ha_agent_send_message", session_id=session_id, message="Unlock the door")
        named = {"continuation_id": sent["continuation_id"]}
        stands = await call(mcp, "ha_agent_await_continuation", **named)
        assert stands["status"] == "awaiting_approval" and "ha_agent_approve" in stands["to_do"]
        [waits] = stands["waiting_calls"]
        assert waits["name"] == "lock_unlock" and waits["reason"]
        wrong = await refused(mcp, "ha_agent_approve", call_id="none", approved=True, **named)
        assert wrong == "not_awaiting_approval"
        done = await call(mcp, "ha_agent_approve", call_id=waits["call_id"], approved=True, **named)
        assert done["response"]["actions"][0]["outcome"] == "done"


async def test_a_question_that_needs_an_approval_ends_its_session_afterwards(tmp_path):
    unlock = tool("lock_unlock", lambda a, c: "unlocked", action=True)
    lines = (calling("lock_unlock"), "It is open.")
    async with (
        serving(tmp_path, *lines, tools=[unlock], **LET_IT_UNLOCK) as served,
        talking(served.url, ERAS[1]) as mcp,
    ):
        stands = await call(mcp, "ha_agent_ask", message="Unlock the door")
        assert stands["status"] == "awaiting_approval"
        session = {"session_id": stands["session_id"]}
        assert (await call(mcp, "ha_agent_get_session", **session))["session"]["status"] == "active"
        [waits] = stands["waiting_calls"]
        named = {"continuation_id": stands["continuation_id"], "call_id": waits["call_id"]}
        assert (await call(mcp, "ha_agent_approve", approved=True, **named))["status"] == "completed"
        assert (await call(mcp, "ha_agent_get_session", **session))["session"]["status"] == "ended"


async def acknowledged(served, method: str, params: dict) -> None:
    """Make a request whose result is only an acknowledgement."""
    result = (await rpc(served, method, params))["result"]
    assert (result.pop("resultType"), [*result]) == ("complete", ["_meta"])


async def settled(served, task_id: str) -> dict:
    """Poll a task until it ends."""
    async with asyncio.timeout(WAIT_S):
        while True:
            task = (await rpc(served, "tasks/get", {"taskId": task_id}))["result"]
            if task["status"] not in ("working", "input_required"):
                return task
            await asyncio.sleep(0.01)


async def test_a_question_is_a_task_for_clients_with_the_extension(waiting):
    served, model = waiting
    created = await use(served, "ha_agent_ask", {"message": "How warm is it?"})
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", 86_400_000)
    assert created["createdAt"].endswith("Z") and "content" not in created
    task = (await rpc(served, "tasks/get", {"taskId": created["taskId"]}))["result"]
    assert task["status"] == "working" and "result" not in task
    model.go.set()
    task = await settled(served, created["taskId"])
    assert task["status"] == "completed" and task["resultType"] == "complete"
    plain = await use(served, "ha_agent_await_continuation", {"continuation_id": created["taskId"]})
    assert task["result"]["structuredContent"] == plain["structuredContent"]
    assert plain["structuredContent"]["response"]["final_message"] == "Let me see what there is."
    async with asyncio.timeout(WAIT_S):
        while (await served.client.get("/v1/sessions")).json()["sessions"]:
            await asyncio.sleep(0.01)


async def test_a_client_without_the_extension_gets_no_task(served):
    answer = await use(served, "ha_agent_ask", {"message": "How warm is it?"}, tasks=False)
    assert answer["structuredContent"]["status"] == "completed"
    params = {"taskId": answer["structuredContent"]["continuation_id"], "inputResponses": {}}
    needed = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    for method in ("get", "update", "cancel"):
        error = (await rpc(served, f"tasks/{method}", params, tasks=False))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
        body = {"jsonrpc": "2.0", "id": 1, "method": f"tasks/{method}", "params": params}
        old = {"mcp-protocol-version": "2025-11-25", "accept": "application/json, text/event-stream"}
        answer = (await served.client.post("/mcp", json=body, headers=old)).text
        assert "-32601" in answer


async def test_a_cancelled_task_stays_cancelled(waiting):
    served, model = waiting
    created = await use(served, "ha_agent_ask", {"message": "How warm is it?"})
    named = {"taskId": created["taskId"]}
    for _ in range(2):
        await acknowledged(served, "tasks/cancel", named)
    assert (await settled(served, created["taskId"]))["status"] == "cancelled"
    assert not model.go.is_set()


async def test_a_missing_task_is_reported(served):
    for method in ("get", "update", "cancel"):
        params = {"taskId": "none", "inputResponses": {}}
        assert (await rpc(served, f"tasks/{method}", params))["error"]["code"] == -32602
        wrong = await rpc(served, f"tasks/{method}", params, name="another")
        assert wrong["error"]["code"] == -32020
    for method in ("list", "result"):
        assert (await rpc(served, f"tasks/{method}", {"taskId": "none"}))["error"]["code"] == -32601


NOS_AND_A_YES = [
    (YES, "done"),
    ({"action": "accept", "content": {"approved": False}}, "denied"),
    ({"action": "accept", "content": {"approved": "yes"}}, "denied"),
    ({"action": "accept", "content": {}}, "denied"),
    ({"action": "accept"}, "denied"),
    ({"action": "decline"}, "denied"),
    ({"action": "cancel", "content": {"approved": True}}, "denied"),
    (True, "denied"),
]


async def test_a_task_is_approved_or_denied(locked):
    for answer, outcome in NOS_AND_A_YES:
        assert await answered(locked, answer) == outcome, answer


async def answered(locked, answer) -> str:
    """Answer a task, among other answers, and return the outcome of the call."""
    task_id = await locked_turn(locked)
    task = (await rpc(locked, "tasks/get", {"taskId": task_id}))["result"]
    assert task["status"] == "input_required"
    [(key, asks)] = task["inputRequests"].items()
    assert asks["method"] == "elicitation/create" and asks["params"]["message"] == "Do “lock unlock”?"
    assert asks["params"]["requestedSchema"]["required"] == ["approved"]
    others = {"taskId": task_id, "inputResponses": {"another": YES}}
    await acknowledged(locked, "tasks/update", others)
    assert (await rpc(locked, "tasks/get", {"taskId": task_id}))["result"]["status"] == "input_required"
    given = {"taskId": task_id, "inputResponses": {key: answer}}
    await acknowledged(locked, "tasks/update", given)
    task = await settled(locked, task_id)
    await acknowledged(locked, "tasks/update", given)
    [action] = task["result"]["structuredContent"]["response"]["actions"]
    return action["outcome"]


async def test_a_failed_task_completes_with_an_error(tmp_path):
    async with serving(tmp_path, ContextTooLong("too much was said")) as served:
        failed = await use(served, "ha_agent_ask", {"message": "hi"}, tasks=False)
        task = await settled(served, failed["structuredContent"]["continuation_id"])
        assert task["result"]["structuredContent"] == failed["structuredContent"]
        assert (task["status"], task["result"]["isError"]) == ("completed", True)
        assert task["statusMessage"] == "too much was said"


async def test_an_interrupted_task_asks_whether_to_continue(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model, timeouts={"drain_s": 0.0}) as served:
        created = await use(served, "ha_agent_ask", {"message": "hi"})
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
    async with serving(tmp_path, "Here I am again.") as served:
        named = {"taskId": created["taskId"]}
        task = (await rpc(served, "tasks/get", named))["result"]
        assert task["status"] == "input_required"
        assert "Shall it continue?" in task["inputRequests"]["resume"]["params"]["message"]
        turn = {"continuation_id": created["taskId"]}
        plain = (await use(served, "ha_agent_await_continuation", turn))["structuredContent"]
        assert plain["status"] == "interrupted" and "ha_agent_resume" in plain["to_do"]
        for answer in ({"action": "decline"}, {"action": "accept", "content": {"approved": False}}):
            await rpc(served, "tasks/update", named | {"inputResponses": {"resume": answer}})
            assert (await rpc(served, "tasks/get", named))["result"]["status"] == "input_required"
        yes = {"action": "accept", "content": {"approved": True}}
        await rpc(served, "tasks/update", named | {"inputResponses": {"resume": yes}})
        assert (await settled(served, created["taskId"]))["status"] == "completed"
