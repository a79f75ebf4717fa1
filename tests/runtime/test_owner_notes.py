"""Facts, pins and preferences of an owner, which all sessions of the owner know."""

import asyncio

import pytest

from sash.engine.notes import MAX_NOTES
from sash.errors import InvalidInput, NoteNotFound
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer, system_texts, turn


async def test_a_new_fact_of_the_owner_leaves_the_head_of_running_sessions_alone(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL, preferences={"language": "German"})
    await turn(runtime, session, "before")
    before = model.requests[-1].messages
    clock.advance(60)
    other = await runtime.start_session()
    await turn(runtime, other, "remember that I like 21 degrees")
    await runtime.pin("answer in one sentence")
    clock.advance(60)
    await turn(runtime, session, "after")
    after = model.requests[-1].messages
    asked = next(n for n, m in enumerate(before) if m["content"].endswith("] before"))
    assert after[: asked + 1] == before[: asked + 1], "the prompt is the same up to the new answer"
    told = [n for n, m in enumerate(after) if "I like 21 degrees" in m["content"]]
    assert len(told) == 1
    assert told[0] > asked
    assert after[told[0]]["volatile"]
    await turn(runtime, await runtime.start_session(), "new")
    head = model.requests[-1].messages[1]
    assert "I like 21 degrees" in head["content"]
    assert "answer in one sentence" in head["content"]
    assert "volatile" not in head
    clock.advance(60)
    await fill(runtime, session)
    assert "I like 21 degrees" in model.requests[-1].messages[1]["content"], "it moves with the next cut"


async def test_a_changed_fact_reaches_all_sessions(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    fact = await runtime.remember("I like 21 degrees")
    clock.advance(60)
    session = await runtime.start_session()
    changed = await runtime.edit_fact(fact.id, "I like 19 degrees")
    assert (changed.text, changed.id, changed.scope) == ("I like 19 degrees", fact.id, "owner")
    await turn(runtime, session)
    said = "\n".join(system_texts(model.requests[-1]))
    assert "19 degrees" in said
    assert "21 degrees" not in said
    assert await runtime.drop_fact(fact.id) == changed
    await turn(runtime, session)
    assert "19 degrees" not in "\n".join(system_texts(model.requests[-1]))
    with pytest.raises(NoteNotFound):
        await runtime.edit_fact(fact.id, "gone")


async def test_owners_do_not_see_the_notes_of_others(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    fact = await runtime.remember("the safe is behind the mirror", owner="ann")
    session = await runtime.start_session(owner="bob")
    sent = await runtime.send_message(session.id, "hi", owner="bob")
    await runtime.await_continuation(sent.id, owner="bob", timeout_s=10)
    assert "mirror" not in str(model.requests[-1].messages)
    assert await runtime.list_facts(owner="bob") == ()
    with pytest.raises(NoteNotFound):
        await runtime.drop_fact(fact.id, owner="bob")


async def test_a_session_keeps_facts_of_its_own(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session, other = await runtime.start_session(), await runtime.start_session()
    fact = await runtime.remember("the guest leaves on Monday", session_id=session.id)
    assert fact.scope == "session"
    assert await runtime.list_facts() == ()
    await turn(runtime, other)
    assert "Monday" not in str(model.requests[-1].messages)
    await turn(runtime, session)
    assert "Monday" in str(model.requests[-1].messages)


async def test_recall_and_forget_see_the_facts_of_the_owner(run):
    model = ScriptedModel(
        calling("recall", query="boiler"), "found", calling("forget", about="boiler"), "gone"
    )
    runtime = await run(model=model)
    await runtime.remember("the boiler is from 2011")
    session = await runtime.start_session()
    await runtime.remember("the boiler leaks", session_id=session.id)
    await turn(runtime, session, "how old is it?")
    assert "2011" in model.requests[1].messages[-1]["content"]
    assert "leaks" in model.requests[1].messages[-1]["content"]
    await turn(runtime, session, "drop that")
    assert await runtime.list_facts() == ()
    assert await runtime.list_facts(session_id=session.id) == ()


async def test_a_sentence_forgets_a_fact_of_the_owner(run):
    runtime = await run("never asked")
    await answer(runtime, await runtime.start_session(), "remember that I like 21 degrees")
    said = await answer(runtime, await runtime.start_session(), "forget that I like 21 degrees")
    assert said == "I have forgotten: I like 21 degrees"
    assert await runtime.list_facts() == ()


async def test_new_sessions_start_with_the_preferences_of_the_owner(run):
    runtime = await run()
    await runtime.set_owner_preferences({"language": "de", "units": "metric"})
    before = await runtime.start_session(preferences={"units": "imperial"})
    assert before.preferences == {"language": "de", "units": "imperial"}
    notes = await runtime.set_owner_preferences({"language": None})
    assert notes.preferences == {"units": "metric"}
    assert (await runtime.start_session()).preferences == {"units": "metric"}
    assert (await runtime.get_session(before.id)).preferences == before.preferences


async def test_notes_of_an_owner_are_bounded_and_without_secrets(run):
    runtime = await run()
    fact = await runtime.remember("the key is sk-proj-abcdefghijklmnopqrstuvwxyz123456")
    assert "sk-proj" not in fact.text
    again = [await runtime.remember("the same") for _ in range(2)]
    assert again[0] == again[1]
    for n in range(MAX_NOTES - 2):
        await runtime.remember(f"fact {n}")
    with pytest.raises(InvalidInput, match="an owner keeps at most"):
        await runtime.remember("one too many")
    with pytest.raises(InvalidInput, match="bytes"):
        await runtime.set_owner_preferences({"b": "x" * 5000})


async def test_facts_added_at_once_are_all_kept(run):
    runtime = await run()
    await asyncio.gather(*(runtime.remember(f"fact {n}") for n in range(8)))
    assert {fact.text for fact in await runtime.list_facts()} == {f"fact {n}" for n in range(8)}


async def test_an_erased_owner_is_forgotten(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    await runtime.remember("I like 21 degrees")
    await runtime.erase()
    assert await runtime.list_facts() == ()
    await turn(runtime, await runtime.start_session())
    assert "21 degrees" not in str(model.requests[-1].messages)


async def test_damaged_notes_do_not_stop_a_turn(run, monkeypatch):
    runtime = await run("still here")
    if not isinstance(runtime.store, MemoryStore):
        return

    async def fail(owner):
        from sash.errors import StoreUnavailable

        raise StoreUnavailable("damaged")

    monkeypatch.setattr(runtime.store, "owner_notes", fail)
    session = await runtime.start_session()
    assert await answer(runtime, session) == "still here"
