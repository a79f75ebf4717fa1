"""An exported session stays as it is, on every embedded store."""

from sash.testing import calling
from sash.values.sessions import Budgets, ModelConfig, SessionPolicy, WindowLimits
from tests.golden.golden import assert_json_matches, name_ids
from tests.golden.world import World, answer, paid, tool


async def draw(arguments, context):
    await context.keep(b"a plot", "text/plain", "plot.txt")
    return "drawn"


async def start_session(world: World) -> str:
    """Start a session in which no option has its default value."""
    return await world.start(
        model=ModelConfig(name="dear", temperature=0.5, max_output_tokens=500, options={"seed": 7}),
        budgets=Budgets(max_steps=4, max_cost_per_day_usd=100.0),
        policy=SessionPolicy(allow_actuation=True, allowlisted_services=("light",), resume_interrupted=True),
        window=WindowLimits(max_tokens=2000, max_turns=2, evict_to=0.5),
        preferences={"language": "en"},
        area="kitchen",
        name="golden",
        context={"device": "panel"},
    )


async def fill_session(world: World, session: str) -> None:
    """Add turns with a tool call, an artifact and a cut, a fact, a pin, and a recorded turn."""
    await world.turn(session, "Draw the temperature of boiler B-17.", metadata={"source": "test"})
    world.clock.advance(60)
    await world.runtime.remember("The boiler is a Vaillant.", session_id=session)
    await world.runtime.pin("Answer in one sentence.", session_id=session)
    for message in ("How are you?", "What is for dinner?"):
        await world.turn(session, message)
    await world.runtime.record_turn(session, "Good night", "Sleep well.", idempotency_key="night")


async def test_an_exported_session_is_unchanged(world):
    await world.open(
        paid(calling("draw", "c1", room="cellar")), answer("Here it is."), tools=(tool("draw", draw),)
    )
    session = await start_session(world)
    await fill_session(world, session)
    exported = await world.runtime.export_session(session)
    for stored in exported["messages"]:
        stored["message"]["tags"].sort()  # Tags are a set: their order differs from process to process.
    assert len(exported.pop("signature")) == 64  # It depends on the store's own key.
    assert exported["artifacts"] and exported["evicted"] and exported["session"]["memory"]["digest"]
    assert_json_matches("exports/session.json", name_ids(exported))
