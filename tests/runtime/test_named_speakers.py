""" "That was Anna": facts know the turn that stated them, and the speaker of a turn can be named later."""

import asyncio

import pytest

from sash.engine.notes import MAX_NOTES
from sash.errors import ContinuationNotFound, InvalidExport, InvalidInput
from sash.stores.memory import MemoryStore
from sash.testing import FaultyStore, ScriptedModel, calling
from sash.values.continuations import TurnCaller
from sash.values.ids import new_id
from sash.values.sessions import Fact
from tests.runtime.small_window import SMALL
from tests.runtime.talk import WAIT_S, system_texts
from tests.runtime.waiting_model import WaitingModel

HOUSE = "house"
ANNA = TurnCaller(user_id="u1", user_name="Anna")


async def say(runtime, session, message="hi", **options):
    """Send a message to a session of any owner, wait for the end of its turn, and return the turn."""
    sent = await runtime.send_message(session.id, message, owner=session.owner, **options)
    result = await runtime.await_continuation(sent.id, owner=session.owner, timeout_s=WAIT_S)
    return result.continuation


async def test_a_fact_knows_the_turn_that_stated_it(run):
    runtime = await run(calling("remember", text="Anna is a pilot"), "ok", "ok")
    session = await runtime.start_session(owner=HOUSE)
    by_sentence = await say(runtime, session, "remember that the bins go out on Monday")
    by_model = await say(runtime, session, "I am Anna, a pilot")
    await runtime.remember("set by hand", owner=HOUSE)
    assert [(fact.text, fact.continuation_id) for fact in await runtime.list_facts(owner=HOUSE)] == [
        ("the bins go out on Monday", by_sentence.id),
        ("Anna is a pilot", by_model.id),
        ("set by hand", None),
    ]


async def test_an_extracted_fact_knows_the_turn_that_stated_it(run):
    model = ScriptedModel(lambda r: "Rex is a dog." if "lasting" in r.messages[0]["content"] else "ok")
    runtime = await run(model=model, fact_extraction=True)
    stated = await say(runtime, await runtime.start_session(), "this is Rex, my dog")
    await runtime.wait_for_background()
    [fact] = await runtime.list_facts()
    assert fact.continuation_id == stated.id


async def test_the_facts_of_a_turn_move_to_the_speaker_who_is_named_later(run, clock):
    runtime = await run(household=HOUSE)
    session = await runtime.start_session(owner=HOUSE)
    await say(runtime, session, "remember that the gate squeaks")
    stated = await say(runtime, session, "remember that I like 21 degrees")
    [kept, fact] = await runtime.list_facts(owner=HOUSE)
    clock.advance(60)
    [moved] = await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna")
    assert (moved.id, moved.text, moved.continuation_id) == (fact.id, fact.text, stated.id)
    assert (moved.created_at, moved.updated_at) == (fact.created_at, clock.now())
    assert await runtime.list_facts(owner="anna") == (moved,)
    assert await runtime.list_facts(owner=HOUSE) == (kept,)
    assert await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna") == (), "nothing is left to move"
    assert await runtime.list_facts(owner="anna") == (moved,)


async def test_a_move_to_the_same_owner_changes_nothing(run):
    runtime = await run()
    stated = await say(runtime, await runtime.start_session(), "remember that I like 21 degrees")
    before = await runtime.list_facts()
    assert await runtime.move_facts(stated.id, to_owner="local") == before
    assert await runtime.list_facts() == before


async def test_a_moved_fact_leaves_the_prompts_of_its_new_owner_alone(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    stated = await say(runtime, await runtime.start_session(owner=HOUSE), "remember that I like tea")
    clock.advance(60)
    session = await runtime.start_session(owner="anna", window=SMALL, preferences={"language": "en"})
    await say(runtime, session, "before")
    before = model.requests[-1].messages
    clock.advance(60)
    await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna")
    clock.advance(60)
    await say(runtime, session, "after")
    after = model.requests[-1].messages
    asked = next(n for n, m in enumerate(before) if m["content"].endswith("] before"))
    assert after[: asked + 1] == before[: asked + 1]
    assert any("I like tea" in text for text in system_texts(model.requests[-1]))


async def test_a_crash_during_a_move_leaves_a_double_and_loses_nothing(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run(store=store)
    stated = await say(runtime, await runtime.start_session(owner=HOUSE), "remember that I like tea")
    store.fail("save_owner_notes", RuntimeError("crash"))
    with pytest.raises(RuntimeError):
        await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna")
    assert await runtime.list_facts(owner="anna") == ()
    assert len(await runtime.list_facts(owner=HOUSE)) == 1
    store.fail("save_owner_notes", RuntimeError("crash"), after=True)
    with pytest.raises(RuntimeError):
        await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna")
    [double], [_] = await runtime.list_facts(owner="anna"), await runtime.list_facts(owner=HOUSE)
    assert await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna") == (double,)
    assert await runtime.list_facts(owner=HOUSE) == ()
    assert await runtime.list_facts(owner="anna") == (double,)


async def test_facts_without_room_are_not_moved(run):
    runtime = await run()
    stated = await say(runtime, await runtime.start_session(owner=HOUSE), "remember that I like tea")
    for n in range(MAX_NOTES):
        await runtime.remember(f"fact {n}", owner="anna")
    with pytest.raises(InvalidInput, match="at most"):
        await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna")
    assert len(await runtime.list_facts(owner=HOUSE)) == 1
    assert len(await runtime.list_facts(owner="anna")) == MAX_NOTES
    with pytest.raises(InvalidInput, match="to_owner"):
        await runtime.move_facts(stated.id, owner=HOUSE, to_owner="")


async def test_a_fact_that_the_new_owner_knows_is_not_doubled(run):
    runtime = await run()
    own = await runtime.remember("I like tea", owner="anna")
    stated = await say(runtime, await runtime.start_session(owner=HOUSE), "remember that I like tea")
    assert await runtime.move_facts(stated.id, owner=HOUSE, to_owner="anna") == (own,)
    assert await runtime.list_facts(owner="anna") == (own,)
    assert await runtime.list_facts(owner=HOUSE) == ()


async def test_a_speaker_is_named_later_and_stays_named_after_a_restart(run, make_store):
    runtime = await run()
    session = await runtime.start_session(owner=HOUSE)
    spoken = await say(runtime, session, caller=TurnCaller(device_id="puck"))
    other = await say(runtime, session)
    named = await runtime.name_caller(spoken.id, ANNA, owner=HOUSE)
    expected = TurnCaller(user_id="u1", user_name="Anna", device_id="puck", certainty="named")
    assert named.request.caller == expected
    assert (named.response, named.status) == (spoken.response, "completed")
    store = runtime.store if isinstance(runtime.store, MemoryStore) else make_store()
    await runtime.close()
    runtime = await run(store=store)
    result = await runtime.await_continuation(spoken.id, owner=HOUSE)
    assert result.continuation == named
    assert (await runtime.await_continuation(other.id, owner=HOUSE)).continuation.request.caller is None
    exported = await runtime.export_session(session.id, owner=HOUSE)
    assert exported["continuations"][0]["request"]["caller"]["user_name"] == "Anna"


async def test_the_speaker_of_a_running_turn_can_be_named(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.name_caller(sent.id, ANNA)
    model.go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    stored = await runtime.store.get_continuation("local", sent.id)
    assert (stored.status, stored.request.caller.user_name) == ("completed", "Anna")


async def test_a_named_speaker_is_checked_and_has_no_secret(run):
    runtime = await run()
    spoken = await say(runtime, await runtime.start_session())
    for wrong in (TurnCaller(device_id="puck"), "Anna", None):
        with pytest.raises(InvalidInput):
            await runtime.name_caller(spoken.id, wrong)
    with pytest.raises(ContinuationNotFound):
        await runtime.name_caller(spoken.id, ANNA, owner="bob")
    with pytest.raises(ContinuationNotFound):
        await runtime.name_caller(new_id(), ANNA)
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"
    with pytest.raises(InvalidInput):
        await runtime.name_caller(spoken.id, TurnCaller(user_name=key))
    assert (await runtime.await_continuation(spoken.id)).continuation.request.caller is None


async def export_with_fact(runtime, continuation_id):
    """Return the export of a session with one turn and a fact, and the id of the turn."""
    session = await runtime.start_session()
    spoken = await say(runtime, session)
    data = await runtime.export_session(session.id)
    fact = {"id": "f", "text": "x", "created_at": "2025-01-01T00:00:00Z", "continuation_id": continuation_id}
    data["session"]["memory"]["facts"] = [
        fact | ({"continuation_id": spoken.id} if continuation_id == "own" else {})
    ]
    return data, spoken.id


@pytest.mark.parametrize("owner", ["local", "bob"])
async def test_an_imported_fact_names_its_turn_under_the_new_id(run, owner):
    runtime = await run()
    data, turn_id = await export_with_fact(runtime, "own")
    await runtime.erase()
    imported = await runtime.import_session(data, owner=owner)
    [turn] = await runtime.list_turns(imported.id, owner=owner)
    assert (turn.id == turn_id) is (owner == "local")
    assert imported.memory.facts[0].continuation_id == turn.id


async def test_an_imported_fact_names_no_turn_that_is_not_imported(run):
    runtime = await run()
    other = await say(runtime, await runtime.start_session(), "remember that I like tea")
    data, _ = await export_with_fact(runtime, other.id)
    imported = await runtime.import_session(data, owner="bob")
    assert imported.memory.facts[0].continuation_id is None
    data, _ = await export_with_fact(runtime, "x" * 300)
    with pytest.raises(InvalidExport, match="continuation_id"):
        await runtime.import_session(data, owner="bob")


async def test_a_fact_of_an_older_version_names_no_turn(run):
    runtime = await run()
    data, _ = await export_with_fact(runtime, None)
    del data["session"]["memory"]["facts"][0]["continuation_id"]
    imported = await runtime.import_session(data, owner="bob")
    assert imported.memory.facts == (Fact("f", "x", imported.memory.facts[0].created_at),)
