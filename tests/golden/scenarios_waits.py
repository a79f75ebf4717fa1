"""Turns that wait, are interrupted, cancelled, queued, repeated, recorded or amended."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import AnswerCutOff, ModelUnreachable, StoreUnavailable
from sash.testing import FaultyStore, ScriptedModel, both, calling
from sash.values.ids import new_id
from sash.values.requests import Ask
from sash.values.sessions import SessionPolicy
from sash.values.waiting_turns import WaitingTurn
from tests.golden.world import FREE, World, answer, happens, paid, scenario, tool, waiting_tool

ASK_FIRST = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), require_confirmation=("lock",))
DAY_S = 24 * 3600


class CutModel(ScriptedModel):
    """A model whose second and third answers are cut off after their first piece."""

    async def stream(self, request):
        n = len(self.requests)
        async for delta in super().stream(request):
            yield delta
            if n in (1, 2):
                raise AnswerCutOff("the connection was cut")


async def wait_for_approval(world: World, *, after: str) -> tuple[str, str]:
    """Bring a turn to the point where it waits for an approval; `after` is the answer that follows."""
    unlock = tool("lock.unlock", "open", action=True)
    await world.open(calling("lock.unlock", "c1", door="front"), after, tools=(unlock,))
    session = await world.start(policy=ASK_FIRST)
    return session, await world.turn(session, "unlock the door")


@scenario
async def event_approval_requested(world: World) -> str:
    session, _ = await wait_for_approval(world, after="")
    return session


@scenario
async def event_approval_given(world: World) -> str:
    session, turn = await wait_for_approval(world, after="It is open.")
    await world.settle(await world.runtime.approve(turn, "c1"))
    return session


@scenario
async def event_approval_refused(world: World) -> str:
    session, turn = await wait_for_approval(world, after="It stays locked.")
    await world.settle(await world.runtime.approve(turn, "c1", False))
    return session


@scenario
async def event_waiting_turn_fired(world: World) -> str:
    await world.open()
    session, now = await world.start(), world.clock.now()
    due = now + timedelta(minutes=3)
    tea = WaitingTurn(
        new_id(), session, "local", "the tea is ready", now, at=due, due_at=due, say="Tea!", asked_in="c"
    )
    await world.store.add_waiting_turn(tea)
    await world.open()
    world.clock.advance(240.5)
    for fired in await world.runtime.fire_waiting_turns():
        await world.settle(fired)
    return session


@scenario
async def event_approval_of_two_calls_with_a_preview(world: World) -> str:
    async def preview(arguments, context):
        return {"unlocks": arguments["door"]}

    unlock = tool("lock.unlock", "open", action=True, preview=preview)
    calls = both(calling("lock.unlock", "c1", door="front"), calling("lock.unlock", "c2", door="back"))
    await world.open(calls, "Both are open.", tools=(unlock,))
    session = await world.start(policy=ASK_FIRST)
    turn = await world.turn(session, "unlock the doors")
    await world.settle(await world.runtime.approve(turn, "c1"))
    await world.settle(await world.runtime.approve(turn, "c2"))
    return session


async def interrupt_call(world: World, **options) -> tuple[str, str]:
    """Restart the runtime while a call is under way, and return the session and the turn."""
    wait, begun = waiting_tool("act", **options)
    await world.open(paid(calling("act", "c1", n=1)), tools=(wait,))
    session = await world.start(policy=FREE)
    sent = await world.runtime.send_message(session, "go")
    await happens(begun)
    await world.open("Done.", tools=(wait,))
    return session, sent.id


@scenario
async def event_interrupted(world: World) -> str:
    session, _ = await interrupt_call(world)
    return session


@scenario
async def event_interrupted_by_a_crash(world: World) -> str:
    """The end of the turn is not written, as in a crash, and the next process finds an expired lease."""
    world.store = store = FaultyStore(world.store)
    await world.open(calling("look"), "lost", tools=(tool("look", safety="unsafe"),))
    session = await world.start()
    store.fail("finish", StoreUnavailable("power cut"), times=99)
    with pytest.raises(StoreUnavailable, match="power cut"):
        await world.turn(session)
    await world.close()
    store.heal()
    world.clock.advance(60)
    await world.open()
    return session


@scenario
async def event_interrupted_then_repeated(world: World) -> str:
    session, turn = await interrupt_call(world, safety="idempotent")
    world.clock.advance(60)
    await world.settle(await world.runtime.resume(turn))
    return session


@scenario
async def event_interrupted_then_verified(world: World) -> str:
    async def verify(arguments, context):
        return "it is done"

    session, turn = await interrupt_call(world, safety="verify", verify=verify, action=True)
    await world.settle(await world.runtime.resume(turn))
    return session


@scenario
async def event_interrupted_then_unknown(world: World) -> str:
    session, turn = await interrupt_call(world, safety="unsafe", action=True)
    await world.settle(await world.runtime.resume(turn))
    return session


@scenario
async def event_interrupted_by_the_model(world: World) -> str:
    lines = (calling("look"), ModelUnreachable("no network"), "I saw it.")
    await world.open(*lines, tools=(tool("look"),))
    session = await world.start()
    turn = await world.turn(session)
    await world.settle(await world.runtime.resume(turn))
    return session


@scenario
async def event_interrupted_with_lost_calls(world: World) -> str:
    model = CutModel(paid(calling("look")), "one two", "one two", answer("Hello."))
    await world.open(model=model, tools=(tool("look"),))
    session = await world.start()
    turn = await world.turn(session)
    await world.settle(await world.runtime.resume(turn))
    return session


@scenario
async def summary_cancelled(world: World) -> str:
    """One turn is cancelled while it runs, and one while it waits in the queue."""
    wait, begun = waiting_tool()
    await world.open(paid(calling("wait", "c1")), tools=(wait,))
    session = await world.start()
    running = await world.runtime.send_message(session, "go")
    await happens(begun)
    queued = await world.runtime.send_message(session, "and then?", busy="enqueue")
    await world.runtime.cancel(queued.id, reason="not needed")
    await world.runtime.cancel(running.id)
    return session


@scenario
async def summary_cancelled_by_a_new_message(world: World) -> str:
    wait, begun = waiting_tool()
    await world.open(calling("wait", "c1"), "Hello.", tools=(wait,))
    session = await world.start()
    await world.runtime.send_message(session, "go")
    await happens(begun)
    await world.turn(session, "never mind", busy="interrupt")
    return session


@scenario
async def summary_cancelled_by_the_end_of_the_session(world: World) -> str:
    session, _ = await wait_for_approval(world, after="")
    await world.runtime.end_session(session)
    return session


@scenario
async def summary_expired(world: World) -> str:
    session, _ = await wait_for_approval(world, after="")
    world.clock.advance(8 * DAY_S)
    await world.runtime.sweep()
    return session


@scenario
async def summary_recorded(world: World) -> str:
    await world.open()
    session = await world.start()
    await world.runtime.record_turn(session, "hi", "hello", metadata={"source": "chat"}, idempotency_key="k")
    return session


@scenario
async def summary_recorded_then_amended(world: World) -> str:
    runtime = await world.open()
    session = await world.start()
    recorded = await runtime.record_turn(session, "hi")
    await runtime.amend_turn(recorded.id, "hello")
    await runtime.amend_turn(recorded.id, "hello again")
    return session


@scenario
async def summary_completed_then_amended(world: World) -> str:
    await world.open(replace(answer("Hello."), reasoning="A greeting."))
    session = await world.start()
    turn = await world.turn(session)
    await world.runtime.amend_turn(turn, "Good morning.")
    return session


@scenario
async def turn_queued(world: World) -> str:
    """The second turn begins when the first one waits for its model."""
    lines = (calling("look"), ModelUnreachable("no network"), "The other one.", "I saw it.")
    await world.open(*lines, tools=(tool("look"),))
    session = await world.start()
    first = await world.runtime.send_message(session, "look")
    second = await world.runtime.send_message(session, "and then?", busy="enqueue")
    await world.settle(second)
    await world.settle(await world.runtime.resume(first.id))
    return session


@scenario
async def turn_retried(world: World) -> str:
    await world.open("One.", "Two.")
    session = await world.start()
    turn = await world.turn(session, "hi", metadata={"source": "chat"}, planner_hints={"tone": "short"})
    await world.settle(await world.runtime.retry(turn))
    return session


@scenario
async def turn_of_one_question(world: World) -> str:
    await world.open("Blue.")
    asked = await world.runtime.put_question(Ask(message="Which colour?"))
    await world.settle(asked)
    return asked.session_id
