"""The prompt of a session with a home: who the agent is, what it may do, and that this stays the same."""

from dataclasses import replace

import pytest

from sash.engine.context import RULES
from sash.values.sessions import Budgets, OperatorLimits, SessionPolicy
from tests.runtime.home_actions import FREE
from tests.runtime.talk import system_texts, turn


async def read_description(runtime, **options):
    """Return the description of `call_service` in the prompt of a new session."""
    session = await runtime.start_session(**options)
    await turn(runtime, session, "a story")
    report = await runtime.context_report(session.id, with_messages=True)
    sent = runtime.model.requests[-1].tools
    assert sent == report["tools"]
    [found] = [s["function"] for s in sent if s["function"]["name"] == "call_service"]
    return found["description"]


async def test_the_agent_is_the_voice_assistant_of_its_home(live):
    runtime = await live(intents=())
    session = await runtime.start_session()
    await turn(runtime, session, "a story")
    first = system_texts(runtime.model.requests[-1])[0]
    assert first == f"You are Sash, the voice assistant of the home Test house.\n{RULES}"
    runtime.house.disconnect("the router is down")
    await turn(runtime, session, "another story")
    assert system_texts(runtime.model.requests[-1])[0] == first


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (SessionPolicy(), "Controlling devices is turned off for you: do not call this, and tell the user."),
        (
            FREE,
            "Allowed: all services. The user is asked to approve: lock, alarm_control_panel, cover, valve. "
            "Call it at once, because Sash asks.",
        ),
        (
            replace(FREE, allowlisted_services=("light.*", "switch.turn_on"), require_confirmation=()),
            "Allowed: light, switch.turn_on.",
        ),
        (
            replace(FREE, denylisted_services=("siren",), require_confirmation=("lock",), dry_run=True),
            "Allowed: all services. Refused: siren. The user is asked to approve: lock. Call it at once, "
            "because Sash asks. This is a dry run: nothing is really changed.",
        ),
        (
            SessionPolicy(allow_actuation=True),
            "No service is allowed: do not call this, and tell the user.",
        ),
    ],
)
async def test_call_service_says_what_the_policy_allows(live, policy, says):
    runtime = await live(intents=())
    assert (await read_description(runtime, policy=policy)).endswith(f" {says}")


async def test_call_service_says_what_the_operator_allows(live):
    ceiling = replace(FREE, allowlisted_services=("light", "switch"), require_confirmation=("switch",))
    runtime = await live(intents=(), operator=OperatorLimits(ceiling, Budgets()))
    policy = replace(FREE, allowlisted_services=("light.turn_on",), require_confirmation=("switch",))
    description = await read_description(runtime, policy=policy)
    assert " Allowed: light.turn_on. The user is asked to approve: switch." in description


async def test_sessions_with_the_same_policy_have_the_same_list_of_tools(live):
    runtime = await live("one", "two", "three", intents=())
    for policy in (FREE, SessionPolicy(), FREE):
        await read_description(runtime, policy=policy)
    first, second, third = (request.tools for request in runtime.model.requests)
    assert first is third
    assert first != second


async def test_a_change_of_the_policy_changes_the_description(live):
    runtime = await live("one", "two", intents=())
    session = await runtime.start_session()
    await turn(runtime, session, "a story")
    await runtime.update_session(session.id, policy=FREE)
    await turn(runtime, session, "another story")
    before, after = (str(request.tools) for request in runtime.model.requests)
    assert "Controlling devices is turned off" in before and "Allowed: all services." in after
