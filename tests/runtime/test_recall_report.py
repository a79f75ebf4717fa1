"""The step and the reports that say what was recalled for a turn, and why."""

from datetime import UTC, datetime

from sash.app.schemas import ContextShown
from sash.testing import ScriptedModel
from sash.values.turn_caller import TurnCaller
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer, turn
from tests.runtime.test_recalled_turns import Meanings

SAID = "Our boiler in the cellar was serviced by Mr Novak"


def find_recalled(result):
    """Return the detail of the step that recalled something."""
    [detail] = [step.detail for step in result.steps if step.type == "retrieval"]
    return detail


async def start(runtime, *said, turns=8):
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, *said, turns=turns)
    return session


async def test_the_step_names_the_words_that_were_found(run):
    runtime = await run("ok")
    session = await start(runtime, SAID)
    recalled = find_recalled(await turn(runtime, session, "When was the boiler repaired by Mr Novak?"))
    assert recalled["query"] == ["boiler", "repaired", "mr", "novak"]
    assert recalled["reason"] == "words"
    assert recalled["found_words"] == ["boiler", "mr", "novak"], "nobody said that it was repaired"


async def test_the_step_says_that_only_the_meaning_was_clear(run):
    runtime = await run("ok", embedder=Meanings())
    session = await start(runtime, "The boiler leaks at the valve", turns=16)
    await runtime.wait_for_background()
    recalled = find_recalled(await turn(runtime, session, "What was wrong with the heater?"))
    assert (recalled["reason"], recalled.get("found_words", [])) == ("meaning", [])


async def test_the_step_says_that_a_time_was_asked_for(run, clock):
    runtime = await run("ok")
    session = await start(runtime, SAID)
    clock.advance(86_400)
    recalled = find_recalled(await turn(runtime, session, "What did we talk about yesterday?"))
    assert (recalled["query"], recalled["reason"]) == ([], "time")


async def test_a_report_tells_what_was_recalled_for_a_turn(run, clock):
    runtime = await run(model=ScriptedModel(lambda request: "It is a Vaillant. " * 20))
    session = await runtime.start_session(window=SMALL)
    said = await turn(runtime, session, SAID, caller=TurnCaller(user_name="Ida"))
    await fill(runtime, session)
    result = await turn(runtime, session, "When was the boiler serviced?")
    step = find_recalled(result)
    report = await runtime.recall_report(result.continuation.id)
    assert (report.reason, report.found_words) == ("words", ("boiler", "serviced"))
    assert report.tokens >= sum(each.tokens for each in report.messages) > 0
    assert [each.message_id for each in report.messages] == step["message_ids"]
    assert [each.score for each in report.messages] == step["scores"]
    first = report.messages[0]
    assert (first.speaker, first.text) == ("Ida", SAID)
    assert first.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert all(len(each.text) <= 200 for each in report.messages)
    assert await runtime.recall_report(said.continuation.id) is None


async def test_the_context_report_has_what_was_recalled_for_the_last_turn(run):
    runtime = await run("ok")
    session = await start(runtime, SAID)
    assert (await runtime.context_report(session.id))["recalled"] is None
    result = await turn(runtime, session, "When was the boiler serviced?")
    recalled = ContextShown.of(await runtime.context_report(session.id)).recalled
    assert recalled == await runtime.recall_report(result.continuation.id)
    assert recalled.messages[0].text == SAID
    await answer(runtime, session, "Thank you")
    assert (await runtime.context_report(session.id))["recalled"] is None
