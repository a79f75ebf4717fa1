"""`Runtime.reply`: a yes or no answers the approval question of a session; other messages drop it."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import Forbidden, MessageTooLarge, ModelFixed, SessionBusy
from sash.testing import ScriptedModel, both, calling
from sash.values.continuations import TurnCaller
from sash.values.requests import SendMessage
from sash.values.sessions import ModelConfig
from tests.pausing_store import PausingStore
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S, said, transcript, turn
from tests.tools import Switch, tool

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
async def asking(run):
    """Return a function that starts a turn which waits for an approval."""

    async def ask(*lines, **options):
        switch = Switch()
        lines = lines or (calling("switch"), "It is on.", "Something else.")
        runtime = await run(*lines, tools=[switch.tool], **options)
        session = await runtime.start_session(policy=CAREFUL)
        waiting = await turn(runtime, session, "switch it on")
        assert waiting.status == "awaiting_approval"
        return runtime, session, waiting.continuation.id, switch

    return ask


async def reply(runtime, session, message, **options):
    """Reply, and return the turn when it has ended or waits again."""
    replied = await runtime.reply(session.id, SendMessage(message=message), **options)
    return await runtime.await_continuation(replied.id, timeout_s=WAIT_S)


@pytest.mark.parametrize(
    ("message", "outcome", "count"), [("Yes, please!", "done", 1), ("never mind", "denied", 0)]
)
async def test_a_yes_or_no_answers_the_question(asking, clock, message, outcome, count):
    runtime, session, waiting, switch = await asking()
    clock.advance(60)
    result = await reply(runtime, session, message)
    assert (result.continuation.id, result.status) == (waiting, "completed")
    assert [action.outcome for action in result.response.actions] == [outcome]
    assert switch.count == count
    assert [text for role, text in await transcript(runtime, session) if role == "user"] == ["switch it on"]


async def test_a_yes_that_goes_on_approves_and_starts_the_next_turn(asking):
    runtime, session, waiting, switch = await asking()
    result = await reply(runtime, session, "yes, and tell me a joke")
    approved = await runtime.await_continuation(waiting, timeout_s=WAIT_S)
    assert (approved.status, switch.count) == ("completed", 1)
    assert result.continuation.id != waiting and result.response.final_message == "Something else."
    assert [text for role, text in await transcript(runtime, session) if role == "user"] == [
        "switch it on",
        "yes, and tell me a joke",
    ]


async def test_a_yes_that_goes_on_is_too_late_after_a_minute(asking, clock):
    runtime, session, waiting, switch = await asking()
    clock.advance(61)
    await reply(runtime, session, "yes, and tell me a joke")
    dropped = await runtime.await_continuation(waiting, timeout_s=WAIT_S)
    assert (dropped.status, switch.count) == ("cancelled", 0)


KITCHEN, BEDROOM = TurnCaller(device_id="kitchen"), TurnCaller(device_id="bedroom")
ANNA, BERT = (TurnCaller(user_id=name, certainty="signed_in") for name in ("anna", "bert"))


@pytest.mark.parametrize(
    ("asked", "speaker", "count"),
    [
        (KITCHEN, KITCHEN, 1),
        (KITCHEN, BEDROOM, 0),
        (KITCHEN, None, 0),
        (KITCHEN, replace(ANNA, device_id="kitchen"), 0),
        (ANNA, ANNA, 1),
        (ANNA, BERT, 0),
        (None, ANNA, 0),
        (replace(ANNA, device_id="kitchen", certainty="named"), KITCHEN, 1),
    ],
)
async def test_a_question_is_answered_where_it_was_asked(run, asked, speaker, count):
    switch = Switch()
    runtime = await run(calling("switch"), "Well.", tools=[switch.tool])
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await runtime.send_message(session.id, "switch it on", caller=asked)
    await runtime.await_continuation(waiting.id, timeout_s=WAIT_S)
    replied = await runtime.reply(session.id, SendMessage(message="yes", caller=speaker))
    await runtime.await_continuation(replied.id, timeout_s=WAIT_S)
    assert switch.count == count
    if not count:
        assert (await runtime.await_continuation(waiting.id, timeout_s=WAIT_S)).status == "cancelled"


@pytest.mark.parametrize(
    ("message", "wait_s", "reason"),
    [("what is the time", 0, "another message"), ("yes", 61, "too late"), ("no", 61, "too late")],
)
async def test_any_other_or_later_message_drops_the_question(asking, clock, message, wait_s, reason):
    runtime, session, waiting, switch = await asking(calling("switch"), "It is noon.")
    clock.advance(wait_s)
    result = await reply(runtime, session, message)
    assert result.continuation.id != waiting
    assert (result.status, result.response.final_message) == ("completed", "It is noon.")
    dropped = await runtime.await_continuation(waiting, timeout_s=0)
    assert dropped.status == "cancelled"
    assert reason in dropped.steps[-1].body.reason
    assert switch.count == 0
    assert said(runtime.model.requests[-1]) == [message]
    assert await runtime.open_continuations(session.id) == []


async def test_the_time_to_answer_can_be_set(asking, clock):
    runtime, session, waiting, switch = await asking()
    clock.advance(300)
    result = await reply(runtime, session, "yes", approval_wait_s=300)
    assert (result.continuation.id, switch.count) == (waiting, 1)


async def test_without_a_question_a_message_starts_a_turn(run):
    runtime = await run("Hello.")
    session = await runtime.start_session()
    result = await reply(runtime, session, "yes")
    assert result.response.final_message == "Hello."
    assert said(runtime.model.requests[0]) == ["yes"]


async def test_a_running_turn_is_not_dropped(run):
    gate = asyncio.Event()

    async def look(arguments, context):
        await gate.wait()
        return "seen"

    runtime = await run(calling("look"), "ok", tools=[tool("look", look)])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "look")
    with pytest.raises(SessionBusy):
        await runtime.reply(session.id, SendMessage(message="stop it all"))
    queued = await runtime.reply(session.id, SendMessage(message="and then", busy="enqueue"))
    gate.set()
    for one in (sent, queued):
        assert (await runtime.await_continuation(one.id, timeout_s=WAIT_S)).status == "completed"


async def test_a_second_question_of_the_turn_is_asked_for_itself(asking):
    calls = both(calling("switch", "a"), calling("switch", "b"))
    runtime, session, waiting, switch = await asking(calls, "Both are on.")
    result = await reply(runtime, session, "yes")
    assert (result.status, switch.count) == ("awaiting_approval", 1)
    assert [call.call_id for call in result.waiting_calls] == ["b"]
    result = await reply(runtime, session, "yes")
    assert (result.continuation.id, result.status, switch.count) == (waiting, "completed", 2)


async def test_the_newest_question_is_answered_and_all_are_dropped(asking, clock):
    lines = (calling("switch"), calling("switch"), "It is on.", "Fine.")
    runtime, session, first, switch = await asking(*lines, max_open_turns=2)
    clock.advance(1)
    second = (await turn(runtime, session, "and the other one")).continuation.id
    result = await reply(runtime, session, "yes")
    assert (result.continuation.id, switch.count) == (second, 1)
    await reply(runtime, session, "tell me a joke")
    assert (await runtime.await_continuation(first, timeout_s=0)).status == "cancelled"
    assert switch.count == 1


async def test_a_message_that_is_sent_again_changes_nothing(run):
    switch = Switch()
    runtime = await run("Hello.", calling("switch"), "It is on.", tools=[switch.tool])
    session = await runtime.start_session(policy=CAREFUL)
    hello = SendMessage(message="hello", idempotency_key="1")
    greeted = await runtime.reply(session.id, hello)
    await runtime.await_continuation(greeted.id, timeout_s=WAIT_S)
    order = SendMessage(message="switch it on", idempotency_key="2")
    waiting = await runtime.reply(session.id, order)
    await runtime.await_continuation(waiting.id, timeout_s=WAIT_S)
    assert (await runtime.reply(session.id, hello)).id == greeted.id
    assert (await runtime.reply(session.id, order)).id == waiting.id
    assert (await runtime.await_continuation(waiting.id, timeout_s=0)).status == "awaiting_approval"


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (SendMessage(message="x" * 2000), MessageTooLarge),
        (SendMessage(message="hi", model=ModelConfig(name="another")), ModelFixed),
    ],
    ids=["too large", "another model"],
)
async def test_a_message_that_is_refused_drops_nothing(asking, sent, error):
    runtime, session, waiting, _ = await asking(max_message_bytes=1000)
    await runtime.update_session(session.id, policy={"enforce_fixed_model": True})
    with pytest.raises(error):
        await runtime.reply(session.id, sent)
    assert (await runtime.await_continuation(waiting, timeout_s=0)).status == "awaiting_approval"


async def test_a_yes_with_a_picture_is_a_message(asking):
    runtime, session, waiting, switch = await asking()
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    replied = await runtime.reply(session.id, SendMessage(message="yes", attachments=(picture,)))
    assert replied.id != waiting and switch.count == 0


async def test_a_check_may_refuse_before_anything_happens(asking):
    runtime, session, waiting, switch = await asking()
    checked = []

    async def check(answered):
        checked.append(answered and answered.id)
        raise Forbidden("no", scope="act")

    for message in ("yes", "no", "hello"):
        with pytest.raises(Forbidden):
            await runtime.reply(session.id, SendMessage(message=message), check=check)
    assert checked == [waiting, waiting, None]
    assert (await runtime.await_continuation(waiting, timeout_s=0)).status == "awaiting_approval"
    assert switch.count == 0


async def test_a_yes_after_a_restart_answers_the_question(asking, run, make_store, clock):
    store = make_store()
    runtime, session, waiting, switch = await asking(store=store)
    await runtime.close()
    again = await run("It is on.", store=store, tools=[switch.tool])
    result = await reply(again, session, "yes")
    assert (result.continuation.id, result.status, switch.count) == (waiting, "completed", 1)


@pytest.mark.parametrize("message", ["yes", "hello"])
async def test_a_question_that_another_client_answers_meanwhile_is_left_alone(run, make_store, message):
    """Another client approves the call after the question was read, and before this message takes effect."""
    reached, go_on, verb = asyncio.Event(), asyncio.Event(), ""

    async def pause(called):
        nonlocal verb
        if called == verb:
            verb = ""
            reached.set()
            await go_on.wait()

    switch = Switch()
    runtime = await run(
        model=ScriptedModel(calling("switch"), "It is on.", "Hello."),
        tools=[switch.tool],
        store=PausingStore(make_store(), pause),
    )
    session = await runtime.start_session(policy=CAREFUL)
    waiting = (await turn(runtime, session, "switch it on")).continuation.id
    verb = "claim" if message == "yes" else "cancel"
    late = asyncio.create_task(runtime.reply(session.id, SendMessage(message=message)))
    await asyncio.wait_for(reached.wait(), WAIT_S)
    await runtime.approve(waiting, "call")
    approved = await runtime.await_continuation(waiting, timeout_s=WAIT_S)
    assert (approved.status, switch.count) == ("completed", 1)
    go_on.set()
    replied = await asyncio.wait_for(late, WAIT_S)
    assert (replied.id == waiting) is (message == "yes")
    assert (await runtime.await_continuation(waiting, timeout_s=0)).status == "completed"
    assert switch.count == 1


async def test_a_turn_that_was_approved_meanwhile_and_acts_is_not_cancelled(run):
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def act(arguments, context):
        under_way.set()
        await go_on.wait()
        return "done"

    runtime = await run(calling("act"), "It is on.", tools=[tool("act", act, action=True)])
    session = await runtime.start_session(policy=CAREFUL)
    waiting = (await turn(runtime, session, "switch it on")).continuation.id

    async def approve(answered):
        await runtime.approve(waiting, "call")
        await asyncio.wait_for(under_way.wait(), WAIT_S)

    with pytest.raises(SessionBusy):
        await runtime.reply(session.id, SendMessage(message="hello"), check=approve)
    go_on.set()
    result = await runtime.await_continuation(waiting, timeout_s=WAIT_S)
    assert [action.outcome for action in result.response.actions] == ["done"]


async def test_a_turn_that_is_queued_behind_the_question_starts_first(asking):
    runtime, session, _, _ = await asking(calling("switch"), "First.", "Second.")
    queued = await runtime.send_message(session.id, "one", busy="enqueue")
    sent = await runtime.reply(session.id, SendMessage(message="two", busy="enqueue"))
    answers = [await runtime.await_continuation(each.id, timeout_s=WAIT_S) for each in (queued, sent)]
    assert [each.response.final_message for each in answers] == ["First.", "Second."]


async def test_a_message_that_another_agent_answered_drops_an_older_question(asking, clock):
    runtime, session, waiting, switch = await asking()
    await runtime.drop_questions(session.id, asked_before=clock.now())
    assert (await runtime.await_continuation(waiting, timeout_s=0)).status == "awaiting_approval"
    clock.advance(1)
    await runtime.drop_questions(session.id, asked_before=clock.now())
    assert (await runtime.await_continuation(waiting, timeout_s=0)).status == "cancelled"
    await runtime.record_turn(session.id, "what time is it?", "It is nine.")
    assert (await reply(runtime, session, "yes")).response.actions == ()
    assert switch.count == 0
