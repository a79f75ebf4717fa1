"""A turn has its own area, language and caller: one session may have many microphones and speakers."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from sash import Runtime, SessionPolicy, demo_home
from sash.errors import InvalidInput
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.continuations import TurnCaller

ACTING = SessionPolicy(allow_actuation=True, allowlisted_services=("light",))
ANNA = TurnCaller(user_id="u1", user_name="Anna", device_id="puck", certainty="signed_in")


async def say(runtime, session, text, **options):
    sent = await runtime.send_message(session.id, text, **options)
    return await runtime.await_continuation(sent.id)


@pytest.fixture
async def home():
    return demo_home(FakeClock())


async def test_the_area_of_a_turn_decides_which_lights_are_meant(home):
    async with Runtime(MemoryStore(), home=home) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=ACTING, area="Bedroom")
        for area in ("Kitchen", None, "Kitchen"):
            await say(runtime, session, "turn on the lights", area=area)
    lit = ["light.kitchen_ceiling" in call.entity_ids for call in home.calls]
    assert lit == [True, False, True]


async def test_the_language_of_a_turn_decides_the_language_of_its_answer(home):
    async with Runtime(MemoryStore(), home=home) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(preferences={"language": "en"})
        said = [
            (await say(runtime, session, text, language=language)).response.final_message
            for text, language in (
                ("is the front door locked?", None),
                ("ist die Front door abgeschlossen?", "de"),
                ("xyzzy", "de"),
                ("xyzzy", None),
            )
        ]
    assert said[0] == "Yes, the front door lock is locked."
    assert said[1].startswith("Ja, ") and "abgeschlossen" in said[1]
    assert "xyzzy" in said[2] and "in this home" not in said[2]
    assert "xyzzy" in said[3] and "in other words" in said[3]


async def test_the_caller_is_stored_and_reaches_the_home(home):
    async with Runtime(MemoryStore(), home=home) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=ACTING)
        turn = await say(runtime, session, "turn on the kitchen lights", caller=ANNA)
        assert turn.continuation.request.caller == ANNA
    assert [(call.caller, call.turn_id) for call in home.calls] == [(ANNA, turn.continuation.id)]


async def test_an_undo_carries_its_caller_and_turn(home):
    async with Runtime(MemoryStore(), home=home) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=ACTING)
        await say(runtime, session, "turn on the kitchen lights")
        done = len(home.calls)
        turn = await say(runtime, session, "undo that", caller=ANNA)
    assert {(call.caller, call.turn_id) for call in home.calls[done:]} == {(ANNA, turn.continuation.id)}


async def test_the_caller_is_told_at_the_end_of_the_prompt_only():
    model = ScriptedModel("one", "two", "three")
    async with Runtime(MemoryStore(), model) as runtime:
        session = await runtime.start_session(area="Kitchen", preferences={"language": "en"})
        await say(runtime, session, "first", area="Kitchen", language="en")
        await say(runtime, session, "second", area="Garage", language="de", caller=ANNA)
        await say(runtime, session, "third")
    first, second, third = ([str(m["content"]) for m in request.messages] for request in model.requests)
    assert not any("speaks now" in text for text in (*first, *third))
    told = next(text for text in second if "speaks now" in text)
    assert told == "The user who speaks now:\nname: Anna\narea: Garage\nlanguage: de"
    assert second.index(told) > second.index(first[-1])
    assert second[: second.index(first[-1]) + 1] == first


async def test_the_actions_of_a_model_carry_the_caller(home):
    model = ScriptedModel(
        calling("call_service", service="light.turn_on", entity_ids=["light.kitchen_ceiling"]), "Done."
    )
    async with Runtime(MemoryStore(), model, home=home) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=ACTING)
        await say(runtime, session, "make the kitchen bright please, my dear", caller=ANNA)
    assert [call.caller for call in home.calls] == [ANNA]


@pytest.mark.parametrize("options", [{"area": ""}, {"language": 3}, {"area": "x" * 300}])
async def test_a_wrong_place_is_refused(options):
    async with Runtime(MemoryStore()) as runtime:
        session = await runtime.start_session()
        with pytest.raises(InvalidInput, match=next(iter(options))):
            await runtime.send_message(session.id, "hi", **options)


@pytest.mark.parametrize("wrong", [{"user_name": "x" * 300}, {"certainty": "sure"}, {"device_id": ""}])
async def test_a_wrong_caller_is_refused_before_it_is_stored(wrong):
    async with Runtime(MemoryStore()) as runtime:
        session = await runtime.start_session()
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            await runtime.send_message(session.id, "hi", caller=TurnCaller(**wrong))


async def test_times_are_told_in_the_zone_of_the_home():
    clock = FakeClock()
    home = demo_home(clock, ZoneInfo("Asia/Tokyo"))
    model = ScriptedModel("It is late.")
    async with Runtime(MemoryStore(), model, home=home, clock=clock) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session()
        await say(runtime, session, "good evening, what do you think of the weather")
    local = clock.now() + timedelta(hours=9)
    assert f"{local:%Y-%m-%d %H:%M}" in str(model.requests[0].messages)
