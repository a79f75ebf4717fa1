import gc
import weakref

from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.models.offline import OfflineModel
from sash.models.openai.endpoint import Endpoint
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock


async def answer_once():
    """Return weak references to a runtime and its home, which are closed and not used any more."""
    clock = FakeClock()
    home = demo_home(clock)
    async with Runtime(MemoryStore(clock=clock), OfflineModel(), home=home, clock=clock) as runtime:
        session = await runtime.start_session()
        await runtime.send_message(session.id, "which lights are on?")
        await runtime.wait_for_turns()
        return weakref.ref(runtime), weakref.ref(home)


async def test_a_closed_runtime_and_its_home_are_freed():
    await answer_once()
    freed = await answer_once()
    # What is loaded once may be kept for ever; a runtime that starts later must not keep the one before it.
    await answer_once()
    gc.collect()
    assert [each() for each in freed] == [None, None]


async def test_a_new_connection_keeps_no_earlier_garbage():
    await Endpoint("gpt-4o", api_key="sk-test").connect()
    frozen = gc.get_freeze_count()
    await Endpoint("gpt-4o", api_key="sk-test").connect()
    assert gc.get_freeze_count() <= frozen
