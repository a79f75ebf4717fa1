"""Turns that run to their end: answers, tool calls, budgets, failures."""

from sash.errors import ContextTooLong, ModelUnreachable, OutcomeUnknown
from sash.intents.memory_intents import MemoryIntents
from sash.ports.tools import ActionOutcome
from sash.testing import ScriptedModel, both, calling
from sash.values.sessions import Budgets, ModelConfig, SessionPolicy, WindowLimits
from tests.golden.world import FREE, World, answer, paid, scenario, tool, waiting_tool
from tests.home.small_home import house

SMALL = WindowLimits(max_tokens=None, max_turns=2, evict_to=0.5)
DEAR = ModelConfig(name="dear", temperature=0.5, max_output_tokens=500, options={"seed": 7})
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}


@scenario
async def answer_plain(world: World) -> str:
    await world.open("Hello there.")
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def answer_with_all_request_fields(world: World) -> str:
    await world.open(answer("I see a cat.", reasoning="It has whiskers."), allow_image_urls=True)
    session = await world.start()
    await world.turn(
        session,
        "What is this?",
        allow_tools=False,
        max_steps=3,
        time_budget_ms=60_000,
        planner_hints={"tone": "short"},
        idempotency_key="key-1",
        model=DEAR,
        attachments=[IMAGE],
        metadata={"source": "test"},
    )
    return session


@scenario
async def answer_empty(world: World) -> str:
    await world.open("")
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def answer_of_a_local_intent(world: World) -> str:
    await world.open(memory_tools=True, intents=(MemoryIntents(),))
    session = await world.start()
    await world.turn(session, "Remember that the boiler is a Vaillant.")
    return session


@scenario
async def answer_without_secrets(world: World) -> str:
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    await world.open(
        calling("look", key=secret), f"The key is {secret}.", tools=(tool("look", f"It is {secret}."),)
    )
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def answer_cut_off_by_max_output_tokens(world: World) -> str:
    await world.open(answer("It began with", stop_reason="length"))
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def tool_result_plain(world: World) -> str:
    await world.open(
        paid(calling("look", "c1", "Let me look.", room="hall")),
        answer("It is warm."),
        tools=(tool("look", {"°C": 21.5}),),
    )
    session = await world.start(model=DEAR)
    await world.turn(session, "How warm is the hall?")
    return session


@scenario
async def tool_result_of_several_calls(world: World) -> str:
    """The model gives two calls the same id, and one call no name."""
    calls = both(calling("look", room="hall"), calling("look", room="attic"), calling("", "c3"))
    await world.open(calls, calling("look"), "All is well.", tools=(tool("look", lambda a, c: a),))
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def tool_result_failed(world: World) -> str:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    broken = tool("broken", ValueError("no such lamp"), input_schema=schema)
    await world.open(
        calling("nothing", "c1"),
        calling("broken", "c2", a="x"),
        calling("broken", "c3", a=1),
        "I could not do it.",
        tools=(broken,),
    )
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def tool_result_with_action(world: World) -> str:
    acted = ActionOutcome({"state": "on"}, True, {"light.hall": "off"}, {"light.hall": "on"}, "turn:c0")
    await world.open(
        calling("light.turn_on", "c1", room="hall"),
        "It is on.",
        tools=(tool("light.turn_on", acted, action=True),),
    )
    session = await world.start(policy=FREE)
    await world.turn(session, "Turn on the light")
    return session


@scenario
async def tool_result_with_action_failed(world: World) -> str:
    tools = (
        tool("light.turn_on", ValueError("no answer"), action=True),
        tool("light.turn_off", OutcomeUnknown("the home went away"), action=True),
    )
    await world.open(calling("light.turn_on", "c1"), calling("light.turn_off", "c2"), "No.", tools=tools)
    session = await world.start(policy=FREE)
    await world.turn(session, "Switch the light")
    return session


@scenario
async def tool_result_with_action_denied(world: World) -> str:
    await world.open(
        calling("light.turn_on", "c1"), "I may not.", tools=(tool("light.turn_on", action=True),)
    )
    session = await world.start(policy=SessionPolicy())
    await world.turn(session, "Turn on the light")
    return session


@scenario
async def tool_result_with_action_dry_run(world: World) -> str:
    await world.open(
        calling("light.turn_on", "c1", room="hall"), "I would.", tools=(tool("light.turn_on", action=True),)
    )
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("light",), dry_run=True)
    session = await world.start(policy=policy)
    await world.turn(session, "Turn on the light")
    return session


@scenario
async def tool_result_with_action_of_a_home(world: World) -> str:
    runtime = await world.open("The model was asked.", home=house(), memory_tools=True, intents=None)
    await runtime.home_ready(timeout_s=30)
    session = await world.start(policy=FREE)
    await world.turn(session, "turn on the kitchen ceiling")
    await world.turn(session, "undo that")
    return session


@scenario
async def tool_result_with_artifacts(world: World) -> str:
    async def draw(arguments, context):
        await context.keep(b"\x89PNG", "image/png", "plot.png")
        return {"plot": "drawn"}

    tools = (tool("draw", draw), tool("read_log", "line of the log\n" * 1000))
    await world.open(calling("draw", "c1"), calling("read_log", "c2"), tools=tools)
    # No model call follows the long result: it has a random id, so its token count differs each time.
    session = await world.start(budgets=Budgets(max_steps=2))
    await world.turn(session)
    return session


@scenario
async def tool_result_with_cost(world: World) -> str:
    tools = (tool("buy", "bought", cost=0.25), tool("splurge", "bought", cost=100.0))
    await world.open(paid(calling("buy", "c1")), calling("splurge", "c2"), answer("Done."), tools=tools)
    session = await world.start(budgets=Budgets(max_cost_per_turn_usd=50.0))
    await world.turn(session)
    return session


@scenario
async def tool_result_without_tools(world: World) -> str:
    await world.open(calling("look"), "I may not look.", tools=(tool("look"),))
    session = await world.start()
    await world.turn(session, allow_tools=False)
    return session


@scenario
async def retrieval(world: World) -> str:
    await world.open(lambda request: "It is a Vaillant." if "boiler" in str(request.messages[-1]) else "ok")
    session = await world.start(window=SMALL)
    await world.turn(session, "Our boiler in the cellar was serviced by Mr Novak")
    for n in range(4):
        await world.turn(session, f"small talk number {n}")
    world.clock.advance(3600)
    await world.turn(session, "When was the boiler serviced?")
    return session


@scenario
async def event_told(world: World) -> str:
    home = house()
    runtime = await world.open(answer("One."), answer("Two."), home=home)
    await runtime.home_ready(timeout_s=30)
    session = await world.start()
    await world.turn(session, "a story", allow_tools=False)
    home.set_state("switch.kettle", "on")
    await world.turn(session, "another story", allow_tools=False)
    return session


@scenario
async def event_sent_back(world: World) -> str:
    lie = answer("I've turned on the kitchen light.")
    await world.open(lie, answer("The light is off."), lie, tools=(tool("light.turn_on", action=True),))
    session = await world.start()
    await world.turn(session, "turn on the light")
    await world.turn(session, "turn on the light")
    return session


@scenario
async def summary_stopped_by_max_steps(world: World) -> str:
    await world.open(calling("look", content="Looking further."), tools=(tool("look"),))
    session = await world.start(budgets=Budgets(max_steps=2))
    await world.turn(session)
    return session


@scenario
async def summary_stopped_by_max_tool_calls(world: World) -> str:
    calls = both(*(calling("look", f"c{n}") for n in range(3)))
    await world.open(calls, tools=(tool("look"),))
    session = await world.start(budgets=Budgets(max_tool_calls=2))
    await world.turn(session)
    return session


@scenario
async def summary_stopped_by_max_duration(world: World) -> str:
    wait, _ = waiting_tool("light.turn_on", action=True, safety="unsafe")
    await world.open(calling("light.turn_on", "c1", room="hall"), tools=(wait,))
    session = await world.start(policy=FREE)
    await world.turn(session, "turn on the light", time_budget_ms=1000)
    return session


@scenario
async def summary_stopped_by_max_tokens(world: World) -> str:
    await world.open(paid(calling("look")), tools=(tool("look"),))
    session = await world.start(budgets=Budgets(max_tokens_per_turn=1500))
    await world.turn(session)
    return session


@scenario
async def summary_stopped_by_cost_per_turn(world: World) -> str:
    await world.open(paid(calling("look")), tools=(tool("look"),))
    session = await world.start(model=DEAR, budgets=Budgets(max_cost_per_turn_usd=1.3))
    await world.turn(session)
    return session


@scenario
async def summary_stopped_by_cost_per_day(world: World) -> str:
    await world.open(answer("Hello."))
    session = await world.start(model=DEAR, budgets=Budgets(max_cost_per_day_usd=1.3))
    await world.turn(session)
    await world.turn(session)
    return session


@scenario
async def error_of_the_model(world: World) -> str:
    await world.open(ModelUnreachable("no network"), ContextTooLong("too long"))
    session = await world.start()
    await world.turn(session)
    await world.turn(session)
    return session


@scenario
async def error_internal(world: World) -> str:
    await world.open(model=ScriptedModel(RuntimeError("a bug")))
    session = await world.start()
    await world.turn(session)
    return session


@scenario
async def error_after_a_call(world: World) -> str:
    await world.open(calling("look"), ContextTooLong("too long"), tools=(tool("look"),))
    session = await world.start()
    await world.turn(session)
    return session
