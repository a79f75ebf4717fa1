"""Holds a conversation of the table in the demo house, without a model."""

import asyncio
from datetime import UTC, datetime, timedelta

from sash.demo.demo_home import demo_home
from sash.demo.simulated_home import SimulatedHome
from sash.testing import FakeClock
from tests.answers.judge import READING, Heard
from tests.answers.sash_talk import WAIT_S, SashTalk, TalkRuntime, TurnTimes, Wrap
from tests.answers.table import Case, Then

# A Saturday afternoon in winter. Numbers in the table belong to this time.
NOW = datetime(2026, 1, 17, 14, tzinfo=UTC)
# The states of these are computed from others.
COMPUTED = frozenset({"light.outdoor"})


async def hold(case: Case, times: TurnTimes | None = None, wrap: Wrap | None = None) -> Heard:
    """Say the sentences of a case, and return what a person heard and saw. `wrap` is put around the intents."""
    clock = FakeClock(NOW)
    home = demo_home(clock)
    async with TalkRuntime(times or TurnTimes(), wrap, home=home, clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        for entity_id, state in case.states.items():
            home.set_state(entity_id, state)
        talk = SashTalk(runtime, case)
        for item in case.before:
            if isinstance(item, Then):
                await _let_pass(item, home, clock, talk)
            else:
                await talk.say(item)
        before = {state.entity_id: state for state in await home.get_states()}
        called = len(home.calls)
        answer = await talk.say(case.say)
        waiting = await talk.list_waiting()
        states = {state.entity_id: state for state in await home.get_states()}
        changed = frozenset(
            entity_id
            for entity_id, state in states.items()
            if (state.state, state.attributes) != (before[entity_id].state, before[entity_id].attributes)
            and entity_id not in COMPUTED
            and not entity_id.startswith("sensor.")
        )
        calls = tuple(call.service for call in home.calls[called:] if not call.service.endswith(READING))
        if case.then is not None:
            await _let_pass(case.then, home, clock, talk)
            states = {state.entity_id: state for state in await home.get_states()}
        return Heard(answer, states, changed, calls, waiting)


async def _let_pass(then: Then, home: SimulatedHome, clock: FakeClock, talk: SashTalk) -> None:
    """Set the states, let time pass, and wait until the turns that are due then have ended."""
    async with asyncio.timeout(WAIT_S):
        for entity_id, state in then.set.items():
            home.set_state(entity_id, state)
        await talk.fire()
        end = clock.now() + timedelta(seconds=then.advance_s)
        # Time passes from one due turn to the next, so that none is late.
        while due := [at for at in await talk.list_due_times() if at <= end]:
            clock.advance(max(0.0, (min(due) - clock.now()).total_seconds()))
            await talk.fire()
        clock.advance((end - clock.now()).total_seconds())
        await talk.fire()
