"""Messages to `/conversation` without a conversation id: a new conversation, or none at all."""

import uuid

import pytest

from sash import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock
from tests.surfaces.serving import WAIT_S, problem, serving


async def say(served, text="hi", **body):
    said = await served.client.post("/conversation", json={"text": text, **body})
    assert said.status_code == 200, said.text
    return said.json()


async def list_sessions(served):
    return (await served.client.get("/v1/sessions")).json()["sessions"]


async def test_a_message_without_an_id_starts_a_conversation(served):
    first, other = await say(served), await say(served)
    assert uuid.UUID(first["conversation_id"]).version == 4
    assert first["conversation_id"] != other["conversation_id"]
    again = await say(served, "and now?", conversation_id=first["conversation_id"])
    assert again["conversation_id"] == first["conversation_id"]
    kept = await served.client.get("/conversation", params={"conversation_id": first["conversation_id"]})
    assert [turn["user_message"] for turn in kept.json()["turns"]] == ["hi", "and now?"]


async def test_the_turn_routes_keep_their_default_conversation(served):
    await say(served)
    assert (await served.client.get("/conversation")).json()["turns"] == []
    await served.client.post("/conversation/turn", json={"user_message": "there"})
    await say(served, "here", conversation_id="default")
    turns = (await served.client.get("/conversation")).json()["turns"]
    assert [turn["user_message"] for turn in turns] == ["there", "here"]


async def test_a_first_message_that_is_sent_again_starts_one_conversation(tmp_path):
    async with serving(tmp_path, "One.", "Two.") as served:
        first, again = [await say(served, idempotency_key="k") for _ in range(2)]
        assert first == again and uuid.UUID(first["conversation_id"]).version == 4
        assert len(await list_sessions(served)) == 1
        assert (await say(served, idempotency_key="l"))["response_text"] == "Two."


async def test_without_ids_of_its_own_the_server_answers_one_turn(tmp_path):
    seen = []

    def answer(request):
        seen.append([message["content"] for message in request.messages])
        return "ok"

    async with serving(tmp_path, *[answer] * 3, auto_create_conversation_id=False) as served:
        for text in ("the word is marmalade", "which word?"):
            said = await say(served, text)
            assert (said["conversation_id"], said["response_text"]) == (None, "ok")
            assert said["extra"]["status"] == "completed"
        assert not any("marmalade" in text for text in seen[1])
        assert {session["status"] for session in await list_sessions(served)} <= {"ended"}
        assert (await served.client.get("/conversation")).json()["turns"] == []
        assert (await say(served, conversation_id="named"))["conversation_id"] == "named"


async def test_a_key_without_a_conversation_is_refused(tmp_path):
    async with serving(tmp_path, auto_create_conversation_id=False) as served:
        body = {"text": "hi", "idempotency_key": "k"}
        told = problem(await served.client.post("/conversation", json=body), 422, "invalid_input")
        assert "conversation_id" in told["detail"]


async def test_a_message_without_a_conversation_has_its_own_language(tmp_path):
    home = demo_home(FakeClock())
    options = {"auto_create_conversation_id": False}
    async with serving(tmp_path, model=OfflineModel(), home=home, **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        said = await say(served, "Ist die Haustür verriegelt?", language="de")
        session = await served.runtime.get_session(said["extra"]["session_id"])
        assert session.preferences["language"] == "de"


async def test_an_approval_without_a_conversation_is_given_by_its_route(tmp_path):
    options = {
        "auto_create_conversation_id": False,
        "allow_actuation": True,
        "allowlisted_services": ("lock",),
    }
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock()), **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        said = await say(served, "Unlock the front door")
        path = f"/v1/continuations/{said['extra']['continuation_id']}/approve"
        assert said["response_text"] == "Unlock the front door lock?"
        [call] = said["extra"]["waiting_calls"]
        await served.client.post(path, json={"call_id": call["call_id"], "approved": True})
        done = await served.wait(said["extra"]["continuation_id"])
        assert done["response"]["actions"][0]["verified"] is True


@pytest.mark.parametrize("wrong", ["", "  ", "x" * 257])
async def test_an_invalid_id_starts_no_conversation(served, wrong):
    for asked in (
        await served.client.post("/conversation", json={"text": "hi", "conversation_id": wrong}),
        await served.client.post("/conversation", json={"text": "hi"}, params={"conversation_id": wrong}),
    ):
        assert asked.status_code == 422, asked.text
    assert await list_sessions(served) == []
