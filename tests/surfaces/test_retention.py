"""`ask` leaves no session in lists, and retention deletes old sessions, as a user of the server sees it."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from sash import Runtime
from sash.app.assembly import make_runtime
from sash.app.settings import Settings
from sash.errors import InvalidInput
from sash.server.metrics import Metrics
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import Retention
from tests.home.small_home import house
from tests.surfaces.command_line import NO_HOME, SENTENCE
from tests.surfaces.serving import WAIT_S, problem, serving
from tests.surfaces.speaking import call, eras, talking


async def listed(served):
    return [session["id"] for session in (await served.client.get("/v1/sessions")).json()["sessions"]]


async def test_a_question_over_rest_leaves_nothing_in_the_list(served):
    asked = (await served.client.post("/v1/ask", json={"message": "hi"})).json()
    assert await listed(served) == []
    shown = await served.client.get(f"/v1/continuations/{asked['continuation_id']}")
    assert shown.json()["response"]["final_message"] == "ok"
    assert (await served.client.get("/v1/stats")).json()["total_requests"] == 1
    deleted = await served.client.delete(f"/v1/sessions/{asked['session_id']}")
    assert deleted.status_code == 200
    problem(
        await served.client.get(f"/v1/continuations/{asked['continuation_id']}"),
        404,
        "continuation_not_found",
    )


async def test_a_question_with_keep_is_listed_and_can_be_continued(served):
    asked = (await served.client.post("/v1/ask", json={"message": "hi", "keep": True})).json()
    assert await listed(served) == [asked["session_id"]]
    again = await served.wait(await served.send(asked["session_id"], "and more?"))
    assert again["status"] == "completed"


async def test_a_question_that_still_runs_is_listed(waiting):
    served, model = waiting
    asked = (await served.client.post("/v1/ask", json={"message": "hi", "timeout_ms": 0})).json()
    assert await listed(served) == [asked["session_id"]]
    model.go.set()
    await served.wait(asked["continuation_id"])
    assert await listed(served) == []


@eras
async def test_mcp_asks_keeps_forks_and_deletes(served, era):
    async with talking(served.url, era) as client:
        await call(client, "ha_agent_ask", message="hi")
        assert (await call(client, "ha_agent_list_sessions"))["sessions"] == []
        kept = await call(client, "ha_agent_ask", message="hi", keep=True)
        session_id, turn_id = kept["session_id"], kept["continuation_id"]
        fork = await call(client, "ha_agent_fork_session", session_id=session_id, at=turn_id)
        ids = [session["id"] for session in (await call(client, "ha_agent_list_sessions"))["sessions"]]
        assert ids == [fork["session_id"], session_id]
        assert await call(client, "ha_agent_delete_session", session_id=session_id) == {"sessions": 1}
        ids = [session["id"] for session in (await call(client, "ha_agent_list_sessions"))["sessions"]]
        assert ids == [fork["session_id"]]


async def test_the_settings_decide_when_sessions_are_deleted(tmp_path):
    clock = FakeClock()
    settings = Settings(
        data=tmp_path, home="none", transcript_retention_days=30, continuation_retention_hours=2
    )
    async with make_runtime(settings, clock=clock) as runtime:
        ended = await runtime.start_session()
        asked = await runtime.ask("hello", timeout_s=WAIT_S)
        await runtime.end_session(ended.id)
        clock.advance(timedelta(hours=3).total_seconds())
        assert (await runtime.sweep()).deleted_sessions == 1, asked
        clock.advance(timedelta(days=29).total_seconds())
        assert (await runtime.sweep()).deleted_sessions == 0
        clock.advance(timedelta(days=1).total_seconds())
        assert (await runtime.sweep()).deleted_sessions == 1
        assert runtime.swept.deleted_sessions == 2
        metrics = Metrics()
        metrics.count_swept(runtime.swept)
        metrics.count_swept(runtime.swept)
        assert (
            'sash_swept_total{kind="deleted_sessions"} 2.0'
            in metrics.render(runtime.sum_cached_windows()).decode()
        )


async def test_the_settings_decide_when_a_session_expires(tmp_path):
    clock = FakeClock()
    settings = Settings(data=tmp_path, home="none", session_idle_days=2)
    async with make_runtime(settings, clock=clock) as runtime:
        session = await runtime.start_session()
        for days, status in ((1, "active"), (2, "expired")):
            clock.advance(timedelta(days=days).total_seconds())
            await runtime.sweep()
            assert (await runtime.get_session(session.id)).status == status


async def test_by_default_a_transcript_is_kept(tmp_path):
    clock = FakeClock()
    async with make_runtime(Settings(data=tmp_path, home="none"), clock=clock) as runtime:
        session = await runtime.start_session()
        sent = await runtime.send_message(session.id, "Remember that the cat is black")
        await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
        await runtime.end_session(session.id)
        clock.advance(timedelta(days=1000).total_seconds())
        swept = await runtime.sweep()
        assert (swept.deleted_sessions, swept.steps > 0) == (0, True)
        assert await runtime.list_messages(session.id)


async def test_an_action_can_be_undone_when_the_steps_are_deleted(tmp_path):
    clock = FakeClock()
    async with serving(tmp_path, "no", home=house(), clock=clock) as served:
        await served.runtime.home.wait_until_ready()
        session_id = await served.start()
        turn = await served.send(session_id, "turn on the kitchen ceiling")
        assert (await served.wait(turn))["steps"] != []
        clock.advance(timedelta(hours=25).total_seconds())
        await served.runtime.sweep()
        assert (await served.wait(turn))["steps"] == []
        undone = await served.wait(await served.send(session_id, "Undo that"))
        assert undone["response"]["actions"][0]["outcome"] == "done"
        assert served.runtime.home.index.get_state("light.kitchen_ceiling") == "off"


@pytest.mark.parametrize("store", ["sqlite", "files"])
def test_a_question_on_the_command_line_is_deleted_after_a_day_without_a_server(cli, store):
    settings = {"SASH_STORE": store, **NO_HOME}
    cli("ask", SENTENCE, **settings)
    [first] = cli("cleanup", "--dry-run", **settings).stdout.split()
    later = replace(cli, shift_s=cli.shift_s + timedelta(hours=25).total_seconds())
    later("ask", SENTENCE, **settings)
    [second] = later("cleanup", "--dry-run", **settings).stdout.split()
    assert first != second


def test_doctor_says_how_long_data_is_kept(cli):
    def find_retention(**environment):
        report = json.loads(cli("doctor", "--json", **environment, **NO_HOME).stdout)
        return next(check["found"] for check in report["checks"] if check["check"] == "retention")

    assert find_retention() == (
        "transcripts are kept until you delete them; the steps of a turn, and the sessions of `sash ask`, are "
        "deleted 24 hours after their end, except what `undo` needs; a session expires after 7 days without a "
        "change"
    )
    found = find_retention(SASH_TRANSCRIPT_RETENTION_DAYS="30", SASH_CONTINUATION_RETENTION_HOURS="2")
    assert "ended and expired sessions are deleted after 30 days" in found and "2 hours" in found


async def test_metrics_count_what_was_swept(served):
    metrics = (await served.client.get("/metrics")).text
    assert 'sash_swept_total{kind="artifacts"} 0.0' in metrics


async def test_a_fork_ends_with_the_chosen_turn(served):
    session_id = await served.start(window={"max_turns": 2, "evict_to": 1.0})
    turns = [await served.send(session_id, "Message number0")]
    for n in range(1, 5):
        await served.wait(turns[-1])
        turns.append(await served.send(session_id, f"Message number{n}"))
    await served.wait(turns[-1])
    at = f"/v1/sessions/{session_id}"
    await served.client.post(f"{at}/facts", json={"text": "a later fact"})
    forked = await served.client.post(f"{at}/fork", json={"at": turns[2]})
    assert forked.status_code == 201, forked.text
    copy = f"/v1/sessions/{forked.json()['session_id']}"
    messages = (await served.client.get(f"{copy}/messages")).json()["messages"]
    asked = [(m["content"], m["in_window"]) for m in messages if m["role"] == "user"]
    assert asked == [("Message number0", False), ("Message number1", True), ("Message number2", True)]
    shown = (await served.client.get(copy)).json()["session"]
    assert "number0" in shown["memory"]["digest"] and "number3" not in shown["memory"]["digest"]
    assert shown["memory"]["facts"] == [] and shown["status"] == "active"
    context = (await served.client.get(f"{copy}/context")).json()
    assert context["evicted_count"] == 2
    again = await served.wait(await served.send(forked.json()["session_id"], "go on"))
    assert again["status"] == "completed"
    original = (await served.client.get(f"{at}/messages")).json()["messages"]
    assert len(original) == 10


async def test_a_fork_at_an_unknown_turn_is_refused(served):
    session_id, other = await served.start(), await served.start()
    turn = await served.send(other)
    await served.wait(turn)
    forked = await served.client.post(f"/v1/sessions/{session_id}/fork", json={"at": turn})
    problem(forked, 404, "continuation_not_found")
    assert len(await listed(served)) == 2


async def test_a_fork_at_a_turn_without_messages_is_refused(tmp_path):
    def fail(request):
        raise ValueError("no")

    async with serving(tmp_path, fail) as served:
        session_id = await served.start()
        turn = await served.send(session_id)
        assert (await served.wait(turn))["status"] == "failed"
        forked = await served.client.post(f"/v1/sessions/{session_id}/fork", json={"at": turn})
        problem(forked, 422, "invalid_input")


@pytest.mark.parametrize("days", [-1, float("nan"), 10**9])
async def test_a_wrong_age_is_refused(tmp_path, days):
    async with Runtime(MemoryStore(), ScriptedModel("ok"), retention=Retention()) as runtime:
        with pytest.raises(InvalidInput):
            await runtime.list_inactive(older_than_days=days)
