"""Holds a conversation of the table in the demo house, without a model."""

from datetime import UTC, datetime

from sash.app.approval_question import write_question
from sash.demo.demo_home import demo_home
from sash.demo.simulated_home import SimulatedHome
from sash.engine.runtime import Runtime
from sash.models.offline import OfflineModel
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.requests import SendMessage
from sash.values.sessions import SessionPolicy
from tests.answers.judge import Heard
from tests.answers.table import Case, Then

# A Saturday afternoon in winter. Numbers in the table belong to this time.
NOW = datetime(2026, 1, 17, 14, tzinfo=UTC)
FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), max_actions_per_minute=None)
WAIT_S = 10
# The states of these are computed from others.
COMPUTED = frozenset({"light.outdoor"})
READING = (".get_items", ".get_forecasts", ".get_events")


async def hold(case: Case) -> Heard:
    """Say the sentences of a case, and return what a person heard and saw."""
    clock = FakeClock(NOW)
    home = demo_home(clock)
    store = MemoryStore(clock=clock)
    async with Runtime(store, OfflineModel(), home=home, clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        for entity_id, state in case.states.items():
            home.set_state(entity_id, state)
        session = await runtime.start_session(policy=FREE)
        for item in case.before:
            if isinstance(item, Then):
                _let_pass(item, home, clock)
            else:
                await _say(runtime, session.id, item, case)
        before = {state.entity_id: state for state in await home.get_states()}
        called = len(home.calls)
        answer = await _say(runtime, session.id, case.say, case)
        if case.then is not None:
            _let_pass(case.then, home, clock)
        states = {state.entity_id: state for state in await home.get_states()}
        changed = frozenset(
            entity_id
            for entity_id, state in states.items()
            if (state.state, state.attributes) != (before[entity_id].state, before[entity_id].attributes)
            and entity_id not in COMPUTED
            and not entity_id.startswith("sensor.")
        )
        calls = tuple(call.service for call in home.calls[called:] if not call.service.endswith(READING))
        return Heard(answer, states, changed, calls)


async def _say(runtime: Runtime, session_id: str, text: str, case: Case) -> str:
    """Say a sentence, and return the answer or the question for an approval."""
    sent = SendMessage(message=text, language=case.language, area=case.area)
    turn = await runtime.reply(session_id, sent)
    result = await runtime.await_continuation(turn.id, timeout_s=WAIT_S)
    if result.status == "awaiting_approval":
        return write_question(result.waiting_calls, case.language)
    return (result.response.final_message if result.response else "") or ""


def _let_pass(then: Then, home: SimulatedHome, clock: FakeClock) -> None:
    for entity_id, state in then.set.items():
        home.set_state(entity_id, state)
    clock.advance(then.advance_s)
