"""The integration in a real Home Assistant: installed from its zip, without `sash`, with the network cut."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ha.conftest import install_or_skip
from tests.ha.model_server import ModelServer, call_tool, has_result
from tests.ha.sash_house import WITHIN_S, SashHouse
from tests.ha.set_up import DOOR, run_sash_house

KEY = "sk-the-key-of-the-test"
LIGHT = "light.bed_light"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(KEY) as server:
        yield server


@pytest.fixture(scope="module")
def set_up_house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> Iterator[SashHouse]:
    """A house whose preferred pipeline has an agent of ours. Lights and locks are allowed."""
    with run_sash_house(install_or_skip(request.config), tmp_path_factory.mktemp("sash"), model) as house:
        yield house


@pytest.fixture
def sash_house(set_up_house: SashHouse, model: ModelServer) -> SashHouse:
    model.reset()
    return set_up_house


def answer_with(text: str, then: Any = None):
    """Return a function that lets the model call a tool first, and then say the text."""
    return lambda messages: text if then is None or has_result(messages) else then


async def test_the_house_has_neither_sash_nor_a_network(sash_house: SashHouse) -> None:
    assert "None" in sash_house.run_python("import importlib.util as u; print(u.find_spec('sash'))")
    connect = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    assert "the network is cut" in sash_house.run_python(connect)


async def test_a_question_is_answered_and_streamed(sash_house: SashHouse, model: ModelServer) -> None:
    model.answer = answer_with("The plants are doing very well today.")
    model.hold_rest()
    request = sash_house.make_pipeline_request("How are the plants doing?")
    streamed: list[str] = []
    async for event in sash_house.subscribe(request):
        delta = (event["data"] or {}).get("chat_log_delta") or {}
        if delta.get("content"):
            streamed.append(delta["content"])
            model.release()  # The rest of the answer follows only after its beginning has arrived.
    assert len(streamed) > 1
    assert "".join(streamed) == "The plants are doing very well today."


async def test_a_tool_call_switches_a_light_and_reads_it_back(
    sash_house: SashHouse, model: ModelServer
) -> None:
    model.answer = answer_with(
        "It is cosy now.", call_tool("call_service", service="light.turn_on", entity_ids=[LIGHT])
    )
    said, _ = await sash_house.converse("Make it cosy in here please")
    assert said == "It is cosy now."
    assert await sash_house.read_state(LIGHT) == "on"
    result = json.loads(model.requests[-1]["messages"][-1]["content"])
    assert result["verified"] is True


async def test_an_action_that_is_not_allowed_is_refused(sash_house: SashHouse, model: ModelServer) -> None:
    model.answer = answer_with(
        "I must not do that.",
        call_tool("call_service", service="climate.turn_off", entity_ids=["climate.hvac"]),
    )
    await sash_house.converse("Let it feel like winter for a while")
    assert "not allow" in model.requests[-1]["messages"][-1]["content"]


async def test_a_lock_needs_a_spoken_approval(sash_house: SashHouse) -> None:
    await sash_house.call_plain("lock.lock", {"entity_id": DOOR})
    asked = await sash_house.speak("Kitchen", "unlock the front door")
    assert asked["speech"].endswith("?")
    assert asked["continue_conversation"]
    assert await sash_house.read_state(DOOR) == "locked"
    await sash_house.speak("Kitchen", "yes")
    await sash_house.wait_for_state(DOOR, "unlocked")


async def test_a_button_of_a_notification_approves(sash_house: SashHouse, model: ModelServer) -> None:
    """The phone of the user who asked gets the question. Its button comes back through Home Assistant's webhook."""
    phone = await sash_house.add_phone(f"{model.url}/push")
    await sash_house.call_plain("lock.lock", {"entity_id": DOOR})
    await sash_house.set_options(approval_wait_seconds=5)
    asked, _ = await sash_house.converse("unlock the front door")
    await wait_until(lambda: model.notifications)
    (notification,) = model.notifications
    assert notification["message"] == asked
    approve, deny = notification["data"]["actions"]
    assert (approve["title"], deny["title"]) == ("Yes", "No")
    assert await sash_house.read_state(DOOR) == "locked"
    await sash_house.press(phone, approve["action"])
    await sash_house.wait_for_state(DOOR, "unlocked")


async def test_a_notification_of_home_assistant_says_how_to_answer(sash_house: SashHouse) -> None:
    await sash_house.call_plain("lock.lock", {"entity_id": DOOR})
    await sash_house.speak("Kitchen", "unlock the front door")
    turn_id = await wait_for_notification(sash_house, "`sash.approve` with `continuation_id: ")
    approved = await sash_house.call("sash.approve", {"continuation_id": turn_id, "approved": True})
    assert approved["actions"][0]["service"] == "lock.unlock"
    await sash_house.wait_for_state(DOOR, "unlocked")


async def wait_until(is_met: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not is_met():
            await asyncio.sleep(0.05)


async def test_memory_survives_a_restart(sash_house: SashHouse, model: ModelServer) -> None:
    await sash_house.speak("Bedroom", "my dog is a beagle named Rex, tell him hello")
    await sash_house.restart()
    await sash_house.speak("Bedroom", "tell me a story about him")
    assert "beagle named Rex" in model.read_last_prompt()


async def wait_for_notification(house: SashHouse, words: str) -> str:
    """Wait for a notification of ours with these words, and return the id of its turn."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            for tag, message in (await house.list_notifications("sash_")).items():
                if words in message:
                    return tag.removeprefix("sash_")
            await asyncio.sleep(0.1)


async def test_a_question_and_a_promised_answer_survive_power_cuts(
    sash_house: SashHouse, model: ModelServer
) -> None:
    await sash_house.set_options(approval_wait_seconds=5)
    await sash_house.call_plain("lock.lock", {"entity_id": DOOR})
    await sash_house.restart()  # Home Assistant writes its options at the latest when it stops.
    asked = await sash_house.speak("Kitchen", "unlock the front door")
    assert asked["speech"].endswith("?")
    for _ in range(2):
        await sash_house.kill()
        await sash_house.start()
    turn_id = await wait_for_notification(sash_house, "sash.approve")
    assert await sash_house.read_state(DOOR) == "locked"
    await sash_house.call("sash.approve", {"continuation_id": turn_id, "approved": True})
    await sash_house.wait_for_state(DOOR, "unlocked")
    await sash_house.set_options(early_wait_enable=True, early_wait_seconds=1)
    await sash_house.restart()
    model.hold()
    model.answer = answer_with("The answer is 42.")
    early = await sash_house.speak("Bedroom", "what is the answer to everything?")
    assert early["speech"] == "I am still working on it. The answer follows."
    await sash_house.kill()
    model.release()
    await sash_house.start()
    await wait_for_notification(sash_house, "The answer is 42.")
    found = await sash_house.call("sash.search", {"query": "42"})
    assert len(found["messages"]) == 1
    await sash_house.set_options(early_wait_enable=False)


async def test_a_slow_answer_is_announced_on_the_satellite(sash_house: SashHouse, model: ModelServer) -> None:
    await sash_house.set_options(early_wait_enable=True, early_wait_seconds=1)
    model.hold()
    model.answer = answer_with("The answer is 42.")
    async with sash_house.listen("puck_announced") as announced:
        early = await sash_house.speak("Kitchen", "what is the answer to everything?")
        assert early["speech"] == "I am still working on it. The answer follows."
        model.release()
        event = await asyncio.wait_for(announced.get(), WITHIN_S)
    assert event["data"] == {"entity_id": "assist_satellite.kitchen_puck", "message": "The answer is 42."}
    await sash_house.set_options(early_wait_enable=False)


async def test_a_conversation_that_an_automation_starts_is_understood(
    sash_house: SashHouse, model: ModelServer
) -> None:
    await sash_house.call_plain(
        "assist_satellite.start_conversation",
        {
            "entity_id": "assist_satellite.bedroom_puck",
            "start_message": "The washing machine is done. Shall I remind you?",
            "extra_system_prompt": "The laundry is woollen.",
        },
    )
    await sash_house.speak("Bedroom", "do so in the evening please")
    assert "The washing machine is done. Shall I remind you?" in model.read_last_prompt()
    assert "The laundry is woollen." in model.read_last_prompt()


async def test_an_ai_task_returns_data_by_a_schema(sash_house: SashHouse, model: ModelServer) -> None:
    model.answer = answer_with(json.dumps({"count": 3}))
    generated = await sash_house.call(
        "ai_task.generate_data",
        {
            "entity_id": "ai_task.sash_ai_task",
            "task_name": "count",
            "instructions": "How many cats are there?",
            "structure": {"count": {"selector": {"number": {}}, "required": True}},
        },
    )
    assert generated["data"] == {"count": 3}
    assert "count" in json.dumps(model.requests[-1]["response_format"])


async def test_two_satellites_have_separate_conversations(sash_house: SashHouse, model: ModelServer) -> None:
    await sash_house.speak("Kitchen", "the secret of the kitchen is nutmeg, tell nobody")
    await sash_house.speak("Bedroom", "tell me what is special here")
    assert "nutmeg" not in model.read_last_prompt()
    await sash_house.speak("Kitchen", "tell me what is special here")
    assert "nutmeg" in model.read_last_prompt()


async def test_users_cannot_read_each_other_and_the_house_is_known_to_both(
    sash_house: SashHouse, model: ModelServer
) -> None:
    guest = sash_house.guest_token
    await sash_house.converse("remember that my present for Ben is a kite")
    await sash_house.converse("remember that my present for Mum is a vase", token=guest)
    await sash_house.speak("Kitchen", "remember that the spare key is under the pot")
    for token, own, foreign in ((guest, "vase", "kite"), (None, "kite", "vase")):
        await sash_house.converse("tell me what you know", token=token)
        assert foreign not in model.read_last_prompt()
        assert own in model.read_last_prompt()
        assert "spare key is under the pot" in model.read_last_prompt()
        for query in (own, foreign):
            found = await sash_house.call("sash.search", {"query": query}, token=token)
            assert bool(found["messages"]) is (query == own)


async def test_a_local_turn_of_home_assistant_is_understood_by_a_follow_up(
    sash_house: SashHouse, model: ModelServer
) -> None:
    """The pipeline prefers local sentences all the time. The follow-up is not a local sentence."""
    await sash_house.call_plain("light.turn_off", {"entity_id": LIGHT})
    await sash_house.use_agent("conversation.sash", prefer_local_intents=True)
    first = await sash_house.speak("Bedroom", "turn on the bed light")
    assert first["processed_locally"]
    assert await sash_house.read_state(LIGHT) == "on"
    model.answer = answer_with(
        "Done.", call_tool("call_service", service="light.turn_off", entity_ids=[LIGHT])
    )
    again = await sash_house.speak("Bedroom", "turn it off again")
    assert not again["processed_locally"]
    assert await sash_house.read_state(LIGHT) == "off"
    found = await sash_house.call("sash.search", {"query": "turn bed light"})
    assert "turn on the bed light" in [message["text"] for message in found["messages"]]


async def test_a_local_turn_on_the_dashboard_is_understood_by_a_follow_up(
    sash_house: SashHouse, model: ModelServer
) -> None:
    """A signed-in user has no device. The conversation says that both sentences belong together."""
    await sash_house.call_plain("light.turn_off", {"entity_id": LIGHT})
    await sash_house.use_agent("conversation.sash", prefer_local_intents=True)
    _, events = await sash_house.converse("turn on the bed light")
    (end,) = [event["data"] for event in events if event["type"] == "intent-end"]
    assert end["processed_locally"]
    conversation_id = end["intent_output"]["conversation_id"]
    await sash_house.converse("tell me why you did that", conversation_id=conversation_id)
    assert "turn on the bed light" in model.read_last_prompt()
    await sash_house.use_agent("conversation.sash")


async def test_the_log_has_no_error_of_ours_and_no_secret(sash_house: SashHouse) -> None:
    log = sash_house.read_log()
    assert KEY not in log
    assert "custom_components.sash" not in "\n".join(line for line in log.splitlines() if " ERROR " in line)
