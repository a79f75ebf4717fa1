"""`/v1` over a real socket: every route, its JSON and its errors."""

import asyncio
import json

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from sash.testing import calling
from tests.surfaces.serving import REQUEST_S, WAIT_S, WaitingModel, problem, serving, until
from tests.tools import tool


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "It is 21.5 °C in the kitchen.") as served:
        yield served


async def test_a_turn_from_start_to_end(served):
    started = await served.client.post("/v1/sessions")
    assert started.status_code == 201 and list(started.json()) == ["session_id"]
    session_id = started.json()["session_id"]
    sent = await served.client.post(
        f"/v1/sessions/{session_id}/messages",
        json={"message": "How warm is it?", "stream": True, "planner_hints": {"prefer": "short"}},
    )
    assert sent.status_code == 202
    assert sent.json() == {"continuation_id": sent.json()["continuation_id"], "acknowledged": True}
    shown = await served.wait(sent.json()["continuation_id"])
    assert shown["status"] == "completed"
    assert shown["response"]["final_message"] == "It is 21.5 °C in the kitchen."
    assert shown["artifacts"] == [] and shown["request"]["message"] == "How warm is it?"
    assert {"n", "ts", "type", "detail"} <= shown["steps"][0].keys()
    listed = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()
    assert [(m["role"], m["content"]) for m in listed["messages"]] == [
        ("user", "How warm is it?"),
        ("assistant", "It is 21.5 °C in the kitchen."),
    ]
    assert listed["next_cursor"] is None
    wanted = {"id", "role", "content", "tags", "token_count", "timestamp", "continuation_id"}
    assert wanted <= listed["messages"][0].keys()
    session = (await served.client.get(f"/v1/sessions/{session_id}")).json()["session"]
    assert session["id"] == session_id and session["stats"]["turns"] == 1
    assert session["policy"]["allow_actuation"] is True  # in the demo home
    context = (await served.client.get(f"/v1/sessions/{session_id}/context")).json()
    assert {"parts", "total_tokens", "prefix_share", "evicted", "digest"} <= context.keys()
    found = (await served.client.get(f"/v1/sessions/{session_id}/search", params={"q": "kitchen"})).json()
    assert [m["role"] for m in found["messages"]] == ["assistant"]
    ended = await served.client.post(f"/v1/sessions/{session_id}/end", json={"reason": "done"})
    assert ended.json() == {"status": "ended"}
    again = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": "hi"})
    problem(again, 410, "session_ended")


async def test_lists_are_paginated(served):
    ids = [await served.start() for _ in range(3)]
    first = (await served.client.get("/v1/sessions", params={"limit": 2})).json()
    assert [s["id"] for s in first["sessions"]] == ids[:0:-1]
    rest = await served.client.get("/v1/sessions", params={"limit": 2, "cursor": first["next_cursor"]})
    assert [s["id"] for s in rest.json()["sessions"]] == ids[:1] and rest.json()["next_cursor"] is None
    await served.client.post(f"/v1/sessions/{ids[0]}/end")
    active = await served.client.get("/v1/sessions", params={"status": "active"})
    assert [s["id"] for s in active.json()["sessions"]] == ids[:0:-1]
    for _ in range(2):
        await served.wait(await served.send(ids[1]))
    page = (await served.client.get(f"/v1/sessions/{ids[1]}/messages", params={"limit": 3})).json()
    assert len(page["messages"]) == 3
    more = await served.client.get(f"/v1/sessions/{ids[1]}/messages", params={"cursor": page["next_cursor"]})
    assert [m["position"] for m in more.json()["messages"]] == [4]


async def test_a_message_to_a_busy_session_is_refused_queued_or_interrupts(waiting):
    served, model = waiting
    session_id = await served.start()
    first = await served.send(session_id, "one")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    refused = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": "two"})
    assert problem(refused, 409, "session_busy")["continuation_id"] == first
    second = await served.send(session_id, "two", busy="enqueue")
    shown = await served.client.get(f"/v1/continuations/{second}")
    assert shown.json()["status"] == "pending"
    model.go.set()
    assert (await served.wait(first))["status"] == "completed"
    assert (await served.wait(second))["status"] == "completed"


async def test_the_same_idempotency_key_returns_the_same_turn(served):
    session_id = await served.start()
    first = await served.send(session_id, idempotency_key="question 1")
    await served.wait(first)
    assert await served.send(session_id, idempotency_key="question 1") == first
    at = f"/v1/sessions/{session_id}/messages"
    other = await served.client.post(at, json={"message": "another", "idempotency_key": "question 1"})
    problem(other, 409, "key_reused")


async def test_a_body_without_a_json_content_type_is_refused(served):
    at = f"/v1/sessions/{await served.start()}/messages"
    sent = await served.client.post(at, content=b'{"message": "hi"}')
    assert "Content-Type: application/json" in problem(sent, 415, "unsupported_media_type")["detail"]


async def test_a_turn_that_waits_can_be_resumed_after_an_import(waiting):
    served, model = waiting
    session_id = await served.start()
    await served.send(session_id, "one")
    second = await served.send(session_id, "two", busy="enqueue")
    exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
    await served.client.delete(f"/v1/sessions/{session_id}")
    model.go.set()
    await served.client.post("/v1/sessions/import", json=exported)
    assert (await served.wait(await served.send(session_id, "three")))["status"] == "completed"
    await served.client.post(f"/v1/continuations/{second}/resume")
    assert (await served.wait(second))["status"] == "completed"


async def test_a_cancelled_turn_can_be_retried(waiting):
    served, model = waiting
    session_id = await served.start()
    sent = await served.send(session_id)
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    open_turns = (await served.client.get(f"/v1/sessions/{session_id}")).json()["open_continuations"]
    assert open_turns == [sent]
    cancelled = await served.client.post(f"/v1/continuations/{sent}/cancel", json={"reason": "too slow"})
    assert cancelled.json() == {"status": "cancelled"}
    assert (await served.wait(sent))["status"] == "cancelled"
    again = await served.client.post(f"/v1/continuations/{sent}/cancel")
    assert again.status_code == 200 and again.json() == {"status": "already_final"}
    problem(await served.client.post("/v1/continuations/nothing/cancel"), 404, "continuation_not_found")
    model.go.set()
    retried = await served.client.post(f"/v1/continuations/{sent}/retry")
    assert retried.status_code == 202
    shown = await served.wait(retried.json()["continuation_id"])
    assert (shown["status"], shown["retry_of"]) == ("completed", sent)


async def test_a_call_that_needs_an_approval_is_approved(tmp_path):
    unlock = tool("lock_unlock", lambda a, c: "unlocked", action=True)
    policy = {
        "allow_actuation": True,
        "allowlisted_services": ["lock_unlock"],
        "require_confirmation": ["lock_unlock"],
    }
    lines = (calling("lock_unlock"), "It is open.")
    async with serving(tmp_path, *lines, tools=[unlock], **policy) as served:
        session_id = await served.start(policy=policy)
        sent = await served.send(session_id, "Unlock the door")
        shown = await served.wait(sent)
        assert shown["status"] == "awaiting_approval"
        asked = shown["steps"][-1]["detail"]
        wrong = await served.client.post(
            f"/v1/continuations/{sent}/approve", json={"call_id": "no such", "approved": True}
        )
        problem(wrong, 409, "not_awaiting_approval")
        yes = await served.client.post(
            f"/v1/continuations/{sent}/approve", json={"call_id": asked["call_id"], "approved": True}
        )
        assert yes.status_code == 202
        done = await served.wait(sent)
        assert done["response"]["actions"][0]["outcome"] == "done"


async def test_a_question_runs_in_its_own_session(served):
    asked = await served.client.post("/v1/ask", json={"message": "How warm is it?"})
    assert asked.status_code == 200
    assert asked.json()["response"]["final_message"] == "It is 21.5 °C in the kitchen."
    shown = await served.client.get(f"/v1/sessions/{asked.json()['session_id']}")
    assert shown.json()["session"]["status"] == "ended"


async def test_facts_and_pins_are_added_and_deleted(served):
    session_id = await served.start()
    at = f"/v1/sessions/{session_id}"
    fact = (await served.client.post(f"{at}/facts", json={"text": "The cat sleeps in the garage."})).json()
    other = (await served.client.post(f"{at}/facts", json={"text": "The cat is called Mia."})).json()
    problem(await served.client.delete(f"{at}/facts/cat"), 404, "note_not_found")
    gone = (await served.client.delete(f"{at}/facts/{fact['id']}")).json()
    assert [f["id"] for f in gone["facts"]] == [fact["id"]]
    assert [f["id"] for f in (await served.client.get(f"{at}/facts")).json()["facts"]] == [other["id"]]
    pin = (await served.client.post(f"{at}/pins", json={"text": "Answer briefly."})).json()
    assert (await served.client.get(f"{at}/pins")).json()["pins"] == [pin]
    assert (await served.client.delete(f"{at}/pins/{pin['id']}")).status_code == 204
    problem(await served.client.delete(f"{at}/pins/{pin['id']}"), 404, "note_not_found")
    changed = await served.client.patch(at, json={"preferences": {"language": "de"}})
    assert changed.json()["session"]["preferences"] == {"language": "de"}


async def test_a_session_is_exported_imported_forked_and_deleted(served):
    session_id = await served.start()
    await served.wait(await served.send(session_id, "The code is 4711."))
    exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
    assert (exported["format"], exported["version"]) == ("sash.session", 1)
    problem(await served.client.post("/v1/sessions/import", json=exported), 409, "session_exists")
    forked = await served.client.post(f"/v1/sessions/{session_id}/fork")
    assert forked.status_code == 201
    deleted = await served.client.delete(f"/v1/sessions/{session_id}")
    assert deleted.json() == {"sessions": 1}
    problem(await served.client.get(f"/v1/sessions/{session_id}"), 404, "session_not_found")
    back = await served.client.post("/v1/sessions/import", json=exported)
    assert back.status_code == 201 and back.json() == {"session_id": session_id}
    found = await served.client.get(f"/v1/sessions/{session_id}/search", params={"q": "4711"})
    assert len(found.json()["messages"]) == 1
    problem(await served.client.post("/v1/sessions/import", json={"format": "x"}), 422, "invalid_export")


async def test_a_large_result_is_an_artifact(tmp_path):
    large = tool("read_all", lambda a, c: "<script>alert(1)</script>" * 1000)
    async with serving(tmp_path, calling("read_all"), "Read.", tools=[large]) as served:
        shown = await served.wait(await served.send(await served.start()))
        [ref] = shown["artifacts"]
        got = await served.client.get(f"/v1/artifacts/{ref['id']}")
        assert got.status_code == 200 and len(got.content) == ref["size"]
        assert got.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in got.headers["content-security-policy"]
        problem(await served.client.get("/v1/artifacts/none"), 404, "artifact_not_found")


async def test_statistics_are_returned_and_all_data_is_erased(served):
    session_id = await served.start()
    await served.wait(await served.send(session_id))
    stats = (await served.client.get("/v1/stats")).json()
    wanted = (
        "total_requests local_count model_count failed_requests total_tokens cached_share estimated_cost_usd"
    )
    assert set(wanted.split()) <= stats.keys() and stats["total_requests"] == 1
    assert (await served.client.delete("/v1/owners/me")).json() == {"sessions": 1}
    problem(await served.client.get(f"/v1/sessions/{session_id}"), 404, "session_not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe", 400, "invalid_json"),
        (b"[]", 422, "invalid_input"),
        (b"null", 422, "invalid_input"),
        (b'{"message": ""}', 422, "invalid_input"),
        (b'{"message": 5}', 422, "invalid_input"),
        (b'{"message": "hi", "allow_tools": "yes"}', 422, "invalid_input"),
        (b'{"message": "hi", "max_steps": -1}', 422, "invalid_input"),
        (b'{"message": "hi", "mesage": "hi"}', 422, "invalid_input"),
        (b'{"message": "hi", "busy": "never"}', 422, "invalid_input"),
        (b'{"message": "hi", "planner_hints": []}', 422, "invalid_input"),
        (b'{"message": "\\ud800"}', 422, "invalid_input"),
        (json.dumps({"message": "x" * (1 << 20) + "x"}).encode(), 413, "message_too_large"),
    ],
)
async def test_a_wrong_message_is_explained_and_changes_nothing(served, body, status, code):
    session_id = await served.start()
    sent = await served.client.post(
        f"/v1/sessions/{session_id}/messages", content=body, headers={"Content-Type": "application/json"}
    )
    problem(sent, status, code)
    assert (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"budgets": {"max_steps": "8"}},
        {"budgets": {"max_stepz": 8}},
        {"policy": {"allow_actuation": "false"}},
        {"policy": {"allowlisted_services": "light"}},
        {"window": {"evict_to": 2}},
        {"model": "gpt-4"},
        {"model": {"options": {"messages": []}}},
        {"preferences": 5},
        {"unknown": 1},
    ],
)
async def test_a_session_with_wrong_options_is_not_started(served, body):
    problem(await served.client.post("/v1/sessions", json=body), 422, "invalid_input")
    assert (await served.client.get("/v1/sessions")).json()["sessions"] == []


async def test_missing_things_are_not_found(served):
    problem(await served.client.get("/v1/sessions/none"), 404, "session_not_found")
    problem(await served.client.get("/v1/continuations/none"), 404, "continuation_not_found")
    problem(await served.client.get("/nowhere"), 404, "not_found")
    wrong = await served.client.put("/v1/sessions")
    problem(wrong, 405, "method_not_allowed")
    assert "GET" in wrong.headers["allow"]


async def test_the_number_of_sessions_of_an_owner_is_limited(tmp_path):
    async with serving(tmp_path, max_sessions=2) as served:
        first = await served.start()
        await served.start()
        refused = await served.client.post("/v1/sessions")
        problem(refused, 429, "too_many_sessions")
        assert refused.headers["retry-after"]
        await served.client.post(f"/v1/sessions/{first}/end")
        await served.start()


async def test_health_readiness_and_metrics(served):
    assert (await served.client.get("/health")).json()["status"] == "ok"
    assert (await served.client.get("/ready")).json() == {"status": "ready"}
    await served.wait(await served.send(await served.start()))
    metrics = (await served.client.get("/metrics")).text
    assert 'route="/v1/sessions/{session_id}/messages",status="202"} 1.0' in metrics
    schema = (await served.client.get("/openapi.json")).json()
    assert schema["openapi"].startswith("3.1") and "/v1/sessions" in schema["paths"]
    assert (await served.client.get("/docs")).status_code == 200


def watch(runtime):
    """Return a list that collects the turns for which callers wait."""
    waited_for, wait = [], runtime.await_continuation

    def await_continuation(continuation_id, **options):
        waited_for.append(continuation_id)
        return wait(continuation_id, **options)

    runtime.await_continuation = await_continuation
    return waited_for


async def test_a_stopping_server_refuses_turns_and_marks_running_ones(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        session_id = await served.start(policy={"resume_interrupted": False})
        sent = await served.send(session_id)
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        waited_for = watch(served.runtime)
        waits = asyncio.create_task(served.wait(sent))
        await until(lambda: waited_for == [sent], waits)
        draining = asyncio.create_task(served.runtime.drain(grace_s=0.05))
        assert (await waits)["status"] == "interrupted"
        await draining
        refused = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": "two"})
        problem(refused, 503, "shutting_down")
        problem(await served.client.get("/ready"), 503, "shutting_down")
    async with serving(tmp_path, "Here I am again.") as served:
        assert (await served.client.get(f"/v1/continuations/{sent}")).json()["status"] == "interrupted"
        resumed = await served.client.post(f"/v1/continuations/{sent}/resume")
        assert resumed.status_code == 202
        assert (await served.wait(sent))["response"]["final_message"] == "Here I am again."


async def test_a_waiting_client_gets_the_state_when_the_server_stops(tmp_path):
    """One turn is running; the other is queued and stays queued."""
    model, shown = WaitingModel(), {}
    async with httpx.AsyncClient(timeout=REQUEST_S) as client:
        async with serving(tmp_path, model=model, timeouts={"drain_s": 0.05}) as served:
            session_id = await served.start(policy={"resume_interrupted": False})
            first = await served.send(session_id, "one")
            await asyncio.wait_for(model.asked.wait(), WAIT_S)
            second = await served.send(session_id, "two", busy="enqueue")
            waited_for = watch(served.runtime)
            for turn in (first, second):
                at = f"{served.url}/v1/continuations/{turn}"
                waits = client.get(at, params={"wait_ms": WAIT_S * 1000})
                shown[turn] = asyncio.create_task(waits)
                await until(lambda turn=turn: turn in waited_for, shown[turn])
            await until(lambda: served.runtime.count_subscribers(), shown[second])
        answers = [await shown[turn] for turn in (first, second)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["status"] for answer in answers] == ["interrupted", "pending"]


async def test_a_turn_continues_after_its_client_disconnects(waiting, monkeypatch):
    served, model = waiting
    gone, connection_lost = asyncio.Event(), H11Protocol.connection_lost

    def note(connection, error):
        connection_lost(connection, error)
        gone.set()

    monkeypatch.setattr(H11Protocol, "connection_lost", note)
    session_id = await served.start()
    sent = await served.send(session_id)
    waited_for = watch(served.runtime)
    waits = asyncio.create_task(served.wait(sent))
    await until(lambda: waited_for == [sent], waits)
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    await asyncio.wait_for(gone.wait(), WAIT_S)
    model.go.set()
    assert (await served.wait(sent))["status"] == "completed"


async def test_a_search_shows_statements_before_the_question_and_no_tool_results(tmp_path):
    lines = calling("look"), "The boiler code is 4711.", "The boiler code is 4711, as I said."
    read_code = tool("look", lambda arguments, context: {"boiler code": "4711"})
    async with serving(tmp_path, *lines, tools=[read_code]) as served:
        session_id = await served.start()
        for message in ("What is it", "boiler code"):
            await served.wait(await served.send(session_id, message))
        path = f"/v1/sessions/{session_id}/search"
        found = (await served.client.get(path, params={"q": "boiler code"})).json()["messages"]
        assert [m["role"] for m in found] == ["assistant", "assistant", "user"]
        [best] = (await served.client.get(path, params={"q": "boiler code", "limit": 1})).json()["messages"]
        assert best["role"] == "assistant"


async def test_a_setting_allows_several_turns_at_the_same_time(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model, max_open_continuations_per_session=2) as served:
        session_id = await served.start()
        sent = [await served.send(session_id, text) for text in ("one", "two")]
        third = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": "three"})
        assert problem(third, 409, "session_busy")["continuation_id"] == sent[0]
        shown = (await served.client.get(f"/v1/sessions/{session_id}")).json()
        assert shown["open_continuations"] == sent
        model.go.set()
        assert [(await served.wait(turn))["status"] for turn in sent] == ["completed"] * 2
        messages = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"] * 2
