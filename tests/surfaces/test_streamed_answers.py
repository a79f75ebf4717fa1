"""Requests that are answered by an event stream: `stream`, or `Accept: text/event-stream`."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest

from sash import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock, calling
from tests.surfaces.serving import WAIT_S, WaitingModel, frames, is_final, problem, serving, until
from tests.tools import tool

DAY_S = 86_400
ACCEPT = {"Accept": "text/event-stream"}
ASKS = [
    ("/v1/ask", {"message": "how is the hall?", "stream": True}, {}),
    ("/v1/ask", {"message": "how is the hall?"}, ACCEPT),
    ("/conversation", {"text": "how is the hall?", "stream": True}, {}),
    ("/conversation", {"text": "how is the hall?"}, ACCEPT),
]


@asynccontextmanager
async def streaming(served, path, body, headers=None):
    """Yield the response to a request, and the frames of its event stream."""
    async with (
        asyncio.timeout(WAIT_S),
        served.client.stream("POST", path, json=body, headers=headers or {}) as stream,
    ):
        assert stream.status_code == 200, await stream.aread()
        assert stream.headers["content-type"].startswith("text/event-stream")
        async with aclosing(frames(stream)) as found:
            yield stream, found


async def read_all(served, path, body, headers=None):
    async with streaming(served, path, body, headers) as (_, found):
        return [frame async for frame in found]


def durable(events):
    return [event for event in events[1:] if "id" in event]


@pytest.mark.parametrize(("path", "body", "headers"), ASKS)
async def test_an_answer_is_streamed_and_ends_with_final(tmp_path, path, body, headers):
    look = tool("look", lambda a, c: "fine")
    async with serving(tmp_path, calling("look", room="hall"), "All is well.", tools=[look]) as served:
        events = await read_all(served, path, body, headers)
        assert events[0] == {"id": "0"}
        assert [event["event"] for event in durable(events)] == ["step", "step", "step", "final"]
        assert is_final(events[-1])
        final = events[-1]["data"]["payload"]
        assert final["final_response"]["final_message"] == "All is well."
        assert (final["status"], final["error"]) == ("completed", None)
        # The same events, with the same ids, are at /events/{session_id}.
        session_id = events[-1]["data"]["session_id"]
        stored = await served.runtime.store.events("local", session_id)
        assert [str(item.step.cursor) for item in stored] == [event["id"] for event in durable(events)]


async def test_a_message_of_a_session_is_streamed_by_the_header_alone(tmp_path):
    async with serving(tmp_path, "One.", "Two.", "Three.") as served:
        session_id = await served.start()
        await served.wait(await served.send(session_id, "1", stream=True))
        path = f"/v1/sessions/{session_id}/messages"
        events = await read_all(served, path, {"message": "2", "idempotency_key": "k"}, ACCEPT)
        assert events[0] == {"id": "1"}, "only the events of this turn"
        assert [event["event"] for event in durable(events)] == ["final"]
        assert events[-1]["data"]["payload"]["final_response"]["final_message"] == "Two."
        again = await read_all(served, path, {"message": "2", "idempotency_key": "k"}, ACCEPT)
        assert durable(again) == durable(events)


async def test_text_is_streamed_while_the_model_writes_it(waiting):
    served, model = waiting
    async with streaming(served, "/v1/ask", {"message": "hi", "stream": True}) as (_, found):
        texts = []
        async for event in found:
            if event.get("event") == "partial":
                texts.append(event["data"]["payload"]["partial_response"])
                model.go.set()
        assert texts == ["Let me see ", "what there is."] and is_final(event)


@pytest.mark.parametrize(("message", "mark"), [("lock it", {"is_provisional": True}), ("is it locked?", {})])
async def test_text_that_may_be_corrected_is_marked_in_the_stream(tmp_path, message, mark):
    model, act = WaitingModel(), tool("act", lambda a, c: "done", action=True)
    async with (
        serving(tmp_path, model=model, tools=[act]) as served,
        streaming(served, "/v1/ask", {"message": message, "stream": True}) as (_, found),
    ):
        payloads = []
        async for event in found:
            if event.get("event") == "partial":
                payloads.append(event["data"]["payload"])
                model.go.set()
        assert payloads[0] == {"partial_response": "Let me see ", **mark}
        assert all(payload.get("is_provisional", False) is bool(mark) for payload in payloads)
        assert event["data"]["payload"]["final_response"]["final_message"] == "Let me see what there is."


async def test_the_stream_of_a_conversation_names_the_conversation(served):
    async with streaming(served, "/conversation", {"text": "hi", "stream": True}) as (stream, found):
        conversation_id = stream.headers["x-conversation-id"]
        assert is_final([event async for event in found][-1])
    kept = await served.client.get("/conversation", params={"conversation_id": conversation_id})
    assert [turn["user_message"] for turn in kept.json()["turns"]] == ["hi"]


async def test_a_stream_ends_with_final_if_the_turn_fails(tmp_path):
    def fail(request):
        raise ValueError("broken")

    async with serving(tmp_path, fail) as served:
        *_, last = await read_all(served, "/v1/ask", {"message": "hi", "stream": True})
        assert is_final(last)
        assert (last["data"]["payload"]["status"], last["data"]["payload"]["final_response"]) == (
            "failed",
            None,
        )
        assert last["data"]["payload"]["error"]["code"] == "internal_error"


async def test_a_stream_ends_with_final_if_the_turn_is_cancelled(waiting):
    served, _ = waiting
    async with streaming(served, "/v1/ask", {"message": "hi", "stream": True}) as (_, found):
        async for event in found:
            if event.get("event") == "partial":
                turn = event["data"]["continuation_id"]
                await served.client.post(f"/v1/continuations/{turn}/cancel")
        assert is_final(event) and event["data"]["payload"]["status"] == "cancelled"


async def test_a_stream_ends_with_the_step_that_asks_for_an_approval(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",)}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        body = {"text": "Unlock the front door", "conversation_id": "hall", "stream": True}
        *_, last = await read_all(served, "/conversation", body)
        assert last["event"] == "step"
        assert last["data"]["payload"]["step"]["detail"]["event"] == "approval_requested"
        *_, final = await read_all(served, "/conversation", body | {"text": "yes"})
        assert is_final(final)
        [action] = final["data"]["payload"]["final_response"]["actions"]
        assert action["verified"] is True


async def test_a_turn_goes_on_if_the_client_disconnects(waiting):
    served, model = waiting
    async with streaming(served, "/v1/ask", {"message": "hi", "stream": True}) as (_, found):
        async for event in found:
            if "data" in event:
                break
    await until(lambda: served.runtime.count_subscribers() == 0)
    model.go.set()
    assert (await served.wait(event["data"]["continuation_id"]))["status"] == "completed"


async def test_a_stream_ends_with_final_if_retention_has_deleted_the_steps(tmp_path):
    clock = FakeClock()
    async with serving(tmp_path, "One.", clock=clock) as served:
        session_id = await served.start()
        path, body = f"/v1/sessions/{session_id}/messages", {"message": "1", "idempotency_key": "k"}
        *_, final = await read_all(served, path, body, ACCEPT)
        clock.advance(DAY_S + 1)
        assert (await served.runtime.sweep()).steps == 1
        again = await read_all(served, path, body, ACCEPT)
        assert durable(again) == [] and is_final(again[-1])
        assert again[-1]["data"]["payload"] == final["data"]["payload"] | {"step": None}


async def test_a_stream_ends_with_final_if_retention_deletes_the_steps_before_it_reads_them(
    tmp_path, monkeypatch
):
    clock, model, is_swept = FakeClock(), WaitingModel(), asyncio.Event()
    async with serving(tmp_path, model=model, clock=clock) as served:
        path, read_events = f"/v1/sessions/{await served.start()}/messages", served.runtime.store.events

        async def read_late(*arguments, **options):
            if model.go.is_set():
                await is_swept.wait()
            return await read_events(*arguments, **options)

        monkeypatch.setattr(served.runtime.store, "events", read_late)
        async with streaming(served, path, {"message": "hi"}, ACCEPT) as (_, found):
            await anext(found)
            turn = (await anext(found))["data"]["continuation_id"]
            model.go.set()
            await served.wait(turn)
            clock.advance(DAY_S + 1)
            assert (await served.runtime.sweep()).steps == 1
            is_swept.set()
            *_, last = [event async for event in found]
        assert is_final(last) and "id" not in last
        assert last["data"]["payload"]["final_response"]["final_message"] == "Let me see what there is."


async def test_a_stream_ends_if_the_server_stops(tmp_path):
    model = WaitingModel()
    timeouts = {"drain_s": 0.0}
    async with serving(tmp_path, model=model, timeouts=timeouts) as served:
        asking = asyncio.create_task(read_all(served, "/v1/ask", {"message": "hi", "stream": True}))
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        await until(served.runtime.count_subscribers, asking)
        await served.runtime.close()
        events = await asyncio.wait_for(asking, WAIT_S)
        assert all(event["data"]["type"] != "final" for event in events if "data" in event)


async def test_a_refused_stream_starts_no_turn(tmp_path):
    async with serving(tmp_path, max_subscribers=1) as served:
        session_id = await served.start()
        async with (
            served.client.stream("GET", f"/events/{session_id}") as first,
            aclosing(first.aiter_lines()) as lines,
        ):
            await anext(lines)
            for path, body, headers in ASKS:
                refused = await served.client.post(path, json=body, headers=headers)
                problem(refused, 429, "too_many_subscribers")
        assert len((await served.client.get("/v1/sessions")).json()["sessions"]) == 1


async def test_a_stream_needs_the_scope_to_read(served):
    writer, anna = served.token("anna", "converse"), served.token("anna")
    started = await served.client.post("/v1/sessions", headers=anna)
    path = f"/v1/sessions/{started.json()['session_id']}/messages"
    refused = await served.client.post(path, json={"message": "hi"}, headers=writer | ACCEPT)
    problem(refused, 403, "forbidden")
    assert (await served.client.get(path, headers=anna)).json()["messages"] == []


async def test_a_wrong_body_is_a_problem_although_a_stream_is_wanted(served):
    problem(await served.client.post("/v1/ask", json={}, headers=ACCEPT), 422, "invalid_input")
    missing = await served.client.post("/v1/sessions/none/messages", json={"message": "x"}, headers=ACCEPT)
    problem(missing, 404, "session_not_found")


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/event-stream;q=0", "application/json, text/event-stream"]
)
async def test_other_accept_headers_get_json(served, accept):
    asked = await served.client.post("/v1/ask", json={"message": "hi"}, headers={"Accept": accept})
    assert asked.headers["content-type"] == "application/json"
