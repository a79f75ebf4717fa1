"""MCP by the official client: over HTTP and over standard input and output, in both eras of the protocol."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from jsonschema import ValidationError, validate
from mcp import Client, MCPError

from sash import Runtime
from sash.app.settings import Settings
from sash.models.registry import create_model
from sash.stores.memory import MemoryStore
from sash.testing import calling
from tests.models.wire import Reply, Wire, chunk, said
from tests.surfaces.promises import promise
from tests.surfaces.serving import WAIT_S, serving
from tests.surfaces.speaking import ERAS, call, eras, program, refused, talking, use
from tests.tools import tool


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


@pytest.fixture
async def wire():
    """A model provider that answers, hangs twice, then answers."""
    hanging = Reply(chunks=[chunk("Let me")], then="hang")
    async with Wire(said("Voltage dips."), hanging, hanging, said("Here is the plan.")) as wire:
        yield wire


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
        [guide] = (await mcp.read_resource("sash://guide")).contents
    names = [one.name for one in listed]
    assert [name for name in names if f"`{name}`" not in guide.text] == []
    assert names[0] == "ha_agent_list_sessions" and listed[0].annotations.read_only_hint
    assert set(names) == {
        *(f"ha_agent_{verb}" for verb in ("ask", "start_session", "send_message", "await_continuation")),
        *(f"ha_agent_{verb}" for verb in ("cancel", "get_session", "end_session", "resume", "retry")),
        *(f"ha_agent_{verb}" for verb in ("list_sessions", "approve", "update_session")),
        *(f"ha_agent_{verb}" for verb in ("fork_session", "delete_session", "reset_session")),
        *(f"ha_agent_{verb}" for verb in ("list_messages", "tag_message")),
        *(f"ha_agent_{verb}" for verb in ("list_waiting", "cancel_waiting")),
        *(f"ha_agent_{verb}" for verb in ("list_facts", "remember", "forget")),
        *(f"ha_agent_{verb}" for verb in ("list_pins", "pin", "unpin", "get_preferences", "set_preferences")),
        *(
            "analyze_history",
            "list_services",
            "query_service",
            "search_index",
            "get_states",
            "get_history",
            "get_logbook",
            "diagnose_entity",
            "analyze_errors",
        ),
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
        retried = await check("ha_agent_retry", **named)
        # The session must not be busy with it later.
        await check("ha_agent_cancel", continuation_id=retried["continuation_id"])
        shown = await check("ha_agent_get_session", session_id=session_id)
        assert shown["session"]["stats"]["durations"]
        await check("ha_agent_update_session", session_id=session_id, name="den")
        [message, *_] = (await check("ha_agent_list_messages", session_id=session_id))["messages"]
        marked = {"message_id": message["id"], "tags": ["important"]}
        await check("ha_agent_tag_message", session_id=session_id, **marked)
        [fact] = (await check("ha_agent_remember", text="The cat is black."))["facts"]
        await check("ha_agent_list_facts")
        waiting = await house.runtime.store.add_waiting_turn(promise(session_id))
        await check("ha_agent_list_waiting")
        await check("ha_agent_cancel_waiting", waiting_id=waiting.id)
        await check("ha_agent_forget", fact_id=fact["id"])
        [pin] = (await check("ha_agent_pin", entity_id=entity_ids[0]))["pins"]
        await check("ha_agent_list_pins")
        await check("ha_agent_unpin", pin_id=pin["id"])
        await check("ha_agent_set_preferences", preferences={"language": "en"})
        await check("ha_agent_get_preferences")
        await check("analyze_history", entity_ids=entity_ids, sql="SELECT entity_id, state FROM states")
        await check("ha_agent_reset_session", session_id=session_id)
        copy = await check("ha_agent_fork_session", session_id=session_id)
        listed = await check("ha_agent_list_sessions", limit=1)
        assert len(listed["sessions"]) == 1 and listed["next_cursor"]
        await check("search_index", query="light")
        weather = {"service": "weather.get_forecasts", "data": {"type": "daily"}}
        await check("list_services", domain="weather")
        await check("query_service", entity_ids=["weather.home"], **weather)
        await check("get_states", entity_ids=[*entity_ids, "light.nowhere"])
        await check("get_history", entity_ids=entity_ids, plot=True, session_id=session_id)
        await check("get_logbook")
        await check("diagnose_entity", entity_id="binary_sensor.bathroom_leak")
        await check("analyze_errors", timeframe="7d")
        await check("ha_agent_end_session", session_id=session_id)
        await check("ha_agent_delete_session", **copy)
    assert set(schemas) == {"ha_agent_approve", "ha_agent_resume"}


@eras
async def test_one_question_ends_its_session_with_the_answer(served, era):
    async with talking(served.url, era) as mcp:
        answer = await call(mcp, "ha_agent_ask", message="How warm is it?")
        assert (answer["status"], answer["response"]["final_message"]) == ("completed", "It is 21.5 °C.")
        assert (await call(mcp, "ha_agent_list_sessions"))["sessions"] == []
        shown = await call(mcp, "ha_agent_get_session", session_id=answer["session_id"])
        assert shown["session"]["status"] == "ended"


async def test_a_refused_question_leaves_no_session_open(served):
    async with talking(served.url, ERAS[1]) as mcp:
        assert await refused(mcp, "ha_agent_ask", message="x" * (1 << 20) + "x") == "message_too_large"
        assert (await call(mcp, "ha_agent_list_sessions", status="active"))["sessions"] == []


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
            "sash://continuations/{continuation_id}/prompts",
            "sash://artifacts/{artifact_id}",
        }

        async def read(uri):
            [contents] = (await mcp.read_resource(uri)).contents
            assert contents.uri == uri
            return json.loads(contents.text)

        asked = await mcp.call_tool("ha_agent_ask", {"message": "Read it all", "keep": True})
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
