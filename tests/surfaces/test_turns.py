"""`/conversation` over a real socket: its routes, and a turn of the agent."""

import asyncio
import json
import re

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock
from tests.surfaces.serving import WAIT_S, WaitingModel, problem, serving

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "ok") as served:
        yield served


async def add(
    served, message="How do I fix error 500?", response="Check your database connection...", **more
):
    body = {"user_message": message, "ai_response": response, **more}
    added = await served.client.post("/conversation/turn", json=body)
    assert added.status_code == 200, added.text
    return added.json()


async def test_a_turn_is_added(served):
    added = await add(served, metadata={"source": "chat", "session_id": "abc123"})
    assert added == {
        "status": "success",
        "turn_id": added["turn_id"],
        "message": "Conversation turn added successfully",
        "statistics": {"current_turns": 1, "max_turns": 10, "total_turns_ever": 1, "deleted_turns": 0},
    }


async def test_the_history_is_unchanged_text(served):
    added = await add(served, metadata={"source": "chat"})
    asked = await served.client.get("/conversation?format_text=false&include_metadata=true")
    [turn] = asked.json()["turns"]
    assert STAMP.fullmatch(turn["timestamp"])
    assert asked.json() == {
        "turns": [
            {
                "id": added["turn_id"],
                "user_message": "How do I fix error 500?",
                "ai_response": "Check your database connection...",
                "timestamp": turn["timestamp"],
                "metadata": {"source": "chat"},
            }
        ],
        "total_turns": 1,
        "max_turns": 10,
        "total_turns_ever": 1,
        "oldest_turn_timestamp": turn["timestamp"],
        "newest_turn_timestamp": turn["timestamp"],
    }
    bare = (await served.client.get("/conversation?include_metadata=false")).json()
    assert "metadata" not in bare["turns"][0]
    text = (await served.client.get("/conversation?format_text=true")).json()["turns"]
    assert "User: How do I fix error 500?" in text and "AI: Check your database" in text


async def test_the_statistics_count_removed_turns(served):
    for n in range(12):
        await add(served, f"Turn {n}")
    stats = (await served.client.get("/conversation/stats")).json()
    assert stats["status"] == "success"
    counts = {"current_turns": 10, "max_turns": 10, "total_turns_ever": 12, "deleted_turns": 2}
    assert stats["statistics"] == counts | {
        "oldest_turn": stats["statistics"]["oldest_turn"],
        "newest_turn": stats["statistics"]["newest_turn"],
    }
    assert stats["sliding_window_info"]["policy"] == "FIFO (First In First Out)"
    assert stats["sliding_window_info"]["philosophy"] == "Chopping > Summarizing"
    turns = (await served.client.get("/conversation")).json()["turns"]
    assert [turn["user_message"] for turn in turns] == [f"Turn {n}" for n in range(2, 12)]


async def test_the_newest_turns_are_returned(served):
    for n in range(7):
        await add(served, f"Turn {n}")
    recent = (await served.client.get("/conversation/recent?n=5")).json()
    assert (recent["status"], recent["count"], recent["requested"]) == ("success", 5, 5)
    assert [turn["user_message"] for turn in recent["recent_turns"]] == [f"Turn {n}" for n in range(2, 7)]
    assert (await served.client.get("/conversation/recent?n=100")).json()["count"] == 7
    problem(await served.client.get("/conversation/recent?n=-1"), 422, "invalid_input")


async def test_an_answer_is_updated_by_query_and_by_body(served):
    turn_id = (await add(served, response=None))["turn_id"]
    at = f"/conversation/turn/{turn_id}"
    updated = await served.client.patch(at, params={"ai_response": "Updated response text"})
    wanted = {"status": "success", "turn_id": turn_id, "message": "AI response updated successfully"}
    assert updated.json() == wanted
    [turn] = (await served.client.get("/conversation")).json()["turns"]
    assert turn["ai_response"] == "Updated response text"
    assert (await served.client.patch(at, json={"ai_response": "And again"})).json() == wanted
    [turn] = (await served.client.get("/conversation")).json()["turns"]
    assert turn["ai_response"] == "And again"
    problem(await served.client.patch(at), 422, "invalid_input")
    unknown = await served.client.patch("/conversation/turn/none", json={"ai_response": "x"})
    problem(unknown, 404, "continuation_not_found")


async def test_a_conversation_is_cleared(served):
    for n in range(3):
        await add(served, f"the word is marmalade {n}")
    cleared = (await served.client.delete("/conversation")).json()
    assert cleared == {"status": "success", "message": "Conversation history cleared", "total_turns_ever": 3}
    assert (await served.client.get("/conversation")).json()["turns"] == []
    assert (await add(served))["statistics"]["total_turns_ever"] == 4
    assert await served.runtime.search("marmalade") == []


async def test_conversations_are_isolated_and_survive_a_restart(tmp_path):
    async with serving(tmp_path) as served:
        await add(served, "here", conversation_id="kitchen")
        await served.client.post("/conversation/turn?conversation_id=attic", json={"user_message": "there"})
    async with serving(tmp_path) as served:
        for name, said in (("kitchen", "here"), ("attic", "there")):
            kept = await served.client.get("/conversation", params={"conversation_id": name})
            assert [turn["user_message"] for turn in kept.json()["turns"]] == [said]
        assert (await served.client.get("/conversation")).json()["turns"] == []


async def test_the_agent_answers_in_the_same_conversation(tmp_path):
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock())) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        body = {"text": "Is the front door locked?", "conversation_id": "hall", "language": "en"}
        said = await served.client.post("/conversation", json=body)
        assert said.status_code == 200
        answer = said.json()
        assert answer.keys() == {"response_text", "conversation_id", "extra"}
        assert (answer["response_text"], answer["conversation_id"]) == (
            "Yes, the front door lock is locked.",
            "hall",
        )
        assert answer["extra"]["status"] == "completed" and answer["extra"]["error"] is None
        [turn] = (await served.client.get("/conversation?conversation_id=hall")).json()["turns"]
        assert (turn["user_message"], turn["ai_response"]) == (
            "Is the front door locked?",
            "Yes, the front door lock is locked.",
        )
        assert turn["id"] == answer["extra"]["continuation_id"]
        german = await served.client.post(
            "/conversation", json={**body, "text": "Ist die Haustür offen?", "language": "de"}
        )
        assert german.status_code == 200 and german.json()["response_text"].startswith("Nein")


async def test_the_same_idempotency_key_adds_one_turn(tmp_path):
    async with serving(tmp_path, "One.", "Two.") as served:
        turns = [await add(served, idempotency_key="t") for _ in range(2)]
        assert turns[0] == turns[1]
        said = {"text": "Say something", "idempotency_key": "s", "conversation_id": "default"}
        answers = [(await served.client.post("/conversation", json=said)).json() for _ in range(2)]
        assert answers[0] == answers[1] and answers[0]["response_text"] == "One."
        assert (await served.client.get("/conversation/stats")).json()["statistics"]["total_turns_ever"] == 2
        other = await served.client.post("/conversation", json=said | {"text": "Something else"})
        problem(other, 409, "key_reused")


async def test_messages_wait_while_the_agent_answers(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        saying = [
            asyncio.create_task(
                served.client.post("/conversation?conversation_id=default", json={"text": str(n)})
            )
            for n in range(3)
        ]
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        model.go.set()
        for said in await asyncio.gather(*saying):
            assert said.json()["response_text"] == "Let me see what there is."
        assert (await served.client.get("/conversation/stats")).json()["statistics"]["current_turns"] == 3


async def test_a_slow_answer_is_reported_as_still_running(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model, timeouts={"answer_s": 0.05}) as served:
        said = (await served.client.post("/conversation", json={"text": "hi"})).json()
        assert said["response_text"] == "I am still working on it. The answer follows."
        assert said["extra"]["status"] in ("running", "streaming")
        model.go.set()
        assert (await served.wait(said["extra"]["continuation_id"]))["status"] == "completed"


async def test_an_action_asks_for_an_approval(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",)}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        said = (await served.client.post("/conversation", json={"text": "Unlock the front door"})).json()
        assert said["extra"]["status"] == "awaiting_approval"
        assert said["response_text"] == "Unlock the front door lock?"
        [asked] = said["extra"]["waiting_calls"]
        turn = said["extra"]["continuation_id"]
        path, yes = f"/v1/continuations/{turn}/approve", {"call_id": asked["call_id"], "approved": True}
        problem(await served.client.post(path, json={"call_id": asked["call_id"]}), 422, "invalid_input")
        await served.client.post(path, json=yes)
        assert (await served.wait(turn))["response"]["actions"][0]["verified"] is True


async def test_yes_or_no_answers_the_approval_question(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",)}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)

        async def say(text, **headers):
            body = {"text": text, "conversation_id": "default"}
            answer = await served.client.post("/conversation", json=body, headers=headers)
            return answer.json()

        asked = await say("Unlock the front door")
        assert asked["response_text"] == asked["extra"]["waiting_calls"][0]["question"]
        declined = await say("No, thanks.")
        assert declined["extra"]["continuation_id"] == asked["extra"]["continuation_id"]
        assert [action["outcome"] for action in declined["extra"]["actions"]] == ["denied"]
        await say("Unlock the front door")
        done = await say("Yes, please!")
        [action] = done["extra"]["actions"]
        assert (action["arguments"]["service"], action["verified"]) == ("lock.unlock", True)
        turns = (await served.client.get("/conversation")).json()["turns"]
        assert [turn["user_message"] for turn in turns] == ["Unlock the front door"] * 2
        free = await say("Yes")
        assert free["extra"]["continuation_id"] != done["extra"]["continuation_id"]


async def test_another_message_drops_the_approval_question_and_is_answered(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",)}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)

        async def say(text, **more):
            body = {"text": text, "conversation_id": "default", **more}
            return (await served.client.post("/conversation", json=body)).json()

        asked = await say("Unlock the front door", idempotency_key="unlock")
        again = await say("Unlock the front door", idempotency_key="unlock")
        assert again == asked, "a message that is sent again drops no question"
        told = await say("Is the front door locked?")
        assert told["extra"]["status"] == "completed" and told["response_text"].startswith("Yes")
        dropped = await served.wait(asked["extra"]["continuation_id"])
        assert (dropped["status"], dropped["response"]) == ("cancelled", None)
        assert "another message" in dropped["steps"][-1]["detail"]["reason"]
        late = await say("yes")
        assert late["extra"]["actions"] == []
        locks = await served.runtime.call_tool("get_states", {"entity_ids": ["lock.front_door"]})
        assert "unlocked" not in str(locks)


async def test_the_approval_question_names_the_effects_of_a_script(tmp_path):
    options = {
        "allow_actuation": True,
        "allowlisted_services": ("script", "cover", "lock", "light", "media_player"),
    }
    home = demo_home(FakeClock())
    async with serving(tmp_path, model=OfflineModel(), home=home, **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        answer = (await served.client.post("/conversation", json={"text": "Run good night"})).json()
        assert answer["response_text"] == (
            "Run the script “Good night”, which will lock the front door lock and close the living room blind?"
        )


async def test_the_conversation_may_be_cleared_during_a_message(tmp_path, monkeypatch):
    async with serving(tmp_path, "Here.") as served:
        await served.client.post("/conversation", json={"text": "hi"})
        look = served.runtime.open_continuations

        async def too_late(session_id, **options):
            monkeypatch.setattr(served.runtime, "open_continuations", look)
            await served.runtime.delete_session(session_id)
            return await look(session_id, **options)

        monkeypatch.setattr(served.runtime, "open_continuations", too_late)
        said = await served.client.post("/conversation", json={"text": "hi again"})
        assert (said.status_code, said.json()["response_text"]) == (200, "Here.")


async def test_only_a_caller_with_the_act_scope_can_approve(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",)}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        anna, child = served.token("anna"), served.token("anna", "read", "converse")
        body = {"text": "Unlock the front door", "conversation_id": "hall"}
        await served.client.post("/conversation", json=body, headers=anna)
        for text in ("yes", "no", "never mind", "Is the front door locked?"):
            said = await served.client.post("/conversation", json=body | {"text": text}, headers=child)
            problem(said, 403, "forbidden")
        done = await served.client.post("/conversation", json=body | {"text": "yes"}, headers=anna)
        assert done.json()["extra"]["actions"][0]["verified"] is True


async def test_a_caller_who_may_only_approve_answers_the_question_and_sends_nothing_else(tmp_path):
    options = {"allow_actuation": True, "allowlisted_services": ("lock",), "approvers": "owner"}
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        anna, child = served.token("anna"), served.token("anna", "read", "converse")
        body = {"text": "Unlock the front door", "conversation_id": "hall"}
        asked = await served.client.post("/conversation", json=body, headers=anna)
        other = await served.client.post("/conversation", json=body | {"text": "hello"}, headers=child)
        problem(other, 403, "forbidden")
        done = await served.client.post("/conversation", json=body | {"text": "yes"}, headers=child)
        assert done.json()["extra"]["continuation_id"] == asked.json()["extra"]["continuation_id"]
        assert done.json()["extra"]["actions"][0]["verified"] is True
        again = await served.client.post("/conversation", json=body | {"text": "yes"}, headers=child)
        problem(again, 403, "forbidden")


@pytest.mark.parametrize("wrong", ["", "  ", "\x1c", "x" * 257])
async def test_an_invalid_conversation_id_is_refused(served, wrong):
    at = {"params": {"conversation_id": wrong}}
    turn, answer = {"user_message": "q"}, {"ai_response": "a"}
    for asked in (
        await served.client.post("/conversation/turn", json=turn, **at),
        await served.client.post("/conversation/turn", json=turn | {"conversation_id": wrong}),
        await served.client.get("/conversation", **at),
        await served.client.patch("/conversation/turn/x", json=answer, **at),
        await served.client.delete("/conversation", **at),
    ):
        assert asked.status_code == 422 and asked.json()["code"].startswith("invalid_"), asked.text


@pytest.mark.parametrize("wrong", [7, "\ud800"])
async def test_a_conversation_id_in_the_body_is_a_text(served, wrong):
    body = json.dumps({"user_message": "q", "conversation_id": wrong}).encode()
    asked = await served.client.post(
        "/conversation/turn", content=body, headers={"Content-Type": "application/json"}
    )
    assert asked.status_code == 422 and asked.json()["code"].startswith("invalid_"), asked.text


@pytest.mark.parametrize(
    "body", [{}, {"text": ""}, {"text": 5}, {"text": "hi", "conversation_id": ""}, {"txt": "hi"}]
)
async def test_a_wrong_body_is_explained(served, body):
    problem(await served.client.post("/conversation", json=body), 422, "invalid_input")
    assert (await served.client.get("/v1/sessions")).json()["sessions"] == []
