"""Early answers: after `early_wait_seconds` the user is told that the agent still works."""

import asyncio
import json

import pytest

from sash.app.early_answer import write_early_answer
from tests.surfaces.serving import WAIT_S, WaitingModel, is_final, listen, serving
from tests.surfaces.speaking import talking

# The model waits until the test lets it go, so a short time is not a race.
EARLY = {"early_wait_enable": True, "early_wait_seconds": 0.01}


@pytest.fixture
async def early(tmp_path):
    """A server that answers early, and its model, which waits."""
    model = WaitingModel()
    async with serving(tmp_path, model=model, **EARLY) as served:
        yield served, model
        model.go.set()


async def say(served, text="hi", **body):
    said = await served.client.post("/conversation", json={"text": text, **body})
    assert said.status_code == 200, said.text
    return said.json()


async def test_a_conversation_is_answered_early_and_the_rest_comes_by_event(early):
    served, model = early
    said = await say(served)
    assert said["response_text"] == "I am still working on it. The answer follows."
    assert said["extra"]["status"] in ("running", "streaming")
    model.go.set()
    [*_, final] = await listen(served.client, said["extra"]["session_id"], is_final)
    assert final["data"]["continuation_id"] == said["extra"]["continuation_id"]
    assert final["data"]["payload"]["final_response"]["final_message"] == "Let me see what there is."
    at = {"conversation_id": said["conversation_id"]}
    [turn] = (await served.client.get("/conversation", params=at)).json()["turns"]
    assert turn["ai_response"] == "Let me see what there is."
    path = f"/v1/sessions/{said['extra']['session_id']}/messages"
    messages = (await served.client.get(path)).json()["messages"]
    assert [message["content"] for message in messages] == ["hi", "Let me see what there is."]


async def test_the_next_message_of_the_conversation_is_answered_next(early):
    served, model = early
    first = await say(served, conversation_id="hall")
    second = await say(served, "and now?", conversation_id="hall")
    assert second["response_text"].startswith("I am still working on your previous message.")
    assert second["extra"]["status"] == "pending"
    model.go.set()
    for said in (first, second):
        assert (await served.wait(said["extra"]["continuation_id"]))["status"] == "completed"
    turns = (await served.client.get("/conversation?conversation_id=hall")).json()["turns"]
    assert [turn["user_message"] for turn in turns] == ["hi", "and now?"]


async def test_the_sentence_is_in_the_users_language(early):
    served, _ = early
    said = await say(served, "hallo", language="de-AT")
    assert said["response_text"] == "Ich arbeite noch daran. Die Antwort folgt."


async def test_a_question_is_answered_early(early):
    served, model = early
    asked = (await served.client.post("/v1/ask", json={"message": "hi"})).json()
    assert asked["notice"] == "I am still working on it. The answer follows."
    assert asked["status"] in ("running", "streaming") and asked["response"] is None
    model.go.set()
    done = await served.wait(asked["continuation_id"])
    assert (done["status"], done["notice"]) == ("completed", None)


async def test_the_timeout_of_the_client_wins(early):
    served, model = early
    body = {"message": "hi", "timeout_ms": WAIT_S * 1000}
    asking = asyncio.create_task(served.client.post("/v1/ask", json=body))
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    model.go.set()
    asked = (await asking).json()
    assert (asked["status"], asked["notice"]) == ("completed", None)


async def test_without_the_setting_a_question_waits(waiting):
    served, model = waiting
    asking = asyncio.create_task(served.client.post("/v1/ask", json={"message": "hi"}))
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    model.go.set()
    assert (await asking).json()["status"] == "completed"


async def test_a_question_over_mcp_is_answered_early(early):
    served, model = early
    async with talking(served.url, "2026-07-28") as mcp:
        asked = (await mcp.call_tool("ha_agent_ask", {"message": "hi"})).structured_content
        assert asked["notice"] == "I am still working on it. The answer follows."
        assert asked["to_do"] and asked["status"] in ("running", "streaming")
        model.go.set()
        named = {"continuation_id": asked["continuation_id"]}
        done = await mcp.call_tool("ha_agent_await_continuation", named)
        assert done.structured_content["response"]["final_message"] == "Let me see what there is."
        assert json.loads(done.content[0].text)["notice"] is None


@pytest.mark.parametrize(
    ("languages", "begins"),
    [(("de_DE",), "Ich"), ((None, "fr"), "J'y"), (("xx", "nl"), "Ik"), ((5,), "I am"), ((), "I am")],
)
def test_the_first_known_language_is_used(languages, begins):
    assert write_early_answer("running", *languages).startswith(begins)
