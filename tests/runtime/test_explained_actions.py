"""Why did you do that? The sentence that led to an action, who spoke it, and what allowed it."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sash import ActionExplanation
from sash.engine.past_actions import MAX_TURNS_TO_EXPLAIN
from sash.errors import InvalidInput, SessionNotFound
from sash.ports.tools import ActionOutcome
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import both, calling
from sash.values.continuations import TurnCaller
from sash.values.ids import new_id
from sash.values.sessions import SessionPolicy
from tests.runtime.home_actions import FREE, ON
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S
from tests.tools import tool

HOUSE = "house"
CEILING, COUNTER = "light.kitchen_ceiling", "light.kitchen_counter"
LIGHTS = SessionPolicy(allow_actuation=True, allowlisted_services=("switch", "light.*", "*"))
ANNA = TurnCaller(user_id="u1", user_name="Anna", certainty="signed_in")


async def say(runtime, session, message, **options):
    """Send a message to a session of any owner, and wait for its turn."""
    sent = await runtime.send_message(session.id, message, owner=session.owner, **options)
    return await runtime.await_continuation(sent.id, owner=session.owner, timeout_s=WAIT_S)


async def sweep(runtime, clock):
    """Drop the steps of all ended turns, and return the number of dropped steps."""
    clock.advance(60)
    now = clock.now()
    swept = await runtime.store.sweep(idle_before=now - timedelta(days=1), ended_before=now)
    return swept.steps


async def test_an_action_is_explained_by_the_sentence_that_led_to_it(live, clock, tmp_path):
    store = SqliteStore(tmp_path / "sash.db", clock=clock)
    runtime = await live(store=store, clock=clock)
    session = await runtime.start_session(policy=LIGHTS)
    asked_at = clock.now()
    turn = await say(runtime, session, "turn on the kitchen ceiling", caller=ANNA)
    clock.advance(60)
    await say(runtime, session, "is the front door locked?")
    expected = ActionExplanation(
        owner="local",
        session_id=session.id,
        continuation_id=turn.continuation.id,
        sentence="turn on the kitchen ceiling",
        asked_at=asked_at,
        acted_at=asked_at,
        caller=ANNA,
        way="local",
        tool="call_service",
        service="light.turn_on",
        entity_ids=(CEILING,),
        outcome="done",
        verified=True,
        allowed_by="light.*",
        approved=None,
    )
    assert await runtime.explain_action() == expected
    named = TurnCaller(user_name="Bob", certainty="named")
    await runtime.name_caller(turn.continuation.id, named)
    assert (await runtime.explain_action()).caller == named


async def test_an_action_that_a_model_chose_is_explained_also_after_a_sweep(live, clock):
    script = (calling("call_service", **ON), "Done, and verified.")
    runtime = await live(*script, store=MemoryStore(clock=clock), clock=clock)
    session = await runtime.start_session(policy=FREE)
    await say(runtime, session, "make it bright for my cat")
    before = await runtime.explain_action()
    assert (before.way, before.sentence, before.allowed_by) == ("model", "make it bright for my cat", "*")
    assert await sweep(runtime, clock)
    assert await runtime.explain_action() == before


async def test_the_way_of_a_local_action_is_known_after_a_sweep(live, clock):
    runtime = await live(store=MemoryStore(clock=clock), clock=clock)
    await say(runtime, await runtime.start_session(policy=FREE), "turn on the kitchen ceiling")
    before = await runtime.explain_action()
    assert await sweep(runtime, clock)
    assert await runtime.explain_action() == before
    assert before.way == "local"


async def test_a_local_call_before_a_model_was_asked_is_local(live):
    runtime = await live("It did not work, I am sorry.")
    runtime.house.ignore_next("light.turn_on")
    turn = await say(runtime, await runtime.start_session(policy=FREE), "turn on the kitchen ceiling")
    assert turn.continuation.stats.model_calls == 1
    explained = await runtime.explain_action()
    assert (explained.way, explained.outcome, explained.verified) == ("local", "done", False)


async def test_an_action_on_an_entity_is_found_behind_newer_ones(live):
    runtime = await live()
    kitchen, hall = [await runtime.start_session(policy=FREE) for _ in range(2)]
    for session, sentence in (
        (kitchen, "turn on the kitchen ceiling"),
        (hall, "turn on the counter"),
        (hall, "turn on the kettle"),
    ):
        await say(runtime, session, sentence)
    for options, sentence in (
        ({}, "turn on the kettle"),
        ({"entity_id": CEILING}, "turn on the kitchen ceiling"),
        ({"entity_id": COUNTER}, "turn on the counter"),
        ({"session_id": kitchen.id}, "turn on the kitchen ceiling"),
        ({"session_id": hall.id, "entity_id": COUNTER}, "turn on the counter"),
    ):
        assert (await runtime.explain_action(**options)).sentence == sentence
    assert await runtime.explain_action(entity_id="light.living_room") is None
    assert await runtime.explain_action(session_id=kitchen.id, entity_id=COUNTER) is None


async def test_the_last_action_of_a_turn_is_its_newest(live):
    kettle = {"service": "switch.turn_on", "entity_ids": ["switch.kettle"]}
    plan = both(calling("call_service", "c1", **ON), calling("call_service", "c2", **kettle))
    runtime = await live(plan, "Done.")
    await say(runtime, await runtime.start_session(policy=FREE), "make it cosy for my cat")
    assert (await runtime.explain_action()).service == "switch.turn_on"


async def test_an_action_on_an_area_is_found_by_each_of_its_entities(live):
    runtime = await live(calling("call_service", service="Light.Turn_On ", areas=["Kitchen"]), "Done.")
    await say(runtime, await runtime.start_session(policy=FREE), "make it bright for my cat")
    for entity_id in (CEILING, COUNTER):
        explained = await runtime.explain_action(entity_id=entity_id)
        assert explained.service == "light.turn_on"
        assert set(explained.entity_ids) == {CEILING, COUNTER}


async def test_an_undo_acts_on_the_entities_of_what_it_undid(live):
    runtime = await live()
    session = await runtime.start_session(policy=FREE)
    await say(runtime, session, "turn on the kitchen ceiling")
    await say(runtime, session, "undo that")
    explained = await runtime.explain_action(entity_id=CEILING)
    assert (explained.sentence, explained.tool, explained.service) == ("undo that", "undo_last_action", None)
    assert explained.entity_ids == (CEILING,)


async def test_what_was_denied_or_previewed_is_no_action(live):
    runtime = await live()
    for policy, sentence in (
        (FREE, "turn on the kitchen ceiling"),
        (SessionPolicy(), "turn on the counter"),
        (replace(FREE, dry_run=True), "turn on the kettle"),
    ):
        await say(runtime, await runtime.start_session(policy=policy), sentence)
    assert (await runtime.explain_action()).sentence == "turn on the kitchen ceiling"


async def test_a_tool_of_another_kind_that_a_person_approved_is_explained(run):
    doors = tool("lock.unlock", lambda arguments, context: "open", action=True)
    runtime = await run(calling("lock.unlock", "c1", door="front"), "It is open.", tools=[doors])
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await say(runtime, session, "let me in")
    assert await runtime.explain_action() is None, "nothing was done yet"
    await runtime.approve(waiting.continuation.id, "c1")
    await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    explained = await runtime.explain_action()
    assert (explained.tool, explained.service, explained.entity_ids) == ("lock.unlock", None, ())
    assert (explained.allowed_by, explained.approved, explained.verified) == ("*", True, None)
    assert (explained.way, explained.outcome) == ("model", "done")


async def test_an_action_is_explained_while_its_turn_runs(run, clock):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(arguments, context):
        started.set()
        await go_on.wait()

    tools = [tool("act", lambda arguments, context: "acted", action=True), tool("wait", wait)]
    runtime = await run(calling("act", "c1"), calling("wait", "c2"), "Done.", tools=tools)
    session = await runtime.start_session(policy=FREE)
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    explained = await runtime.explain_action()
    assert (explained.sentence, explained.acted_at, explained.way) == ("go", clock.now(), "model")
    clock.advance(60)
    go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert await runtime.explain_action() == explained, "the action was earlier than the end of the turn"


async def test_what_allowed_an_action_that_was_cut_off_stays_known(run, make_store):
    started = asyncio.Event()

    async def act(arguments, context):
        context.on_cut_off(lambda: ActionOutcome(None, before={CEILING: {"state": "off"}}))
        started.set()
        await asyncio.Event().wait()

    acts = tool("act", act, action=True)
    runtime = await run(calling("act"), tools=[acts])
    session = await runtime.start_session(policy=FREE)
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await runtime.close()
    store = runtime.store if isinstance(runtime.store, MemoryStore) else make_store()
    runtime = await run("I do not know.", tools=[acts], store=store)
    await runtime.update_session(session.id, policy={"allow_actuation": False})
    await runtime.resume(sent.id)
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    explained = await runtime.explain_action(entity_id=CEILING)
    assert (explained.outcome, explained.allowed_by, explained.way) == ("unknown", "*", "model")


async def test_persons_find_the_actions_of_the_house_and_not_those_of_others(run):
    acts = tool("act", lambda arguments, context: "acted", action=True)
    lines = [line for n in range(3) for line in (calling("act", f"c{n}"), "ok")]
    runtime = await run(*lines, tools=[acts], household=HOUSE)
    sessions = [await runtime.start_session(owner=owner, policy=FREE) for owner in (HOUSE, "anna", "bob")]
    for session in sessions[:2]:
        await say(runtime, session, f"go, {session.owner}")
    for owner, sentence in ((HOUSE, "go, house"), ("anna", "go, anna"), ("bob", "go, house")):
        assert (await runtime.explain_action(owner=owner)).sentence == sentence
    await say(runtime, sessions[0], "now the house")
    newest = await runtime.explain_action(owner="anna")
    assert (newest.sentence, newest.owner, newest.session_id) == ("now the house", HOUSE, sessions[0].id)
    for session in sessions[:2]:
        found = await runtime.explain_action(owner="anna", session_id=session.id)
        assert found.session_id == session.id
    for owner in (HOUSE, "bob"):
        with pytest.raises(SessionNotFound):
            await runtime.explain_action(owner=owner, session_id=sessions[1].id)


async def test_without_a_household_an_owner_finds_its_own_actions_only(run):
    acts = tool("act", lambda arguments, context: "acted", action=True)
    runtime = await run(calling("act"), "ok", tools=[acts])
    await say(runtime, await runtime.start_session(owner=HOUSE, policy=FREE), "go")
    assert await runtime.explain_action(owner="anna") is None
    assert await runtime.explain_action(owner=HOUSE) is not None


async def test_the_search_is_bounded(run):
    acts = tool("act", lambda arguments, context: "acted", action=True)
    runtime = await run(calling("act"), "ok", tools=[acts])
    if not isinstance(runtime.store, MemoryStore):
        return
    session = await runtime.start_session(policy=FREE)
    await say(runtime, session, "go")
    for n in range(MAX_TURNS_TO_EXPLAIN):
        assert await runtime.explain_action() is not None
        await runtime.record_turn(session.id, f"question {n}", "answer")
    assert await runtime.explain_action() is None


async def test_wrong_arguments_are_refused(run):
    runtime = await run()
    with pytest.raises(SessionNotFound):
        await runtime.explain_action(session_id=new_id())
    with pytest.raises(InvalidInput, match="session_id"):
        await runtime.explain_action(session_id="")
    with pytest.raises(InvalidInput, match="entity_id"):
        await runtime.explain_action(entity_id=3)
