"""`Runtime(turn_tools=…)` finds tools by the session and the request of a turn, anew for each turn."""

import asyncio
import logging

import pytest

from sash.ports.model import Answer
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, both, calling
from sash.values.continuations import TurnCaller
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S, answer, tool_results, turn
from tests.tools import tool

LOOK = tool("look", lambda a, c: "it is dark")
LIE = "I've turned on the kitchen light."


class Finder:
    """Finds these tools for every turn, and keeps the questions."""

    def __init__(self, *tools):
        self.tools = tools
        self.asked = []

    async def __call__(self, session, request):
        self.asked.append((session.id, request))
        return self.tools


def names(request):
    """Return the names of the tools in a model request."""
    return [each["function"]["name"] for each in request.tools]


async def test_tools_of_a_turn_follow_the_own_ones_in_the_order_of_their_names(run):
    find = Finder(tool("zeta", lambda a, c: "z"), tool("alpha", lambda a, c: "a"))
    runtime = await run(
        both(calling("alpha", "1"), calling("look", "2")), "ok", tools=[LOOK], turn_tools=find
    )
    session = await runtime.start_session()
    anna = TurnCaller(user_id="anna")
    assert await answer(runtime, session, "go", caller=anna) == "ok"
    own = names(runtime.model.requests[0])[:-2]
    assert own[0] == "look" and "alpha" not in own
    assert names(runtime.model.requests[0])[-2:] == ["alpha", "zeta"]
    assert await tool_results(runtime, session) == ["a", "it is dark"]
    [(session_id, request)] = find.asked
    assert session_id == session.id
    assert (request.message, request.caller) == ("go", anna)


async def test_each_turn_and_each_session_has_its_own_tools(run):
    async def find(session, request):
        return [tool(f"{session.area}_{request.message}", lambda a, c: "x")]

    runtime = await run(turn_tools=find)
    hall = await runtime.start_session(area="hall")
    attic = await runtime.start_session(area="attic")
    for session, message in ((hall, "one"), (attic, "one"), (hall, "two")):
        await turn(runtime, session, message)
    assert [names(request)[-1] for request in runtime.model.requests] == ["hall_one", "attic_one", "hall_two"]


async def test_equal_tools_of_two_turns_are_one_list_whose_tokens_are_counted_once(run):
    async def find(session, request):
        return [tool("alpha", lambda a, c: "a")]

    runtime = await run(turn_tools=find)
    session = await runtime.start_session()
    for _ in range(2):
        await turn(runtime, session)
    first, second = runtime.model.requests
    assert first.tools is second.tools


async def test_a_turn_without_tools_asks_for_none(run):
    find = Finder(LOOK)
    runtime = await run(turn_tools=find)
    session = await runtime.start_session()
    await turn(runtime, session, allow_tools=False)
    assert find.asked == [] and runtime.model.requests[0].tools == []


@pytest.mark.parametrize("fault", ["raises", "returns nonsense", "hangs"])
async def test_a_turn_goes_on_if_the_search_fails(run, caplog, monkeypatch, fault):
    monkeypatch.setattr("sash.engine.turn_tools.MAX_FIND_S", 0.01)

    async def find(session, request):
        match fault:
            case "raises":
                raise ValueError("no such API")
            case "hangs":
                await asyncio.Event().wait()
        return 5

    runtime = await run(calling("look"), "ok", tools=[LOOK], turn_tools=find)
    session = await runtime.start_session()
    with caplog.at_level(logging.WARNING):
        assert await answer(runtime, session) == "ok"
    assert await tool_results(runtime, session) == ["it is dark"]
    assert caplog.text.count("turn_tools failed") == 1


async def test_a_tool_with_a_taken_name_or_a_wrong_schema_is_left_out(run, caplog):
    broken = ToolSpec("broken", "Broken.", {"type": "object", "properties": 5}, LOOK.invoke)
    find = Finder(broken, tool("look", lambda a, c: "stolen"), tool("good", lambda a, c: "good"))
    runtime = await run(both(calling("look", "1"), calling("good", "2")), "ok", tools=[LOOK], turn_tools=find)
    session = await runtime.start_session()
    with caplog.at_level(logging.WARNING):
        assert await answer(runtime, session) == "ok"
    assert await tool_results(runtime, session) == ["it is dark", "good"]
    assert names(runtime.model.requests[0]).count("look") == 1
    assert "broken" not in names(runtime.model.requests[0])
    left_out = [record.message for record in caplog.records if "left out" in record.message]
    assert len(left_out) == 2


async def test_intents_know_them(run):
    class Greeter:
        async def understand(self, heard):
            if heard.results:
                return Answer(heard.results[0].content, local=True)
            return calling("greet") if "greet" in heard.tools else None

    runtime = await run(
        "not asked", intents=[Greeter()], turn_tools=Finder(tool("greet", lambda a, c: "hello"))
    )
    session = await runtime.start_session()
    assert await answer(runtime, session) == "hello"


async def test_the_policy_judges_what_they_use(run):
    done = []
    switch = tool("switch", lambda a, c: done.append(1) or "done", action=True)
    runtime = await run(calling("switch"), "ok", turn_tools=Finder(switch))
    session = await runtime.start_session()
    result = await turn(runtime, session, "switch it")
    assert [action.outcome for action in result.response.actions] == ["denied"] and not done


async def test_an_answer_is_grounded_if_only_a_tool_of_the_turn_can_act(run):
    switch = tool("switch", lambda a, c: "done", action=True)
    runtime = await run(LIE, turn_tools=Finder(switch))
    session = await runtime.start_session()
    assert (await answer(runtime, session, "turn on the light")).startswith("I have not done that")


@pytest.mark.parametrize("restarts", [False, True])
async def test_an_approved_call_finds_its_tool_again(run, make_store, restarts):
    done, store = [], make_store()
    find = Finder(tool("switch", lambda a, c: done.append(c.caller) or "done", action=True))
    runtime = await run(calling("switch"), "ok", store=store, turn_tools=find)
    session = await runtime.start_session(policy=CAREFUL)
    anna = TurnCaller(user_id="anna")
    waiting = await turn(runtime, session, "switch it", caller=anna)
    assert waiting.status == "awaiting_approval"
    if restarts:
        await runtime.close()
        runtime = await run("ok", store=store, turn_tools=find)
    await runtime.approve(waiting.continuation.id, "call")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert [action.outcome for action in result.response.actions] == ["done"]
    assert done == [anna]
    assert [request.caller for _, request in find.asked] == [anna, anna]


async def crash_under_way(run, store, clock, hanging, **options):
    """Run a turn whose tool hangs until the process dies. Return a new runtime, and the turn."""
    under_way = asyncio.Event()

    async def hang(arguments, context):
        under_way.set()
        await asyncio.Event().wait()

    first = await run(calling("act"), store=store, turn_tools=Finder(tool("act", hang, **hanging)))
    session = await first.start_session(policy=OPEN)
    sent = await first.send_message(session.id, "act")
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(60)
    return await run("ok", store=store, **options), sent


@pytest.mark.parametrize(
    ("safety", "is_action", "calls", "outcomes"),
    [("unsafe", True, 0, ["unknown"]), ("idempotent", True, 1, ["done"]), ("idempotent", False, 1, [])],
)
async def test_after_a_crash_the_safety_of_the_tool_decides(
    run, make_store, clock, safety, is_action, calls, outcomes
):
    done, declared = [], {"safety": safety, "action": is_action}
    find = Finder(tool("act", lambda a, c: done.append(1) or "done", **declared))
    second, sent = await crash_under_way(run, make_store(), clock, declared, turn_tools=find)
    await second.resume(sent.id)
    result = await second.await_continuation(sent.id, timeout_s=WAIT_S)
    assert len(done) == calls
    assert [action.outcome for action in result.response.actions] == outcomes
    assert len(find.asked) == 1


async def test_an_interrupted_turn_that_is_cancelled_reports_its_action(run, make_store, clock):
    declared = {"action": True}
    find = Finder(tool("act", lambda a, c: "done", **declared))
    second, sent = await crash_under_way(run, make_store(), clock, declared, turn_tools=find)
    cancelled = await second.cancel(sent.id)
    assert [(action.name, action.outcome) for action in cancelled.response.actions] == [("act", "unknown")]


async def test_a_running_turn_that_is_cancelled_reports_its_action(run):
    under_way = asyncio.Event()

    async def hang(arguments, context):
        under_way.set()
        await asyncio.Event().wait()

    secret = "sk-" + "a1B2" * 12
    find = Finder(tool("act", hang, action=True))
    runtime = await run(calling("act", key=secret), turn_tools=find)
    session = await runtime.start_session(policy=OPEN)
    sent = await runtime.send_message(session.id, "act")
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    cancelled = await runtime.cancel(sent.id)
    assert [(action.name, action.outcome) for action in cancelled.response.actions] == [("act", "unknown")]
    assert len(find.asked) == 1
    assert secret not in str(await runtime.export_session(session.id))


async def test_a_resumed_turn_that_is_cancelled_while_its_tools_are_found_reports_its_action(
    run, make_store, clock
):
    asked, go_on, done, count = asyncio.Event(), asyncio.Event(), [], 0
    declared = {"action": True}

    async def find(session, request):
        nonlocal count
        count += 1
        asked.set()
        await go_on.wait()
        return [tool("act", lambda a, c: done.append(1), **declared)]

    second, sent = await crash_under_way(run, make_store(), clock, declared, turn_tools=find)
    await second.resume(sent.id)
    await asyncio.wait_for(asked.wait(), WAIT_S)
    cancelling = asyncio.create_task(second.cancel(sent.id))
    await asyncio.sleep(0)
    go_on.set()
    cancelled = await asyncio.wait_for(cancelling, WAIT_S)
    assert [(action.name, action.outcome) for action in cancelled.response.actions] == [("act", "unknown")]
    assert not done and count == 1


async def test_a_retry_finds_its_tools_itself(run):
    find = Finder(LOOK)
    runtime = await run("one", calling("look"), "two", turn_tools=find)
    session = await runtime.start_session()
    first = await turn(runtime, session)
    second = await runtime.retry(first.continuation.id)
    result = await runtime.await_continuation(second.id, timeout_s=WAIT_S)
    assert result.response.final_message == "two"
    assert len(find.asked) == 2


async def test_a_runtime_without_the_option_uses_its_own_list(run):
    runtime = await run(model=ScriptedModel("ok"), tools=[LOOK])
    session = await runtime.start_session()
    for _ in range(2):
        await turn(runtime, session)
    first, second = runtime.model.requests
    assert first.tools is second.tools
    assert names(first)[0] == "look"
