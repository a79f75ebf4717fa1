"""Requests that the policy does not allow: nothing is done by halves, and the answer says why in plain words."""

import asyncio
import logging

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock
from sash.values.waiting_turns import MAX_WAITING_TURNS
from tests.surfaces.promises import promise
from tests.surfaces.serving import WAIT_S, is_final, listen, serving, until

NOT_AT_ALL = (
    "I am not allowed to control devices in this conversation. You can allow it in the settings of Sash."
)
NO_BLINDS = "I am not allowed to do that with the living room blind and the bedroom blind."


@pytest.fixture
async def house(tmp_path):
    clock = FakeClock()
    home = demo_home(clock)
    options = {"allow_actuation": True, "allowlisted_services": ("*",)}
    async with serving(tmp_path, model=OfflineModel(), home=home, clock=clock, **options) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        served.home = home
        yield served


@pytest.fixture
def say(house):
    """Say a sentence in a session of a policy, and return the finished turn."""
    sessions: dict[str, str] = {}

    async def say(sentence, **policy):
        key = str(policy)
        if key not in sessions:
            sessions[key] = await house.start(policy=EVERYTHING | policy)
        return await house.wait(await house.send(sessions[key], sentence))

    return say


def answer(turn):
    return turn["response"]["final_message"]


EVERYTHING = {"allow_actuation": True, "allowlisted_services": ["*"]}
LIGHTS = {"allowlisted_services": ["light"]}


async def test_nothing_is_done_if_a_part_of_a_sentence_is_not_allowed(house, say):
    turn = await say("turn on the kitchen light and open the blinds", **LIGHTS)
    assert answer(turn) == f"{NO_BLINDS} So I have done nothing."
    assert [action["outcome"] for action in turn["response"]["actions"]] == ["denied", "denied"]
    assert house.home.calls == []
    assert answer(await say("why did you not do that?", **LIGHTS)) == "Because my settings do not allow it."


async def test_the_order_of_the_parts_does_not_matter(house, say):
    turn = await say("open the blinds and turn on the kitchen light", **LIGHTS)
    assert answer(turn) == f"{NO_BLINDS} So I have done nothing."
    assert house.home.calls == []


@pytest.mark.parametrize(
    ("sentence", "policy", "reason"),
    [
        ("turn on the kitchen light in 5 minutes", {"allow_actuation": False}, NOT_AT_ALL),
        ("open the blinds in 5 minutes", LIGHTS, NO_BLINDS),
        ("turn on the kitchen light in 900 days", LIGHTS, "That is more than a year ahead"),
    ],
)
async def test_a_promise_that_cannot_be_kept_is_refused_with_its_reason(house, say, sentence, policy, reason):
    assert answer(await say(sentence, **policy)).startswith(reason)
    assert (await house.client.get("/v1/waiting")).json() == {"waiting": []}


async def test_a_session_in_which_too_much_waits_says_what_to_do(house, say):
    turn = await say("hello")
    for _ in range(MAX_WAITING_TURNS):
        await house.runtime.store.add_waiting_turn(promise(turn["session_id"]))
    assert answer(await say("turn on the fan in 5 minutes")).startswith("Too much is already waiting.")


async def test_too_many_actions_within_a_minute_are_no_question_of_rights(say):
    limit = {"max_actions_per_minute": 1}
    await say("turn on the kitchen light", **limit)
    assert answer(await say("turn on the fan", **limit)).startswith("That was too much within one minute")


async def test_a_trial_run_is_not_mistaken_for_an_action(say):
    trial = {"dry_run": True}
    await say("turn on the kitchen light", **trial)
    for question in ("what did you do?", "why did you do that?"):
        assert answer(await say(question, **trial)).startswith("It was only a trial run")


async def test_a_thing_that_was_off_is_not_said_to_be_turned_off(say):
    assert answer(await say("turn off the TV")) == ("The living room TV is already off.")


async def test_a_no_is_logged_quietly_and_a_denied_action_as_a_warning(say, caplog):
    caplog.set_level(logging.INFO, "sash.engine")
    await say("unlock the front door", allowlisted_services=["lock"])
    assert answer(await say("no", allowlisted_services=["lock"])) == "OK, I will not do that."
    await say("open the blinds", **LIGHTS)
    levels = [record.levelname for record in caplog.records if "was not done" in record.getMessage()]
    assert levels == ["INFO", "WARNING"]


async def test_the_progress_of_a_turn_names_no_tool(house):
    session_id = await house.start(policy=EVERYTHING)
    following = asyncio.create_task(listen(house.client, session_id, is_final))
    await until(house.runtime.count_subscribers, following)
    await house.wait(await house.send(session_id, "turn on the kitchen light"))
    events = [event["data"]["payload"].get("message") for event in await following if "data" in event]
    assert "Changing something in the home" in events
