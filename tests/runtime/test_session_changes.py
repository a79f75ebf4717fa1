"""`Runtime.update_session` changes the given fields of a session, on every store."""

import pytest

from sash.errors import InvalidInput, ModelFixed, SessionExists
from sash.values.sessions import Budgets, SessionPolicy, WindowLimits
from tests.runtime.talk import turn


async def test_the_library_accepts_values_and_dicts(run):
    runtime = await run("ok", "ok")
    session = await runtime.start_session()
    changed = await runtime.update_session(
        session.id, budgets=Budgets(max_steps=2), window={"max_turns": 9}, name="n"
    )
    assert changed.budgets == Budgets(max_steps=2)
    assert changed.window == WindowLimits(max_turns=9)
    assert (await turn(runtime, changed)).status == "completed"
    with pytest.raises(SessionExists):
        await runtime.update_session((await runtime.start_session()).id, name="n")
    with pytest.raises(InvalidInput):
        await runtime.update_session(session.id, budgets={"max_steps": "many"})
    with pytest.raises(TypeError):
        await runtime.update_session(session.id, budget={})


async def test_the_model_of_a_session_with_a_fixed_model_stays(run):
    runtime = await run("ok")
    session = await runtime.start_session(policy=SessionPolicy(enforce_fixed_model=True))
    with pytest.raises(ModelFixed):
        await runtime.update_session(session.id, model={"name": "another"})
    await runtime.update_session(session.id, model={"temperature": 0.1})
    changed = await runtime.update_session(
        session.id, model={"name": "another"}, policy={"enforce_fixed_model": False}
    )
    assert (changed.model.name, changed.model.temperature) == ("another", 0.1)
