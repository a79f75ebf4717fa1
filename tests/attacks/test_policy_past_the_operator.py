"""No session passes the operator's limits: neither a new one nor an old one, a fork or an import."""

from dataclasses import replace

import pytest

from sash import Runtime
from sash.errors import PolicyExceedsOperator
from sash.testing import ScriptedModel, calling
from sash.values.sessions import Budgets, Defaults, OperatorLimits, SessionPolicy
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import turn
from tests.tools import Switch

OFF = replace(OPEN, allow_actuation=False)
DENIED = replace(OPEN, denylisted_services=("switch",))
OTHER_LIST = replace(OPEN, allowlisted_services=("light",))
DRY = replace(OPEN, dry_run=True)
READING = SessionPolicy()


@pytest.fixture
def restart(make_store, clock):
    """Return a function that opens a runtime on the same store, with the limits of an operator."""
    store = make_store()

    def restart(switch, operator, budgets=Budgets()):
        def answer(request):
            return calling("switch") if request.messages[-1]["role"] == "user" else "It is done."

        limits = OperatorLimits(operator, budgets)
        model, defaults = ScriptedModel(answer), Defaults(budgets, operator)
        return Runtime(store, model, [switch.tool], clock=clock, operator=limits, defaults=defaults)

    return restart


@pytest.mark.parametrize(
    "now", [OFF, DENIED, OTHER_LIST, DRY], ids=["off", "denied", "other list", "dry run"]
)
async def test_an_old_session_obeys_the_operator_of_today(restart, now):
    switch = Switch()
    async with restart(switch, OPEN) as runtime:
        session = await runtime.start_session(policy=OPEN)
        await turn(runtime, session, "switch it on")
        export = await runtime.export_session(session.id)
    assert switch.count == 1
    async with restart(switch, now) as runtime:
        fork = await runtime.fork_session(session.id)
        imported = await runtime.import_session(export | {"signature": ""})
        for found in (session, fork, imported):
            ended = await turn(runtime, found, "switch it on")
            assert ended.response.actions[0].outcome in ("denied", "dry_run")
    assert switch.count == 1


async def test_an_old_approval_does_not_pass_the_operator_of_today(restart):
    switch = Switch()
    async with restart(switch, CAREFUL) as runtime:
        session = await runtime.start_session(policy=OPEN)
        waiting = await turn(runtime, session, "switch it on")
        assert waiting.status == "awaiting_approval", "the operator wants confirmations"
    async with restart(switch, OFF) as runtime:
        await runtime.approve(waiting.continuation.id, "call")
        ended = await runtime.await_continuation(waiting.continuation.id, timeout_s=30)
        assert ended.response.actions[0].outcome == "denied"
    assert switch.count == 0


@pytest.mark.parametrize(
    ("policy", "budgets"),
    [
        (OPEN, None),
        (replace(OPEN, allowlisted_services=("switch", "lock")), None),
        (None, Budgets(max_steps=10**12)),
        (None, Budgets(max_tokens_per_turn=10**9)),
        (None, Budgets(max_cost_per_day_usd=5.0)),
        (replace(READING, max_actions_per_minute=10**12), None),
        (replace(READING, max_actions_per_minute=None), None),
    ],
)
async def test_a_request_that_exceeds_the_operator_is_refused(restart, policy, budgets):
    operator = SessionPolicy(allow_actuation=True, allowlisted_services=("switch",))
    async with restart(Switch(), operator, Budgets(max_cost_per_day_usd=1.0)) as runtime:
        with pytest.raises(PolicyExceedsOperator):
            await runtime.start_session(policy=policy, budgets=budgets)
        with pytest.raises(PolicyExceedsOperator):
            await runtime.ask("hi", policy=policy, budgets=budgets)


async def test_the_budgets_of_an_old_session_are_limited_by_the_operator(restart):
    switch = Switch()
    async with restart(switch, OPEN) as runtime:
        session = await runtime.start_session(policy=OPEN)
    async with restart(switch, OPEN, Budgets(max_tool_calls=0)) as runtime:
        ended = await turn(runtime, session, "switch it on")
        assert ended.response.stopped_by == "max_tool_calls" or ended.response.actions[0].outcome == "denied"
    assert switch.count == 0


async def test_the_rate_limit_of_the_operator_binds_every_session(restart):
    switch = Switch()
    operator = replace(OPEN, max_actions_per_minute=1)
    async with restart(switch, operator) as runtime:
        session = await runtime.start_session(policy=OPEN)
        await turn(runtime, session, "switch it on")
        await turn(runtime, session, "switch it on")
    assert switch.count == 1


async def test_a_limit_that_is_left_out_is_lowered_to_the_operators(restart):
    operator = replace(OPEN, max_actions_per_minute=1)
    async with restart(Switch(), operator, Budgets(max_steps=2)) as runtime:
        session = await runtime.start_session(policy=OPEN, budgets=Budgets(max_tool_calls=1))
    assert (session.policy.max_actions_per_minute, session.budgets.max_steps) == (1, 2)
    assert session.budgets.max_tool_calls == 1
