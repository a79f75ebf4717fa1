"""An action that names no service does not pass the policy: it is judged by the name of its tool."""

from dataclasses import replace

import pytest

from sash.testing import calling
from sash.values.sessions import SessionPolicy
from tests.runtime.policies import OPEN
from tests.runtime.talk import turn
from tests.tools import tool


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (SessionPolicy(), "denied"),
        (replace(OPEN, allowlisted_services=("light",)), "denied"),
        (replace(OPEN, denylisted_services=("switch",)), "denied"),
        (replace(OPEN, allowlisted_services=("switch",)), "done"),
    ],
)
async def test_it_is_judged_by_the_name_of_the_tool(run, policy, outcome):
    made = []

    async def list_uses(arguments, context):
        return iter(())

    switch = tool("switch", lambda a, c: made.append("act"), action=True, uses=list_uses)
    runtime = await run(calling("switch"), "ok", tools=[switch])
    session = await runtime.start_session(policy=policy)
    result = await turn(runtime, session)
    assert [action.outcome for action in result.response.actions] == [outcome]
    assert len(made) == (outcome == "done")
