"""No approval is requested for a call that would change nothing: the user is told that it is already so."""

import re
from dataclasses import replace

import pytest

from sash.ports.tools import ToolSpec
from sash.testing import both, calling
from tests.home.small_home import house
from tests.runtime.home_actions import FREE
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import tool_results, turn

LOCK = calling("call_service", "a", service="lock.lock", entity_ids=["lock.front_door"])


@pytest.mark.parametrize(
    ("sentence", "language", "answer"),
    [
        ("lock the front door", "en", r"^The front door is already locked\.$"),
        ("Schließe Front door ab", "de", r"^Die Haustür ist schon abgeschlossen\.$"),
        ("verrouille Front door", "fr", r"(Front door|porte d'entrée).* déjà"),
        ("open the blinds", "en", r"^The blinds are already open\.$"),
        ("lås Front door", "sv", "^Front door: låst$"),
    ],
)
async def test_a_sentence_is_answered_without_a_question_and_without_a_model(
    live, sentence, language, answer
):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, sentence, language=language)
    assert result.status == "completed"
    assert re.search(answer, result.response.final_message)
    assert result.response.actions == ()
    assert runtime.house.calls == [] and runtime.model.requests == []


async def test_the_model_reads_that_nothing_was_done(live):
    runtime = await live(LOCK, "The front door is already locked.")
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "I want to be safe tonight")
    assert result.response.final_message == "The front door is already locked."
    [text] = await tool_results(runtime, session)
    assert '"already_so": true' in text and "nothing was done" in text and "locked" in text
    assert result.response.actions == () and runtime.house.calls == []


async def test_an_answer_must_not_claim_that_it_was_done(live):
    runtime = await live(LOCK, "I have locked the front door.")
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "I want to be safe tonight")
    assert result.response.final_message.startswith("I have not done that")


async def test_a_call_that_changes_something_is_asked_about(live):
    unlock = calling("call_service", "b", service="lock.unlock", entity_ids=["lock.front_door"])
    runtime = await live(both(LOCK, unlock), "ok")
    session = await runtime.start_session(policy=FREE)
    waiting = await turn(runtime, session, "do what you like with the door")
    assert [call.call_id for call in waiting.waiting_calls] == ["b"]
    assert len([step for step in waiting.steps if step.type == "tool_result"]) == 1


async def test_a_command_that_changes_one_of_several_is_asked_about(live):
    home = house()
    home.set_state("light.kitchen_ceiling", "on")
    home.set_state("light.kitchen_counter", "off")
    runtime = await live(home=home)
    session = await runtime.start_session(policy=CAREFUL)
    assert (await turn(runtime, session, "turn on the lights in the kitchen")).status == "awaiting_approval"


async def test_several_that_are_already_so_are_named(live):
    home = house()
    for entity_id in ("light.kitchen_ceiling", "light.kitchen_counter"):
        home.set_state(entity_id, "on")
    runtime = await live(home=home)
    session = await runtime.start_session(policy=CAREFUL)
    result = await turn(runtime, session, "turn on the lights in the kitchen")
    assert result.response.final_message == "The kitchen ceiling and Counter are already on."


async def test_a_call_that_needs_no_approval_is_made(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    result = await turn(runtime, session, "turn off the kitchen ceiling")
    assert [action.outcome for action in result.response.actions] == ["done"]
    assert [call.service for call in runtime.house.calls] == ["light.turn_off"]


async def test_a_dry_run_describes_the_call(live):
    runtime = await live(LOCK, "ok")
    session = await runtime.start_session(policy=replace(FREE, dry_run=True))
    result = await turn(runtime, session, "I want to be safe tonight")
    assert [action.outcome for action in result.response.actions] == ["dry_run"]


async def test_a_denied_call_stays_denied(live):
    runtime = await live(LOCK, "ok")
    session = await runtime.start_session()
    result = await turn(runtime, session, "I want to be safe tonight")
    assert [action.outcome for action in result.response.actions] == ["denied"]


async def test_an_approval_is_requested_if_the_look_fails(run, caplog):
    async def look(arguments, context):
        raise RuntimeError("no connection")

    async def act(arguments, context):
        return "done"

    spec = ToolSpec("act", "Act.", {"type": "object"}, act, action=True, already_so=look)
    runtime = await run(calling("act"), "ok", tools=[spec])
    session = await runtime.start_session(policy=CAREFUL)
    assert (await turn(runtime, session)).status == "awaiting_approval"
    assert "would change anything" in caplog.text
