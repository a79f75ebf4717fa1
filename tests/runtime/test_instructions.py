"""A session has instructions of its own: the model reads them first, instead of the runtime's prompt."""

from itertools import pairwise

import pytest

from sash.engine.context import RULES, SYSTEM_PROMPT
from sash.errors import InvalidExport, InvalidInput
from sash.testing import ScriptedModel
from sash.values.requests import StartSession
from tests.runtime.talk import system_texts, turn

PARROT = "You are a parrot. You live in Lima."


async def read_prompt(runtime, session):
    """Return the first text of the prompt of a new turn."""
    await turn(runtime, session)
    return system_texts(runtime.model.requests[-1])[0]


async def test_the_prompt_starts_with_the_instructions_and_the_rules(run):
    runtime = await run()
    session = await runtime.start_session(instructions=PARROT)
    assert session.instructions == PARROT
    assert await read_prompt(runtime, session) == f"{PARROT}\n{RULES}"
    other = await runtime.start_session()
    assert other.instructions is None
    assert await read_prompt(runtime, other) == SYSTEM_PROMPT


async def test_instructions_stand_instead_of_the_runtime_s_prompt(run):
    runtime = await run(system_prompt="You are a cat.")
    session = await runtime.start_session(instructions=PARROT)
    assert await read_prompt(runtime, session) == f"{PARROT}\n{RULES}"
    report = await runtime.context_report(session.id, with_messages=True)
    assert report["messages"][0]["content"] == f"{PARROT}\n{RULES}"
    assert report["parts"][0]["name"] == "system" and report["parts"][0]["stable"]


async def test_a_call_starts_with_the_whole_prompt_of_the_last_turn(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(instructions=PARROT)
    for n in range(5):
        clock.advance(60)
        await turn(runtime, session, f"message {n}", planner_hints={"n": n})
    for before, after in pairwise(request.messages for request in model.requests):
        stable = [message for message in before if not message.get("volatile")]
        assert list(after[: len(stable)]) == stable


async def test_an_update_changes_or_removes_them(run):
    runtime = await run()
    session = await runtime.start_session(instructions=PARROT)
    assert (await runtime.update_session(session.id, name="n")).instructions == PARROT
    cat = await runtime.update_session(session.id, instructions="You are a cat.")
    assert await read_prompt(runtime, cat) == f"You are a cat.\n{RULES}"
    own = await runtime.update_session(session.id, instructions=None)
    assert own.instructions is None
    assert await read_prompt(runtime, own) == SYSTEM_PROMPT


@pytest.mark.parametrize("wrong", ["", "x" * 20_001, 5])
async def test_wrong_instructions_are_refused(run, wrong):
    runtime = await run()
    with pytest.raises(InvalidInput, match="instructions"):
        await runtime.start_session(instructions=wrong)
    session = await runtime.start_session(instructions="x" * 20_000)
    with pytest.raises(InvalidInput, match="instructions"):
        await runtime.update_session(session.id, instructions=wrong)
    assert (await runtime.get_session(session.id)).instructions == "x" * 20_000


async def test_secrets_in_instructions_are_not_stored(run):
    secret = "sk-" + "a1B2" * 12
    runtime = await run()
    session = await runtime.start_session(instructions=f"The key is {secret}.")
    assert secret not in session.instructions
    changed = await runtime.update_session(session.id, instructions=f"Now it is {secret}.")
    assert secret not in changed.instructions and changed.instructions.startswith("Now it is ")
    assert changed == await runtime.get_session(session.id)


async def test_a_fork_an_export_and_a_restart_keep_them(run, make_store):
    store = make_store()
    runtime = await run(store=store)
    session = await runtime.open_session(StartSession(name="bird", instructions=PARROT))
    await turn(runtime, session)
    assert (await runtime.fork_session(session.id)).instructions == PARROT
    export = await runtime.export_session(session.id)
    assert (await runtime.import_session(export, owner="bob")).instructions == PARROT
    await runtime.close()
    again = await run(store=store)
    assert (await again.get_session(session.id)).instructions == PARROT


async def test_an_import_is_bounded_and_redacted(run):
    secret = "sk-" + "a1B2" * 12
    runtime = await run()
    session = await runtime.start_session(instructions=PARROT)
    export = await runtime.export_session(session.id)
    export["session"]["instructions"] = "x" * 80_001
    with pytest.raises(InvalidExport, match="instructions"):
        await runtime.import_session(export, owner="bob")
    export["session"]["instructions"] = f"The key is {secret}."
    imported = await runtime.import_session(export, owner="bob")
    assert secret not in imported.instructions and imported.instructions.startswith("The key is ")


async def test_a_session_of_an_older_version_has_none(run):
    runtime = await run()
    session = await runtime.start_session()
    export = await runtime.export_session(session.id)
    del export["session"]["instructions"]
    imported = await runtime.import_session(export, owner="bob")
    assert imported.instructions is None


async def test_hints_of_a_turn_stand_in_the_changing_part_of_the_prompt(run):
    """They are enough for what a speaker has just asked or said, which no message of the user has."""
    asked = "The user was asked whether to close the garage door."
    runtime = await run("Closing it.", "ok")
    session = await runtime.start_session(instructions=PARROT)
    await turn(runtime, session, "yes please", planner_hints={"situation": asked})
    [hint] = [message for message in runtime.model.requests[0].messages if asked in str(message["content"])]
    assert hint == {
        "role": "system",
        "content": f"Hints for this turn:\nsituation: {asked}",
        "volatile": True,
    }
    await turn(runtime, session, "and now?")
    assert asked not in str(runtime.model.requests[1].messages)
