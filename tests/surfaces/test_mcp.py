"""MCP by the official client: over HTTP and over standard input and output, in both eras of the protocol."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from jsonschema import ValidationError, validate
from mcp import Client, MCPError

from sash import Runtime
from sash.app.settings import Settings
from sash.demo.demo_home import demo_home
from sash.errors import ContextTooLong
from sash.models.offline import OfflineModel
from sash.models.registry import create_model
from sash.server.mcp.agent_tools import AGENT_TOOLS
from sash.server.mcp.turn_progress import WRITING
from sash.stores.memory import MemoryStore
from sash.testing import calling
from tests.models.wire import Reply, Wire, chunk, said
from tests.runtime.test_turns import tool
from tests.surfaces.serving import WAIT_S, WaitingModel, serving, until
from tests.surfaces.speaking import ERAS, call, program, refused, rpc, talking, use

LET_IT_UNLOCK = {
    "allow_actuation": True,
    "allowlisted_services": ["lock_unlock"],
    "require_confirmation": ["lock_unlock"],
}
AGENT_TOOL_NAMES = [one.name for one in AGENT_TOOLS]
YES = {"action": "accept", "content": {"approved": True}}

eras = pytest.mark.parametrize("era", ERAS)


@dataclass
class Over:
    """A transport to a Sash that can be restarted on the same data."""

    transport: str
    folder: object
    options: dict = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, era):
        if self.transport == "stdio":
            options = {f"SASH_{name.upper()}": value for name, value in self.options.items()}
            async with Client(program(self.folder, **options), mode=era) as client:
                yield client
        else:
            model = create_model(Settings(**self.options))
            async with (
                serving(self.folder, model=model, timeouts={"drain_s": 0.0}) as served,
                talking(served.url, era) as client,
            ):
                yield client


class Heard:
    """The progress messages that a client received, in the order of their numbers."""

    def __init__(self):
        self._heard = []

    async def __call__(self, number, total, message):
        self._heard.append((number, message))

    @property
    def numbers(self):
        return [number for number, _ in sorted(self._heard)]

    @property
    def messages(self):
        return [message for _, message in sorted(self._heard)]


@pytest.fixture
async def wire():
    """A model provider that answers, hangs twice, then answers."""
    hanging = Reply(chunks=[chunk("Let me")], then="hang")
    async with Wire(said("Voltage dips."), hanging, hanging, said("Here is the plan.")) as wire:
        yield wire


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, "It is 21.5 °C.") as served:
        yield served


@pytest.fixture
async def locked(tmp_path):
    """A server whose agent wants to unlock a door."""
    unlock = tool("lock_unlock", lambda a, c: "unlocked", action=True)

    def want(request):
        return calling("lock_unlock") if request.messages[-1]["role"] == "user" else "It is open."

    async with serving(tmp_path, want, tools=[unlock]) as served:
        yield served


@pytest.fixture
async def house(tmp_path):
    home = demo_home()
    async with serving(tmp_path, model=OfflineModel(), home=home, timeouts={"home_s": 0.05}) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        served.home = home
        yield served


async def asked(wire, times):
    """Wait until the model was called `times` times."""
    async with asyncio.timeout(WAIT_S):
        while len(wire.requests) < times:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("transport", "first", "second"), [("http", *ERAS), ("http", *ERAS[::-1]), ("stdio", *ERAS)]
)
async def test_the_flow_of_seed_004_with_a_restart(tmp_path, wire, transport, first, second):
    """The clients before and after the restart use different revisions of the protocol."""
    over = Over(
        transport,
        tmp_path,
        {"model": "m", "api_key": "k", "api_base": wire.url, "api_mode": "chat", "home": "none"},
    )
    async with over.client(first) as mcp:
        session_id = (await call(mcp, "ha_agent.start_session"))["session_id"]
        sent = await call(
            mcp,
            "ha_agent.send_message",
            session_id=session_id,
            message="Why did bedroom lights flicker last night?",
            stream=True,
        )
        assert sent == {"continuation_id": sent["continuation_id"], "acknowledged": True}
        result = await call(mcp, "ha_agent.await_continuation", continuation_id=sent["continuation_id"])
        assert (result["status"], result["artifacts"]) == ("completed", [])
        assert result["response"]["final_message"] == "Voltage dips."

        plan = "Create a mitigation plan and simulate impact."
        sent = await call(mcp, "ha_agent.send_message", session_id=session_id, message=plan)
        await asked(wire, 2)
        stop = {"continuation_id": sent["continuation_id"], "reason": "taking too long"}
        assert await call(mcp, "ha_agent.cancel", **stop) == {"status": "cancelled"}
        assert await call(mcp, "ha_agent.cancel", **stop) == {"status": "already_final"}
        assert await call(mcp, "ha_agent.cancel", continuation_id="none") == {"status": "not_found"}

        sent = await call(mcp, "ha_agent.send_message", session_id=session_id, message=plan)
        await asked(wire, 3)
    async with over.client(second) as mcp:
        stands = await call(
            mcp, "ha_agent.await_continuation", continuation_id=sent["continuation_id"], timeout_ms=0
        )
        assert stands["status"] == "interrupted" and "ha_agent_resume" in stands["to_do"]
        result = await call(mcp, "ha_agent.resume", continuation_id=sent["continuation_id"])
        assert result["response"]["final_message"] == "Here is the plan."
        session = (await call(mcp, "ha_agent.get_session", session_id=session_id))["session"]
        assert (session["stats"]["turns"], session["stats"]["cancelled_turns"]) == (3, 1)
        assert await call(mcp, "ha_agent.end_session", session_id=session_id) == {"status": "ended"}
        assert await refused(mcp, "ha_agent.send_message", session_id=session_id, message="hi") == (
            "session_ended"
        )


@eras
async def test_tools_are_listed_with_schemas_and_hints(house, era):
    async with talking(house.url, era) as mcp:
        listed = (await mcp.list_tools()).tools
    names = [one.name for one in listed]
    assert names[0] == "ha_agent_list_sessions" and listed[0].annotations.read_only_hint
    assert set(names) == {
        *(f"ha_agent_{verb}" for verb in ("ask", "start_session", "send_message", "await_continuation")),
        *(f"ha_agent_{verb}" for verb in ("cancel", "get_session", "end_session", "resume", "retry")),
        *(f"ha_agent_{verb}" for verb in ("list_sessions", "approve")),
        *("search_index", "get_states", "get_history", "get_logbook", "diagnose_entity", "analyze_errors"),
    }
    for one in listed:
        assert one.title and len(one.description) > 40
        assert one.input_schema["type"] == one.output_schema["type"] == "object"
        assert one.input_schema["additionalProperties"] is False
        validate({"code": "forbidden", "message": "no", "scope": "read"}, one.output_schema)
        with pytest.raises(ValidationError):
            validate({"message": "no"}, one.output_schema)
        assert "$ref" not in json.dumps(one.input_schema | one.output_schema)
        hints = one.annotations
        assert None not in (hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert not (hints.read_only_hint and hints.destructive_hint)
    send = next(one for one in listed if one.name == "ha_agent_send_message")
    assert send.input_schema["required"] == ["message", "session_id"]
    assert send.input_schema["properties"]["time_budget_ms"]["maximum"] == 86_400_000


@eras
async def test_tool_results_match_their_schemas(house, era):
    entity_ids = ["light.bedroom_ceiling", "sensor.outdoor_temperature"]
    async with talking(house.url, era) as mcp:
        schemas = {one.name: one.output_schema for one in (await mcp.list_tools()).tools}

        async def check(name, /, **arguments):
            result = await call(mcp, name, **arguments)
            validate(result, schemas.pop(name))
            return result

        session_id = (await check("ha_agent_start_session", name="kitchen"))["session_id"]
        turn = await check(
            "ha_agent_send_message", session_id=session_id, message="Why does the bedroom light flicker?"
        )
        named = {"continuation_id": turn["continuation_id"]}
        assert (await check("ha_agent_await_continuation", **named))["status"] == "completed"
        await check("ha_agent_ask", message="Is the kitchen light on?")
        await check("ha_agent_retry", **named)
        await check("ha_agent_cancel", **named)
        shown = await check("ha_agent_get_session", session_id=session_id)
        assert shown["session"]["stats"]["durations"]
        listed = await check("ha_agent_list_sessions", limit=1)
        assert len(listed["sessions"]) == 1 and listed["next_cursor"]
        await check("search_index", query="light")
        await check("get_states", entity_ids=[*entity_ids, "light.nowhere"])
        await check("get_history", entity_ids=entity_ids, plot=True, session_id=session_id)
        await check("get_logbook")
        await check("diagnose_entity", entity_id="binary_sensor.bathroom_leak")
        await check("analyze_errors", timeframe="7d")
        await check("ha_agent_end_session", session_id=session_id)
    assert set(schemas) == {"ha_agent_approve", "ha_agent_resume"}


@eras
async def test_one_question_ends_its_session_with_the_answer(served, era):
    async with talking(served.url, era) as mcp:
        answer = await call(mcp, "ha_agent_ask", message="How warm is it?")
        assert (answer["status"], answer["response"]["final_message"]) == ("completed", "It is 21.5 °C.")
        listed = await call(mcp, "ha_agent_list_sessions")
        assert [(one["id"], one["status"]) for one in listed["sessions"]] == [(answer["session_id"], "ended")]


async def test_a_refused_question_leaves_no_session_open(served):
    async with talking(served.url, ERAS[1]) as mcp:
        assert await refused(mcp, "ha_agent_ask", message="x" * (1 << 20) + "x") == "message_too_large"
        assert (await call(mcp, "ha_agent_list_sessions", status="active"))["sessions"] == []


@eras
async def test_a_wait_that_times_out_names_the_next_call(waiting, era):
    served, model = waiting
    async with talking(served.url, era) as mcp:
        answer = await call(mcp, "ha_agent_ask", message="How warm is it?", timeout_ms=20)
        assert answer["response"] is None and answer["status"] in ("running", "streaming")
        assert "ha_agent_await_continuation" in answer["to_do"]
        model.go.set()
        named = {"continuation_id": answer["continuation_id"]}
        answer = await call(mcp, "ha_agent_await_continuation", **named)
        assert answer["response"]["final_message"] == "Let me see what there is."
        session = (await call(mcp, "ha_agent_get_session", session_id=answer["session_id"]))["session"]
        assert session["status"] == "ended"


@eras
async def test_progress_is_reported_during_a_wait(tmp_path, era):
    def look(arguments, context):
        context.progress("Looking into the hall")
        return "fine"

    lines = (calling("look", room="hall"), "All is well.")
    async with (
        serving(tmp_path, *lines, tools=[tool("look", look)]) as served,
        talking(served.url, era) as mcp,
    ):
        # The client starts a task for each message, so a message may be noted after the answer.
        first, second = Heard(), Heard()
        asked = await mcp.call_tool("ha_agent_ask", {"message": "How is the hall?"}, progress_callback=first)
        named = {"continuation_id": asked.structured_content["continuation_id"]}
        await mcp.call_tool("ha_agent_await_continuation", named, progress_callback=second)
        await until(lambda: "look has answered" in first.messages and len(second.messages) == 2)
        await until(lambda: first.numbers == [*range(1, len(first.numbers) + 1)])
        assert second.messages == ["Calling look", "look has answered"]
    steps = [each for each in first.messages if each not in ("Looking into the hall", WRITING)]
    assert steps == ["Calling look", "look has answered"]


@eras
async def test_progress_in_a_long_session_covers_only_the_new_turn(tmp_path, era):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served, talking(served.url, era) as mcp:
        model.go.set()
        session_id = await served.start()
        for n in range(3):
            await served.wait(await served.send(session_id, str(n)))
        model.go.clear()
        model.asked.clear()
        sent = await served.send(session_id, "and now?")
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        read = []
        events = served.runtime.events

        def listen(session_id, **options):
            read.append(options["after"])
            return events(session_id, **options)

        served.runtime.events = listen

        async def progress(number, total, message):
            read.append(message)

        waits = asyncio.create_task(
            mcp.call_tool(
                "ha_agent_await_continuation", {"continuation_id": sent}, progress_callback=progress
            )
        )
        async with asyncio.timeout(WAIT_S):
            while len(read) < 2:
                await asyncio.sleep(0.01)
        model.go.set()
        await waits
        assert read == [3, WRITING]


@pytest.mark.parametrize("modern", [True, False])
async def test_a_question_is_answered_after_the_client_disconnects(waiting, modern):
    served, model = waiting
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    params = {"name": "ha_agent_ask", "arguments": {"message": "How warm is it?"}}
    if modern:
        asking = rpc(served, "tools/call", params, tasks=False)
    else:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        asking = served.client.post("/mcp", json=body, headers=headers)
    asking = asyncio.create_task(asking)
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    model.go.set()
    async with asyncio.timeout(WAIT_S):
        while True:
            [session] = (await served.client.get("/v1/sessions")).json()["sessions"]
            if session["status"] == "ended":
                break
            await asyncio.sleep(0.01)
    messages = (await served.client.get(f"/v1/sessions/{session['id']}/messages")).json()["messages"]
    assert [message["content"] for message in messages] == ["How warm is it?", "Let me see what there is."]


async def test_a_message_is_stored_although_its_sender_disconnects(served):
    session_id = await served.start()
    send, begun, go = served.runtime.send, asyncio.Event(), asyncio.Event()

    async def slowly(*args, **options):
        begun.set()
        await go.wait()
        return await send(*args, **options)

    served.runtime.send = slowly
    sending = asyncio.create_task(
        use(served, "ha_agent_send_message", {"session_id": session_id, "message": "hi"})
    )
    await asyncio.wait_for(begun.wait(), WAIT_S)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    async with asyncio.timeout(WAIT_S):
        while 'route="/mcp",status="499"' not in (await served.client.get("/metrics")).text:
            await asyncio.sleep(0.01)
    go.set()
    async with asyncio.timeout(WAIT_S):
        while not (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]:
            await asyncio.sleep(0.01)


WRONG = [
    ("ha_agent_send_message", {"session_id": "x"}, "message: Field required"),
    ("ha_agent_send_message", {"session_id": "x", "message": ""}, "message"),
    ("ha_agent_send_message", {"session_id": "x", "message": 5}, "message"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi", "mesage": "hi"}, "mesage"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi", "busy": "never"}, "busy"),
    ("ha_agent_start_session", {"policy": {"allow_actuation": "false"}}, "policy.allow_actuation"),
    ("ha_agent_start_session", {"budgets": {"max_stepz": 8}}, "budgets.max_stepz"),
    ("ha_agent_start_session", {"model": {"options": {"messages": []}}}, "messages"),
    ("ha_agent_await_continuation", {}, "continuation_id"),
    ("ha_agent_await_continuation", {"continuation_id": "x", "timeout_ms": "1000"}, "timeout_ms"),
    ("ha_agent_await_continuation", {"continuation_id": "x", "timeout_ms": -1}, "timeout_ms"),
    ("ha_agent_list_sessions", {"status": "gone"}, "status"),
    ("ha_agent_list_sessions", {"limit": 0}, "limit"),
    ("ha_agent_ask", {"message": "hi", "timeout_ms": True}, "timeout_ms"),
    ("ha_agent_approve", {"continuation_id": "x"}, "call_id"),
    ("get_states", {}, "entity_ids"),
    ("get_states", {"entity_ids": ["light.hallway"], "colour": 1}, "get_states"),
    ("get_states", {"entity_ids": ["light.hallway"], "session_id": 5}, "session_id"),
    ("get_history", {"entity_ids": ["light.hallway"], "plot": True}, "session_id"),
]


async def test_invalid_arguments_are_an_error_result(house):
    for name, arguments, says in WRONG:
        result = await use(house, name, arguments, tasks=False)
        assert result["isError"], (name, arguments)
        assert result["structuredContent"]["code"] == "invalid_input", (name, arguments)
        assert says in result["content"][0]["text"], (name, arguments)
    assert (await house.client.get("/v1/sessions")).json()["sessions"] == []


async def test_an_error_does_not_repeat_secret_arguments(served):
    secret = "sk-abcdefghijklmnopqrstuvwxyz"
    result = await use(served, "ha_agent_start_session", {"name": {"key": secret}, secret: 1}, tasks=False)
    assert result["isError"] and secret not in json.dumps(result)


@eras
async def test_missing_things_are_reported(served, era):
    async with talking(served.url, era) as mcp:
        for name in ("get_session", "end_session"):
            assert await refused(mcp, f"ha_agent_{name}", session_id="none") == "session_not_found"
        assert await refused(mcp, "ha_agent_send_message", session_id="none", message="hi") == (
            "session_not_found"
        )
        for name in ("await_continuation", "resume", "retry"):
            assert await refused(mcp, f"ha_agent_{name}", continuation_id="none") == "continuation_not_found"
        for name in ("dance", "ha_agent.dance", "get.states", "ha_agent_start.session"):
            with pytest.raises(MCPError, match="Unknown tool") as error:
                await mcp.call_tool(name, {})
            assert error.value.code == -32602
        with pytest.raises(MCPError, match="Unknown prompt"):
            await mcp.get_prompt("dance", {})
        with pytest.raises(MCPError, match="entity"):
            await mcp.get_prompt("diagnose", {})


@eras
async def test_a_failed_turn_is_an_error_with_its_reason(tmp_path, era):
    async with serving(tmp_path, ContextTooLong("too much was said")) as served:
        async with talking(served.url, era) as mcp:
            result = await mcp.call_tool("ha_agent_ask", {"message": "hi"})
        assert result.is_error
        assert result.structured_content["status"] == "failed"
        assert result.structured_content["error"]["code"] == "context_too_long"


@eras
async def test_a_call_that_needs_an_approval_is_approved(locked, era):
    async with talking(locked.url, era) as mcp:
        session_id = (await call(mcp, "ha_agent_start_session", policy=LET_IT_UNLOCK))["session_id"]
        sent = await call(mcp, "ha_agent_send_message", session_id=session_id, message="Unlock the door")
        named = {"continuation_id": sent["continuation_id"]}
        stands = await call(mcp, "ha_agent_await_continuation", **named)
        assert stands["status"] == "awaiting_approval" and "ha_agent_approve" in stands["to_do"]
        [waits] = stands["waiting_calls"]
        assert waits["name"] == "lock_unlock" and waits["reason"]
        wrong = await refused(mcp, "ha_agent_approve", call_id="none", approved=True, **named)
        assert wrong == "not_awaiting_approval"
        done = await call(mcp, "ha_agent_approve", call_id=waits["call_id"], approved=True, **named)
        assert done["response"]["actions"][0]["outcome"] == "done"


async def test_a_question_that_needs_an_approval_ends_its_session_afterwards(tmp_path):
    unlock = tool("lock_unlock", lambda a, c: "unlocked", action=True)
    lines = (calling("lock_unlock"), "It is open.")
    async with (
        serving(tmp_path, *lines, tools=[unlock], **LET_IT_UNLOCK) as served,
        talking(served.url, ERAS[1]) as mcp,
    ):
        stands = await call(mcp, "ha_agent_ask", message="Unlock the door")
        assert stands["status"] == "awaiting_approval"
        session = {"session_id": stands["session_id"]}
        assert (await call(mcp, "ha_agent_get_session", **session))["session"]["status"] == "active"
        [waits] = stands["waiting_calls"]
        named = {"continuation_id": stands["continuation_id"], "call_id": waits["call_id"]}
        assert (await call(mcp, "ha_agent_approve", approved=True, **named))["status"] == "completed"
        assert (await call(mcp, "ha_agent_get_session", **session))["session"]["status"] == "ended"


@eras
async def test_home_tools_return_data_and_plots(house, era):
    async with talking(house.url, era) as mcp:
        found = await call(mcp, "search_index", query="kitchen light", limit=1)
        assert found["entities"][0]["entity_id"] == "light.kitchen_ceiling"
        session_id = await house.start()
        arguments = {"entity_ids": ["sensor.outdoor_temperature"], "plot": True, "session_id": session_id}
        drawn = await mcp.call_tool("get_history", arguments)
        [picture] = [part for part in drawn.content if part.type == "image"]
        assert picture.mime_type == "image/png"
        kept = await mcp.read_resource(f"sash://artifacts/{drawn.structured_content['plot']['artifact']}")
        assert kept.contents[0].blob == picture.data
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")
        assert await refused(mcp, "diagnose_entity", entity_id="light.nowhere") == "entity_not_found"
        house.home.disconnect("the router is down")
        assert await refused(mcp, "get_states", entity_ids=["light.hallway"]) == "home_unavailable"


@eras
async def test_custom_direct_tools_are_listed(tmp_path, era):
    tools = [
        tool("say", lambda a, c: f"Hello {a.get('name')}", direct=True),
        tool("count", lambda a, c: [1, 2], direct=True, output_schema={"type": "array"}),
        tool("weigh", lambda a, c: {"kg": 3}, direct=True, output_schema={"type": "object"}),
        tool("hide", lambda a, c: "hidden"),
    ]
    async with serving(tmp_path, tools=tools) as served, talking(served.url, era) as mcp:
        listed = {one.name for one in (await mcp.list_tools()).tools}
        assert listed - {*AGENT_TOOL_NAMES} == {"say", "count", "weigh"}
        said = await mcp.call_tool("say", {"name": "Anna"})
        assert (said.content[0].text, said.structured_content) == ("Hello Anna", None)
        assert (await mcp.call_tool("count", {})).content[0].text == "[1, 2]"
        assert await call(mcp, "weigh") == {"kg": 3}


async def test_home_tools_without_a_home_report_that(served):
    async with talking(served.url, ERAS[1]) as mcp:
        assert len((await mcp.list_tools()).tools) == len(AGENT_TOOLS)
        assert await refused(mcp, "get_states", entity_ids=["light.hallway"]) == "home_unavailable"


@eras
async def test_sessions_turns_and_artifacts_can_be_read(tmp_path, era):
    large = tool("read_all", lambda a, c: "word " * 4000)
    async with (
        serving(tmp_path, calling("read_all"), "Read.", tools=[large]) as served,
        talking(served.url, era) as mcp,
    ):
        listed = (await mcp.list_resources()).resources
        assert [one.uri for one in listed] == ["sash://guide", "sash://sessions"]
        assert "ha_agent_ask" in (await mcp.read_resource("sash://guide")).contents[0].text
        templates = (await mcp.list_resource_templates()).resource_templates
        assert {one.uri_template for one in templates} == {
            "sash://sessions/{session_id}",
            "sash://continuations/{continuation_id}",
            "sash://artifacts/{artifact_id}",
        }

        async def read(uri):
            [contents] = (await mcp.read_resource(uri)).contents
            assert contents.uri == uri
            return json.loads(contents.text)

        asked = await mcp.call_tool("ha_agent_ask", {"message": "Read it all"})
        [link] = [part for part in asked.content if part.type == "resource_link"]
        answer = asked.structured_content
        assert [one["id"] for one in (await read("sash://sessions"))["sessions"]] == [answer["session_id"]]
        session = await read(f"sash://sessions/{answer['session_id']}")
        [turn] = session["turns"]
        assert (turn["user"], turn["agent"]) == ("Read it all", "Read.")
        turn = await read(f"sash://continuations/{answer['continuation_id']}")
        assert "tool_call" in [step["type"] for step in turn["steps"]]
        [kept] = (await mcp.read_resource(link.uri)).contents
        assert kept.text == "word " * 4000 and kept.mime_type == "text/plain"
        nowhere = ("sash://sessions/none", "sash://continuations/none", "sash://artifacts/none")
        for uri in (*nowhere, "sash://nowhere", "sash://sessions/a/b", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="Resource not found") as error:
                await mcp.read_resource(uri)
            assert error.value.code == -32602 and error.value.error.data == {"uri": uri}


@eras
async def test_prompts_are_filled_and_completed(house, era):
    from mcp.types import PromptReference, ResourceTemplateReference

    async with talking(house.url, era) as mcp:
        listed = (await mcp.list_prompts()).prompts
        assert [one.name for one in listed] == ["diagnose", "house_report"]
        assert all(one.description for one in listed)
        filled = await mcp.get_prompt("diagnose", {"entity": "the {timeframe} light"})
        assert "the {timeframe} light" in filled.messages[0].content.text
        assert "last 24h" in (await mcp.get_prompt("house_report", {})).messages[0].content.text

        async def complete(ref, name, value):
            return (await mcp.complete(ref, {"name": name, "value": value})).completion.values

        diagnose, report = PromptReference(name="diagnose"), PromptReference(name="house_report")
        assert "light.kitchen_ceiling" in await complete(diagnose, "entity", "kitchen li")
        assert await complete(diagnose, "entity", " ") == []
        assert await complete(report, "timeframe", "2") == ["24h"]
        assert await complete(report, "colour", "r") == []
        session_id = await house.start()
        sessions = ResourceTemplateReference(uri="sash://sessions/{session_id}")
        assert await complete(sessions, "session_id", session_id[:4]) == [session_id]
        house.home.disconnect("the router is down")
        assert await complete(diagnose, "entity", "kitchen") == []


async def test_an_owner_cannot_reach_data_of_another_owner(locked):
    anna, ben = locked.token("anna"), locked.token("ben")
    started = await use(locked, "ha_agent_start_session", {"policy": LET_IT_UNLOCK}, headers=anna)
    session_id = started["structuredContent"]["session_id"]
    message = {"session_id": session_id, "message": "Unlock the door"}
    sent = await use(locked, "ha_agent_send_message", message, headers=anna)
    turn_id = sent["structuredContent"]["continuation_id"]
    await use(locked, "ha_agent_await_continuation", {"continuation_id": turn_id}, headers=anna, tasks=False)
    of_session, of_turn = {"session_id": session_id}, {"continuation_id": turn_id}
    arguments = {
        "ha_agent_get_session": of_session,
        "ha_agent_send_message": message,
        "ha_agent_end_session": of_session,
        "ha_agent_await_continuation": of_turn,
        "ha_agent_resume": of_turn,
        "ha_agent_retry": of_turn,
        "ha_agent_approve": {**of_turn, "call_id": "call", "approved": True},
    }
    for tasks in (True, False):
        for name, given in arguments.items():
            result = await use(locked, name, given, headers=ben, tasks=tasks)
            assert result["isError"], name
            assert result["structuredContent"]["code"].endswith("_not_found"), name
        cancelled = await use(locked, "ha_agent_cancel", of_turn, headers=ben, tasks=tasks)
        assert cancelled["structuredContent"] == {"status": "not_found"}
        listed = await use(locked, "ha_agent_list_sessions", {}, headers=ben, tasks=tasks)
        assert listed["structuredContent"]["sessions"] == []
    for uri in (f"sash://sessions/{session_id}", f"sash://continuations/{turn_id}"):
        assert (await rpc(locked, "resources/read", {"uri": uri}, headers=ben))["error"]["code"] == -32602
    listed = (await rpc(locked, "resources/read", {"uri": "sash://sessions"}, headers=ben))["result"]
    assert session_id not in json.dumps(listed)
    for method in ("get", "update", "cancel"):
        params = {"taskId": turn_id, "inputResponses": {"call": YES}}
        assert (await rpc(locked, f"tasks/{method}", params, headers=ben))["error"]["code"] == -32602
    wanted = {
        "ref": {"type": "ref/resource", "uri": "sash://sessions/{session_id}"},
        "argument": {"name": "session_id", "value": ""},
    }
    completed = await rpc(locked, "completion/complete", wanted, headers=ben)
    assert completed["result"]["completion"]["values"] == []
    shown = await use(locked, "ha_agent_await_continuation", of_turn, headers=anna, tasks=False)
    assert shown["structuredContent"]["status"] == "awaiting_approval"
    untouched = {*AGENT_TOOL_NAMES} - {*arguments} - {"ha_agent_cancel", "ha_agent_list_sessions"}
    assert untouched == {"ha_agent_ask", "ha_agent_start_session"}


async def test_a_plot_of_another_owner_is_not_shown(house):
    anna, ben = house.token("anna"), house.token("ben")
    started = await use(house, "ha_agent_start_session", {}, headers=anna)
    session_id = started["structuredContent"]["session_id"]
    arguments = {"entity_ids": ["sensor.outdoor_temperature"], "plot": True, "session_id": session_id}
    drawn = await use(house, "get_history", arguments, headers=anna)
    uri = f"sash://artifacts/{drawn['structuredContent']['plot']['artifact']}"
    assert "result" in await rpc(house, "resources/read", {"uri": uri}, headers=anna)
    assert (await rpc(house, "resources/read", {"uri": uri}, headers=ben))["error"]["code"] == -32602
    drawn = await use(house, "get_history", arguments, headers=ben)
    assert drawn["structuredContent"]["code"] == "session_not_found"


async def test_every_request_needs_a_token_once_one_exists(served):
    served.token("anna")
    asked = await served.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert asked.status_code == 401 and asked.headers["www-authenticate"]


NEEDS = [
    ("ha_agent_list_sessions", {}, "read"),
    ("ha_agent_get_session", {"session_id": "x"}, "read"),
    ("ha_agent_await_continuation", {"continuation_id": "x"}, "read"),
    ("ha_agent_ask", {"message": "hi"}, "read"),
    ("ha_agent_ask", {"message": "hi"}, "converse"),
    ("ha_agent_start_session", {}, "converse"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi"}, "converse"),
    ("ha_agent_cancel", {"continuation_id": "x"}, "converse"),
    ("ha_agent_resume", {"continuation_id": "x"}, "converse"),
    ("ha_agent_retry", {"continuation_id": "x"}, "converse"),
    ("ha_agent_end_session", {"session_id": "x"}, "converse"),
    ("ha_agent_approve", {"continuation_id": "x", "call_id": "x", "approved": True}, "act"),
    ("ha_agent_start_session", {"policy": {"allow_actuation": True}}, "act"),
    ("get_states", {"entity_ids": ["light.hallway"]}, "read"),
    ("get_history", {"entity_ids": ["light.hallway"], "plot": True, "session_id": "x"}, "converse"),
]


async def test_every_tool_needs_its_scope(house):
    for name, arguments, scope in NEEDS:
        others = [one for one in ("read", "converse", "act", "admin") if one != scope]
        result = await use(house, name, arguments, headers=house.token("anna", *others), tasks=False)
        assert result["isError"], (name, scope)
        told = result["structuredContent"]
        assert (told["code"], told["scope"]) == ("forbidden", scope), (name, scope)
    assert {*AGENT_TOOL_NAMES} <= {name for name, _, _ in NEEDS}
    assert (await house.client.get("/v1/sessions", headers=house.token("anna"))).json()["sessions"] == []


async def test_resources_and_tasks_need_their_scopes(locked):
    anna, reader = locked.token("anna"), locked.token("anna", "read")
    turn_id = await locked_turn(locked, anna)
    session = await rpc(
        locked, "resources/read", {"uri": "sash://sessions"}, headers=locked.token("anna", "act")
    )
    assert (session["error"]["code"], session["error"]["data"]["code"]) == (-32600, "forbidden")
    shown = await rpc(locked, "tasks/get", {"taskId": turn_id}, headers=reader)
    assert shown["result"]["status"] == "input_required"
    params = {"taskId": turn_id, "inputResponses": {"call": YES}}
    for method in ("update", "cancel"):
        answer = await rpc(locked, f"tasks/{method}", params, headers=reader)
        assert answer["error"]["data"]["code"] == "forbidden"
    shown = await rpc(locked, "tasks/get", {"taskId": turn_id}, headers=anna)
    assert shown["result"]["status"] == "input_required"


async def locked_turn(served, headers=None) -> str:
    """Start a turn that needs an approval, and return its task id."""
    started = await use(served, "ha_agent_start_session", {"policy": LET_IT_UNLOCK}, headers=headers)
    message = {"session_id": started["structuredContent"]["session_id"], "message": "Unlock the door"}
    sent = (await use(served, "ha_agent_send_message", message, headers=headers))["structuredContent"]
    named = {"continuation_id": sent["continuation_id"]}
    await use(served, "ha_agent_await_continuation", named, headers=headers, tasks=False)
    created = await use(served, "ha_agent_await_continuation", named, headers=headers)
    assert (created["resultType"], created["taskId"]) == ("task", sent["continuation_id"])
    return created["taskId"]


async def acknowledged(served, method: str, params: dict) -> None:
    """Make a request whose result is only an acknowledgement."""
    result = (await rpc(served, method, params))["result"]
    assert (result.pop("resultType"), [*result]) == ("complete", ["_meta"])


async def settled(served, task_id: str) -> dict:
    """Poll a task until it ends."""
    async with asyncio.timeout(WAIT_S):
        while True:
            task = (await rpc(served, "tasks/get", {"taskId": task_id}))["result"]
            if task["status"] not in ("working", "input_required"):
                return task
            await asyncio.sleep(0.01)


async def test_a_question_is_a_task_for_clients_with_the_extension(waiting):
    served, model = waiting
    created = await use(served, "ha_agent_ask", {"message": "How warm is it?"})
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", 86_400_000)
    assert created["createdAt"].endswith("Z") and "content" not in created
    task = (await rpc(served, "tasks/get", {"taskId": created["taskId"]}))["result"]
    assert task["status"] == "working" and "result" not in task
    model.go.set()
    task = await settled(served, created["taskId"])
    assert task["status"] == "completed" and task["resultType"] == "complete"
    plain = await use(served, "ha_agent_await_continuation", {"continuation_id": created["taskId"]})
    assert task["result"]["structuredContent"] == plain["structuredContent"]
    assert plain["structuredContent"]["response"]["final_message"] == "Let me see what there is."
    async with asyncio.timeout(WAIT_S):
        while (await served.client.get("/v1/sessions")).json()["sessions"][0]["status"] != "ended":
            await asyncio.sleep(0.01)


async def test_a_client_without_the_extension_gets_no_task(served):
    answer = await use(served, "ha_agent_ask", {"message": "How warm is it?"}, tasks=False)
    assert answer["structuredContent"]["status"] == "completed"
    params = {"taskId": answer["structuredContent"]["continuation_id"], "inputResponses": {}}
    needed = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    for method in ("get", "update", "cancel"):
        error = (await rpc(served, f"tasks/{method}", params, tasks=False))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
        body = {"jsonrpc": "2.0", "id": 1, "method": f"tasks/{method}", "params": params}
        old = {"mcp-protocol-version": "2025-11-25", "accept": "application/json, text/event-stream"}
        answer = (await served.client.post("/mcp", json=body, headers=old)).text
        assert "-32601" in answer


async def test_a_cancelled_task_stays_cancelled(waiting):
    served, model = waiting
    created = await use(served, "ha_agent_ask", {"message": "How warm is it?"})
    named = {"taskId": created["taskId"]}
    for _ in range(2):
        await acknowledged(served, "tasks/cancel", named)
    assert (await settled(served, created["taskId"]))["status"] == "cancelled"
    assert not model.go.is_set()


async def test_a_missing_task_is_reported(served):
    for method in ("get", "update", "cancel"):
        params = {"taskId": "none", "inputResponses": {}}
        assert (await rpc(served, f"tasks/{method}", params))["error"]["code"] == -32602
        wrong = await rpc(served, f"tasks/{method}", params, name="another")
        assert wrong["error"]["code"] == -32020
    for method in ("list", "result"):
        assert (await rpc(served, f"tasks/{method}", {"taskId": "none"}))["error"]["code"] == -32601


NOS_AND_A_YES = [
    (YES, "done"),
    ({"action": "accept", "content": {"approved": False}}, "denied"),
    ({"action": "accept", "content": {"approved": "yes"}}, "denied"),
    ({"action": "accept", "content": {}}, "denied"),
    ({"action": "accept"}, "denied"),
    ({"action": "decline"}, "denied"),
    ({"action": "cancel", "content": {"approved": True}}, "denied"),
    (True, "denied"),
]


async def test_a_task_is_approved_or_denied(locked):
    for answer, outcome in NOS_AND_A_YES:
        assert await answered(locked, answer) == outcome, answer


async def answered(locked, answer) -> str:
    """Answer a task, among other answers, and return the outcome of the call."""
    task_id = await locked_turn(locked)
    task = (await rpc(locked, "tasks/get", {"taskId": task_id}))["result"]
    assert task["status"] == "input_required"
    [(key, asks)] = task["inputRequests"].items()
    assert asks["method"] == "elicitation/create" and "lock_unlock" in asks["params"]["message"]
    assert asks["params"]["requestedSchema"]["required"] == ["approved"]
    others = {"taskId": task_id, "inputResponses": {"another": YES}}
    await acknowledged(locked, "tasks/update", others)
    assert (await rpc(locked, "tasks/get", {"taskId": task_id}))["result"]["status"] == "input_required"
    given = {"taskId": task_id, "inputResponses": {key: answer}}
    await acknowledged(locked, "tasks/update", given)
    task = await settled(locked, task_id)
    await acknowledged(locked, "tasks/update", given)
    [action] = task["result"]["structuredContent"]["response"]["actions"]
    return action["outcome"]


async def test_a_failed_task_completes_with_an_error(tmp_path):
    async with serving(tmp_path, ContextTooLong("too much was said")) as served:
        failed = await use(served, "ha_agent_ask", {"message": "hi"}, tasks=False)
        task = await settled(served, failed["structuredContent"]["continuation_id"])
        assert task["result"]["structuredContent"] == failed["structuredContent"]
        assert (task["status"], task["result"]["isError"]) == ("completed", True)
        assert task["statusMessage"] == "too much was said"


async def test_an_interrupted_task_asks_whether_to_continue(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model, timeouts={"drain_s": 0.0}) as served:
        created = await use(served, "ha_agent_ask", {"message": "hi"})
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
    async with serving(tmp_path, "Here I am again.") as served:
        named = {"taskId": created["taskId"]}
        task = (await rpc(served, "tasks/get", named))["result"]
        assert task["status"] == "input_required"
        assert "Shall it continue?" in task["inputRequests"]["resume"]["params"]["message"]
        turn = {"continuation_id": created["taskId"]}
        plain = (await use(served, "ha_agent_await_continuation", turn))["structuredContent"]
        assert plain["status"] == "interrupted" and "ha_agent_resume" in plain["to_do"]
        for answer in ({"action": "decline"}, {"action": "accept", "content": {"approved": False}}):
            await rpc(served, "tasks/update", named | {"inputResponses": {"resume": answer}})
            assert (await rpc(served, "tasks/get", named))["result"]["status"] == "input_required"
        yes = {"action": "accept", "content": {"approved": True}}
        await rpc(served, "tasks/update", named | {"inputResponses": {"resume": yes}})
        assert (await settled(served, created["taskId"]))["status"] == "completed"


async def test_only_post_is_served(served):
    for method in ("GET", "DELETE", "PUT"):
        asked = await served.client.request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert asked.status_code == 405
    assert 'method="GET",route="/mcp",status="405"} 1.0' in (await served.client.get("/metrics")).text


async def test_two_servers_live_in_one_process(tmp_path):
    async with (
        serving(tmp_path / "one", "One.") as one,
        serving(tmp_path / "two", "Two.") as two,
        Runtime(MemoryStore()),
    ):
        for served, says in ((one, "One."), (two, "Two.")):
            answer = await use(served, "ha_agent_ask", {"message": "Who?"}, tasks=False)
            assert answer["structuredContent"]["response"]["final_message"] == says
