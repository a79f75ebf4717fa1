"""An open approval question follows one rule on every surface that takes messages: REST, /conversation and MCP."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock
from tests.surfaces.serving import WAIT_S, listen, serving, until
from tests.surfaces.speaking import ERAS, call, talking

LOCKS = {"allow_actuation": True, "allowlisted_services": ("lock", "light")}
SURFACES = ("rest", "conversation", "mcp")


@dataclass
class House:
    """Says sentences on one surface, and returns the states of their turns."""

    served: Any
    home: Any
    clock: FakeClock
    surface: str
    session: str | None = None

    async def say(self, text, **more):
        if self.surface == "conversation":
            body = {"text": text, "conversation_id": "one", **more}
            said = (await self.served.client.post("/conversation", json=body)).json()
            turn = said["extra"]["continuation_id"]
        elif self.surface == "mcp":
            async with talking(self.served.url, ERAS[-1]) as mcp:
                sent = await call(mcp, "ha_agent_send_message", session_id=self.session, message=text, **more)
            turn = sent["continuation_id"]
        else:
            path = f"/v1/sessions/{self.session}/messages"
            turn = (await self.served.client.post(path, json={"message": text, **more})).json()[
                "continuation_id"
            ]
        result = await self.served.runtime.await_continuation(turn, timeout_s=WAIT_S)
        return (await self.served.client.get(f"/v1/continuations/{result.continuation.id}")).json()

    async def get_lock(self):
        return (await self.home.get_state("lock.front_door")).state


@asynccontextmanager
async def living(folder, surface):
    clock = FakeClock()
    home = demo_home(clock)
    async with serving(folder, model=OfflineModel(), home=home, clock=clock, **LOCKS) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        house = House(served, home, clock, surface)
        if surface != "conversation":
            house.session = (await served.client.post("/v1/sessions", json={})).json()["session_id"]
        yield house


@pytest.fixture(params=SURFACES)
async def house(tmp_path, request):
    async with living(tmp_path, request.param) as house:
        yield house


async def ask(house, sentence="Unlock the front door"):
    asked = await house.say(sentence)
    assert (asked["status"], asked["question"]) == ("awaiting_approval", "Unlock the front door lock?")
    return asked


async def test_a_yes_answers_the_question(house):
    asked = await ask(house)
    done = await house.say("yes please")
    assert done["continuation_id"] == asked["continuation_id"]
    assert (done["status"], await house.get_lock()) == ("completed", "unlocked")


@pytest.mark.parametrize("no", ["no", "never mind", "stop", "lass es", "no, don't do that", "I'm not sure"])
async def test_a_no_answers_the_question(house, no):
    asked = await ask(house)
    done = await house.say(no)
    assert done["continuation_id"] == asked["continuation_id"]
    assert [action["outcome"] for action in done["response"]["actions"]] == ["denied"]
    assert await house.get_lock() == "locked"


async def test_any_other_sentence_drops_the_question_and_is_answered(house):
    asked = await ask(house)
    told = await house.say("Is the front door locked?")
    assert told["status"] == "completed" and told["response"]["final_message"].startswith("Yes")
    assert (await house.served.wait(asked["continuation_id"]))["status"] == "cancelled"
    late = await house.say("yes")
    assert late["response"]["actions"] == []
    assert await house.get_lock() == "locked"


async def test_the_question_expires_after_a_minute(house):
    asked = await ask(house)
    house.clock.advance(61)
    late = await house.say("yes")
    assert late["continuation_id"] != asked["continuation_id"]
    assert late["response"]["actions"] == []
    assert (await house.served.wait(asked["continuation_id"]))["status"] == "cancelled"
    assert await house.get_lock() == "locked"


async def test_the_same_sentence_asks_again(house):
    first = await ask(house)
    second = await ask(house)
    assert second["continuation_id"] != first["continuation_id"]
    assert (await house.say("yes"))["status"] == "completed"
    assert await house.get_lock() == "unlocked"


async def test_nothing_is_asked_when_the_door_is_locked_already(house):
    told = await house.say("Lock the front door")
    assert (told["status"], told["question"]) == ("completed", None)
    assert told["response"]["actions"] == []


async def test_the_question_is_in_the_language_of_the_sentence(house):
    asked = await house.say("Schließ die Haustür auf", language="de")
    assert asked["question"] == "Soll ich die Haustür aufschließen?"
    assert [call["question"] for call in asked["waiting_calls"]] == [asked["question"]]
    assert (await house.say("ja klar", language="de"))["status"] == "completed"
    assert await house.get_lock() == "unlocked"


async def test_a_client_that_reads_only_events_gets_the_question(tmp_path):
    async with living(tmp_path, "rest") as house:
        await house.say("Schließ die Haustür auf", language="de")
        events = await listen(house.served.client, house.session, is_approval_request)
        assert events[-1]["data"]["payload"]["question"] == "Soll ich die Haustür aufschließen?"


def is_approval_request(event):
    detail = event["data"]["payload"].get("step", {}).get("detail", {}) if "data" in event else {}
    return detail.get("event") == "approval_requested"


async def test_an_mcp_client_gets_the_question(tmp_path):
    async with living(tmp_path, "mcp") as house:
        asked = await ask(house)
        async with talking(house.served.url, ERAS[-1]) as mcp:
            shown = await call(mcp, "ha_agent_await_continuation", continuation_id=asked["continuation_id"])
        assert (shown["status"], shown["question"]) == ("awaiting_approval", "Unlock the front door lock?")


async def test_the_progress_over_mcp_has_the_question_and_names_no_tool(tmp_path):
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    async with living(tmp_path, "mcp") as house, talking(house.served.url, ERAS[-1]) as mcp:
        await mcp.call_tool("ha_agent_ask", {"message": "Unlock the front door"}, progress_callback=hear)
        await until(lambda: "The turn needs an approval: Unlock the front door lock?" in heard)
    assert "Changing something in the home" in heard and not any("call_service" in each for each in heard)


async def test_a_message_that_is_sent_again_drops_no_question(house):
    first = await house.say("Unlock the front door", idempotency_key="one")
    again = await house.say("Unlock the front door", idempotency_key="one")
    assert (again["continuation_id"], again["status"]) == (first["continuation_id"], "awaiting_approval")


async def test_a_stream_of_the_answer_goes_on_to_the_end_of_the_turn(tmp_path):
    async with living(tmp_path, "rest") as house:
        await ask(house)
        path, accept = f"/v1/sessions/{house.session}/messages", {"Accept": "text/event-stream"}
        streamed = await house.served.client.post(path, json={"message": "yes"}, headers=accept)
        assert "event: final" in streamed.text
        assert await house.get_lock() == "unlocked"
