"""Says everyday sentences to the demo house through a runtime, as a user does."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime

from sash.app.approval_question import write_question
from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.requests import SendMessage
from sash.values.sessions import SessionPolicy

# A Sunday morning in winter.
NOW = datetime(2026, 1, 18, 9, 30, tzinfo=UTC)
FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), max_actions_per_minute=None)
WAIT_S = 30


class Speaker:
    """One session in a demo house of its own. `said` has all answers, and `actions` those of the last turn."""

    def __init__(self, runtime, home, clock, session):
        self.runtime, self.home, self.clock, self.session = runtime, home, clock, session
        self.said = []
        self.actions = ()
        self.result = None

    async def say(self, *sentences, language="en", area=None):
        """Say sentences one after the other. Return the last answer, or the question for an approval."""
        for sentence in sentences:
            sent = SendMessage(message=sentence, language=language, area=area)
            turn = await self.runtime.reply(self.session.id, sent)
            self.result = await self.runtime.await_continuation(turn.id, timeout_s=WAIT_S)
            if self.result.status == "awaiting_approval":
                self.said.append(write_question(self.result.waiting_calls, language))
                continue
            assert self.result.status == "completed", self.result.continuation.error
            self.actions = self.result.response.actions
            self.said.append(self.result.response.final_message)
        return self.said[-1]

    def state(self, entity_id):
        return self.runtime.home.index.get_state(entity_id)

    def attribute(self, entity_id, name):
        return self.runtime.home.index.states[entity_id].attributes.get(name)

    async def pass_time(self, seconds):
        """Let time pass, and wait for the turns that are due then."""
        self.clock.advance(seconds)
        await self.runtime.fire_waiting_turns()
        await self.runtime.wait_for_turns()


@asynccontextmanager
async def in_demo_house(model=None, policy=FREE):
    """Yield a speaker in a new demo house, without a model if none is given."""
    clock = FakeClock(NOW)
    home, store = demo_home(clock), MemoryStore(clock=clock)
    async with Runtime(store, model, home=home, clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        yield Speaker(runtime, home, clock, await runtime.start_session(policy=policy))
