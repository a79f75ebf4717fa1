"""A household: an owner whose notes every other owner of the runtime knows, and one budget for all."""

import asyncio
from dataclasses import replace

import pytest

from sash.engine.notes import MAX_NOTES, MAX_PREFERENCES_BYTES
from sash.errors import InvalidInput, NoteNotFound, StoreUnavailable
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling
from sash.values.owner_notes import OwnerNotes, add_household
from sash.values.sessions import Budgets, Fact, Pin, WindowLimits
from tests.home.small_home import house
from tests.runtime.priced_model import DEAR, DEAR_MODEL, ONE_CALL, PRICE, USED, a_tool_that_waits, saying
from tests.runtime.small_window import SMALL
from tests.runtime.talk import WAIT_S, system_texts

HOUSE = "house"


async def say(runtime, session, message="hi"):
    """Send a message to a session of any owner, and wait for its answer."""
    sent = await runtime.send_message(session.id, message, owner=session.owner)
    return await runtime.await_continuation(sent.id, owner=session.owner, timeout_s=WAIT_S)


async def answer(runtime, session, message):
    return (await say(runtime, session, message)).response.final_message


def texts(facts):
    return [fact.text for fact in facts]


async def test_what_the_house_learned_every_person_knows(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, household=HOUSE)
    satellite = await runtime.start_session(owner=HOUSE)
    await answer(runtime, satellite, "remember that the bins go out on Monday")
    anna = await runtime.start_session(owner="anna")
    await answer(runtime, anna, "remember that I like 21 degrees")
    await say(runtime, anna, "tell me something")
    told = "\n".join(system_texts(model.requests[-1]))
    assert told.index("I like 21 degrees") < told.index("the bins go out on Monday"), "own notes first"
    assert texts(await runtime.list_facts(owner="anna")) == ["I like 21 degrees"]
    assert texts(await runtime.list_facts(owner=HOUSE)) == ["the bins go out on Monday"]
    known = await runtime.known_notes(owner="anna")
    assert texts(known.facts) == ["I like 21 degrees", "the bins go out on Monday"]


async def test_the_house_and_other_persons_do_not_see_the_notes_of_a_person(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, household=HOUSE)
    fact = await runtime.remember("the present is in the shed", owner="anna")
    await runtime.pin("never mention the present", owner="anna")
    await runtime.set_owner_preferences({"language": "de"}, owner="anna")
    for owner in (HOUSE, "bob"):
        session = await runtime.start_session(owner=owner)
        assert session.preferences == {}
        await say(runtime, session)
        assert "present" not in str(model.requests[-1].messages)
        assert await runtime.known_notes(owner=owner) == OwnerNotes(owner)
        assert await runtime.forget("present", owner=owner) == ()
        with pytest.raises(NoteNotFound):
            await runtime.drop_fact(fact.id, owner=owner)
    assert await runtime.list_facts(owner="anna") == (fact,)


async def test_without_a_household_no_owner_is_special(run):
    runtime = await run()
    await runtime.remember("the bins go out on Monday", owner=HOUSE)
    assert await runtime.known_notes(owner="anna") == OwnerNotes("anna")
    assert await runtime.forget("bins", owner="anna") == ()
    assert len(await runtime.list_facts(owner=HOUSE)) == 1


async def test_every_person_may_forget_a_fact_of_the_house(run):
    runtime = await run("never asked", household=HOUSE)
    for owner in ("anna", HOUSE):
        await runtime.remember("the boiler is from 2011", owner=owner)
    kept = await runtime.remember("the gate squeaks", owner=HOUSE)
    session = await runtime.start_session(owner="anna")
    said = await answer(runtime, session, "forget that the boiler is from 2011")
    assert said == "I have forgotten: the boiler is from 2011", "two facts with one text are told once"
    assert (await runtime.known_notes(owner="anna")).facts == (kept,)
    assert await runtime.forget(kept.id, owner="anna") == (kept,)
    assert await runtime.list_facts(owner=HOUSE) == ()


async def test_recall_finds_the_facts_of_the_house(run):
    model = ScriptedModel(calling("recall", query="boiler"), "found")
    runtime = await run(model=model, household=HOUSE)
    await runtime.remember("the boiler is from 2011", owner=HOUSE)
    await say(runtime, await runtime.start_session(owner="anna"), "how old is it?")
    assert "the boiler is from 2011" in model.requests[1].messages[-1]["content"]


async def test_a_fact_that_the_house_knows_is_not_extracted_again(run):
    def line(request):
        is_extraction = "lasting facts" in request.messages[0]["content"]
        return "Rex is a dog.\nAnna is a pilot." if is_extraction else "ok"

    model = ScriptedModel(line)
    runtime = await run(model=model, fact_extraction=True, household=HOUSE)
    await runtime.remember("Rex is a dog.", owner=HOUSE)
    await say(runtime, await runtime.start_session(owner="anna"), "I am Anna and this is Rex")
    await runtime.wait_for_background()
    assert "Rex is a dog." in model.requests[-1].messages[1]["content"]
    assert texts(await runtime.list_facts(owner="anna")) == ["Anna is a pilot."]


async def test_the_model_is_told_all_known_facts_before_it_extracts(run):
    model = ScriptedModel("NONE")
    runtime = await run(model=model, fact_extraction=True, household=HOUSE)
    session = await runtime.start_session(owner="anna")
    for n in range(MAX_NOTES):
        await runtime.remember(f"own {n}", owner="anna")
        await runtime.remember(f"shared {n}", owner=HOUSE)
        await runtime.remember(f"here {n}", owner="anna", session_id=session.id)
    await say(runtime, session, "I am Anna")
    await runtime.wait_for_background()
    told = model.requests[-1].messages[1]["content"].splitlines()
    assert {"own 0", "shared 0", "here 0"} <= set(told)


async def test_new_sessions_start_with_the_preferences_of_the_house_and_own_ones_win(run):
    runtime = await run(household=HOUSE)
    await runtime.set_owner_preferences({"language": "de", "units": "metric"}, owner=HOUSE)
    await runtime.set_owner_preferences({"language": "fr"}, owner="anna")
    session = await runtime.start_session(owner="anna", preferences={"tone": "short"})
    assert session.preferences == {"language": "fr", "units": "metric", "tone": "short"}
    assert (await runtime.owner_notes(owner="anna")).preferences == {"language": "fr"}


async def test_long_preferences_of_the_house_do_not_stop_a_new_session(run):
    runtime = await run(household=HOUSE)
    long = "x" * (MAX_PREFERENCES_BYTES - 100)
    await runtime.set_owner_preferences({"of the house": long}, owner=HOUSE)
    await runtime.set_owner_preferences({"own": long}, owner="anna")
    assert (await runtime.start_session(owner="anna")).preferences == {"own": long}
    assert (await runtime.start_session(owner="bob")).preferences == {"of the house": long}


async def test_entities_that_the_house_has_pinned_are_told_to_every_person(run):
    home, model = house(), ScriptedModel("ok")
    runtime = await run(model=model, home=home, household=HOUSE)
    await runtime.home_ready(timeout_s=WAIT_S)
    await runtime.pin(entity_id="switch.kettle", owner=HOUSE)
    await runtime.pin(entity_id="switch.kettle", owner="anna")
    session = await runtime.start_session(owner="anna")
    await say(runtime, session, "think about it")
    [pinned] = [text for text in system_texts(model.requests[-1]) if text.startswith("Pinned entities")]
    assert pinned.count("switch.kettle") == 1
    other = await runtime.start_session(owner="bob")
    report = await runtime.context_report(other.id, owner="bob", with_messages=True)
    assert "Pinned entities" in str(report["messages"])


async def test_a_new_fact_of_the_house_leaves_the_head_of_running_sessions_alone(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model, household=HOUSE)
    await runtime.remember("the cat is called Mia", owner=HOUSE)
    clock.advance(60)
    anna = await runtime.start_session(owner="anna", window=SMALL)
    await say(runtime, anna, "before")
    before = model.requests[-1].messages
    assert "called Mia" in before[1]["content"], "an older fact of the house stands at the start"
    clock.advance(60)
    satellite = await runtime.start_session(owner=HOUSE)
    await answer(runtime, satellite, "remember that the bins go out on Monday")
    await runtime.remember("the cat is called Mia", owner="anna")  # Known already: it does not move.
    clock.advance(60)
    await say(runtime, anna, "after")
    after = model.requests[-1].messages
    asked = next(n for n, m in enumerate(before) if m["content"].endswith("] before"))
    assert after[: asked + 1] == before[: asked + 1], "the prompt is the same up to the new answer"
    [told] = [n for n, m in enumerate(after) if "the bins" in m["content"]]
    assert told > asked
    assert after[told]["volatile"]
    clock.advance(60)
    for n in range(8):
        await say(runtime, anna, f"small talk number {n}")
    assert "the bins" in model.requests[-1].messages[1]["content"], "it moves with the next cut"


async def test_a_changed_fact_of_the_house_is_told_to_every_person_at_once(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model, household=HOUSE)
    fact = await runtime.remember("the bins go out on Monday", owner=HOUSE)
    clock.advance(60)
    session = await runtime.start_session(owner="anna")
    await say(runtime, session)
    await runtime.edit_fact(fact.id, "the bins go out on Friday", owner=HOUSE)
    await say(runtime, session)
    told = "\n".join(system_texts(model.requests[-1]))
    assert "Friday" in told
    assert "Monday" not in told


async def test_an_erased_household_is_forgotten_by_every_person(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model, household=HOUSE)
    await runtime.remember("the bins go out on Monday", owner=HOUSE)
    session = await runtime.start_session(owner="anna")
    await say(runtime, session)
    await runtime.erase(owner=HOUSE)
    await say(runtime, session)
    assert "bins" not in str(system_texts(model.requests[-1]))


async def test_damaged_notes_of_the_house_leave_those_of_a_person_alone(run, monkeypatch):
    runtime = await run("still here", household=HOUSE)
    if not isinstance(runtime.store, MemoryStore):
        return
    fact = await runtime.remember("I like 21 degrees", owner="anna")
    read = runtime.store.owner_notes

    async def fail(owner):
        if owner == HOUSE:
            raise StoreUnavailable("damaged")
        return await read(owner)

    monkeypatch.setattr(runtime.store, "owner_notes", fail)
    session = await runtime.start_session(owner="anna")
    assert await answer(runtime, session, "hi") == "still here"
    assert (await runtime.known_notes(owner="anna")).facts == (fact,)


@pytest.mark.parametrize("wrong", ["", 3, "x" * 300])
async def test_a_household_is_the_name_of_an_owner(run, wrong):
    with pytest.raises(InvalidInput, match="household"):
        await run(household=wrong)


def test_of_two_notes_with_the_same_text_the_older_one_stays(clock):
    old = clock.now()
    clock.advance(60)
    new = clock.now()
    own = OwnerNotes(
        "anna",
        (Fact("1", "new here", new), Fact("2", "old here", old)),
        (Pin("3", "", new, "light.hall"), Pin("4", "be brief", old)),
    )
    shared = OwnerNotes(
        HOUSE,
        (Fact("5", "old here", new), Fact("6", "new here", old)),
        (Pin("7", "", old, "light.hall"), Pin("8", "", old, "light.attic")),
    )
    known = add_household(own, shared)
    assert [fact.id for fact in known.facts] == ["2", "6"]
    assert [pin.id for pin in known.pins] == ["4", "7", "8"]
    edited = replace(own, facts=(replace(own.facts[1], updated_at=new),))
    assert [fact.id for fact in add_household(edited, shared).facts] == ["2", "6"]


async def start_paid(runtime, owner, usd, **fields):
    return await runtime.start_session(
        owner=owner, budgets=Budgets(max_cost_per_day_usd=usd), model=DEAR_MODEL, **fields
    )


async def add_up(runtime, *owners):
    spent = [(await runtime.statistics(owner=owner))["today"]["estimated_cost_usd"] for owner in owners]
    return sum(spent)


def is_stopped(result):
    return result.response.stopped_by == "max_cost_per_day_usd"


@pytest.mark.parametrize("household", [HOUSE, None])
async def test_persons_together_do_not_pass_the_budget_of_the_house(run, clock, household):
    runtime = await run(model=ScriptedModel(saying("Hello.")), catalog=DEAR, household=household)
    owners = ("anna", HOUSE, "bob")
    sessions = [await start_paid(runtime, owner, 2 * PRICE + 0.45) for owner in owners]
    stopped = [is_stopped(await say(runtime, session)) for session in sessions]
    assert stopped == [False, False, household is not None]
    assert await add_up(runtime, *owners) == pytest.approx((2 if household else 3) * PRICE)
    clock.advance(24 * 3600)
    assert not is_stopped(await say(runtime, sessions[2]))


async def test_persons_who_speak_at_once_do_not_pass_the_budget_of_the_house(run):
    class Slow(ScriptedModel):
        async def stream(self, request):
            for _ in range(20):
                await asyncio.sleep(0)
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Slow(saying("Hello.")), catalog=DEAR, household=HOUSE)
    owners = [HOUSE, *(f"person {n}" for n in range(19))]
    config = replace(DEAR_MODEL, max_output_tokens=400)
    budgets = Budgets(max_cost_per_day_usd=10.0)
    sessions = [
        await runtime.start_session(owner=owner, budgets=budgets, model=config) for owner in owners * 2
    ]
    results = await asyncio.gather(*(say(runtime, session) for session in sessions))
    assert any(map(is_stopped, results))
    assert 2.5 < await add_up(runtime, *owners) <= 10.0


async def test_a_turn_under_way_of_another_person_counts(run):
    waiting, started, go_on = a_tool_that_waits()
    model = ScriptedModel(replace(calling("wait"), usage=USED), saying("Hello."))
    runtime = await run(model=model, tools=[waiting], catalog=DEAR, household=HOUSE)
    anna, bob = await start_paid(runtime, "anna", ONE_CALL), await start_paid(runtime, "bob", ONE_CALL)
    sent = await runtime.send_message(anna.id, "go", owner="anna")
    await asyncio.wait_for(started.wait(), WAIT_S)
    assert is_stopped(await say(runtime, bob))
    go_on.set()
    await runtime.await_continuation(sent.id, owner="anna", timeout_s=WAIT_S)


async def test_a_restart_and_an_erased_person_give_no_money_back_to_the_house(run, make_store):
    options = {"catalog": DEAR, "household": HOUSE}
    runtime = await run(model=ScriptedModel(saying("Hello.")), **options)
    anna = await start_paid(runtime, "anna", PRICE + 0.5)
    assert not is_stopped(await say(runtime, anna))
    await runtime.erase(owner="anna")
    store = runtime.store if isinstance(runtime.store, MemoryStore) else make_store()
    await runtime.close()
    runtime = await run(model=ScriptedModel(saying("Hello.")), store=store, **options)
    assert is_stopped(await say(runtime, await start_paid(runtime, "bob", PRICE + 0.5)))


@pytest.mark.parametrize("spends", [False, True])
async def test_a_summary_that_would_pass_the_budget_of_the_house_is_not_made(run, spends):
    model = ScriptedModel(saying("Hello."))
    runtime = await run(model=model, catalog=DEAR, summaries=True, household=HOUSE)
    if spends:
        bob = await runtime.start_session(owner="bob", model=DEAR_MODEL)
        for _ in range(3):
            await say(runtime, bob)
    anna = await start_paid(runtime, "anna", 2.0, window=WindowLimits(max_turns=2, evict_to=0.5))
    for n in range(3):
        await runtime.record_turn(anna.id, f"question {n}", "answer", owner="anna")
        await runtime.wait_for_background()
    is_made = any("Summarise" in request.messages[0]["content"] for request in model.requests)
    assert is_made is not spends
