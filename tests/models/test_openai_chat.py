"""Chat Completions through the official SDK, against a fake server that can break the wire format."""

import asyncio

import pytest

from sash import Runtime
from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    InvalidInput,
    ModelError,
    ModelKeyRefused,
    ModelQuotaReached,
    ModelUnknown,
    ModelUnreachable,
)
from sash.models.openai.model import OPENAI_RESERVED_OPTIONS, OpenAIModel
from sash.ports.model import ModelRequest, Usage, collect
from sash.ports.tools import ToolSpec
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.values.sessions import ModelConfig
from tests.models.wire import Reply, Wire, chunk, failed, said, usage

WAIT_S = 30
HI = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}


async def answer(wire, request=None, **options):
    options = {"timeout_s": 5, "retries": 0, "api_key": "sk-test", "base_url": f"{wire.url}/v1"} | options
    model = OpenAIModel("m", **options)
    try:
        return await asyncio.wait_for(
            collect(model.stream(request or ModelRequest(HI)), lambda text: None), WAIT_S
        )
    finally:
        await model.close()


async def test_text_is_streamed_and_usage_is_counted():
    seen = []
    async with Wire(
        Reply(chunks=[chunk("Hel"), chunk("lo"), chunk(finish="stop"), usage(100, 10, 64, 4)])
    ) as wire:
        model = OpenAIModel("m", api_key="sk-test", base_url=f"{wire.url}/v1")
        result = await collect(model.stream(ModelRequest(HI)), seen.append)
        await model.close()
    assert seen == ["Hel", "Hello"]
    assert (result.content, result.stop_reason) == ("Hello", "stop")
    assert result.usage == Usage(100, 10, 64, 4, "m")
    [asked] = wire.requests
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", "Bearer sk-test")
    assert asked.body == {
        "model": "m",
        "messages": HI,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_fragments_of_tool_calls_are_joined():
    def part(index, **function):
        call_id = {"id": f"call_{index}"} if "name" in function else {}
        return [{"index": index, **call_id, "function": function}]

    chunks = [
        chunk(calls=part(0, name="look", arguments="")),
        *(chunk(calls=part(0, arguments=letter)) for letter in '{"room": "hall"}'),
        chunk(calls=part(1, name="look", arguments='{"room"')),
        chunk(calls=part(1, arguments=': "bath"}')),
        chunk(finish="tool_calls"),
    ]
    async with Wire(Reply(chunks=chunks)) as wire:
        result = await answer(wire, ModelRequest(HI, [TOOL]))
    assert [(c["id"], c["function"]["arguments"]) for c in result.tool_calls] == [
        ("call_0", '{"room": "hall"}'),
        ("call_1", '{"room": "bath"}'),
    ]
    assert wire.requests[0].body["tools"] == [TOOL]


async def test_reasoning_is_separate_from_text():
    chunks = [
        chunk(delta={"reasoning_content": "hm"}),
        chunk(delta={"reasoning": "m"}),
        chunk("yes"),
        chunk(finish="stop"),
    ]
    async with Wire(Reply(chunks=chunks)) as wire:
        result = await answer(wire)
    assert (result.reasoning, result.content) == ("hmm", "yes")


async def test_settings_of_the_session_are_sent():
    config = ModelConfig("other", temperature=0.5, max_output_tokens=50, options={"seed": 7})
    async with Wire(said("ok")) as wire:
        await answer(wire, ModelRequest(HI, [], config))
    body = wire.requests[0].body
    assert {key: body[key] for key in ("model", "temperature", "max_completion_tokens", "seed")} == {
        "model": "other",
        "temperature": 0.5,
        "max_completion_tokens": 50,
        "seed": 7,
    }


async def test_azure_gets_its_own_url_and_headers():
    async with Wire(said("ok")) as wire:
        azure = {"azure_endpoint": wire.url, "azure_deployment": "home", "api_version": "2026-01-01"}
        assert (await answer(wire, base_url=None, **azure)).content == "ok"
    [asked] = wire.requests
    assert asked.path == "/openai/deployments/home/chat/completions?api-version=2026-01-01"
    assert asked.headers["api-key"] == "sk-test"


async def test_a_busy_server_is_asked_again_after_the_time_it_names():
    replies = (failed(429, **{"retry-after-ms": "1"}), failed(500, **{"retry-after-ms": "1"}), said("ok"))
    async with Wire(*replies) as wire:
        assert (await answer(wire, retries=2)).content == "ok"
        assert len(wire.requests) == 3


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (failed(401), ModelKeyRefused, "api_key"),
        (failed(403), ModelKeyRefused, "api_key"),
        (failed(404), ModelUnknown, "its name"),
        (failed(429), ModelQuotaReached, "too many requests"),
        (failed(429, "insufficient_quota"), ModelQuotaReached, "billing"),
        (failed(400, "context_length_exceeded"), ContextTooLong, "max_tokens"),
        (failed(400, "content_filter"), ContentFiltered, "content filter"),
        (failed(400, "other", "bad field"), ModelError, "HTTP 400: bad field$"),
        (Reply(400, body={"detail": "bad field"}), ModelError, "HTTP 400: .*bad field"),
        (failed(500), ModelError, "HTTP 500"),
        (Reply(chunks=[chunk("so"), chunk(finish="content_filter")]), ContentFiltered, "stopped"),
        (Reply(chunks=[chunk("so"), "{not json"]), ModelUnreachable, "cut off"),
        (Reply(chunks=[chunk("so"), {"error": {"message": "overloaded"}}]), ModelError, "overloaded"),
        (Reply(chunks=[chunk("so")], then="cut"), ModelUnreachable, "cut off"),
        (Reply(chunks=[chunk("so")]), ModelUnreachable, "cut off"),
        (Reply(chunks=[]), ModelUnreachable, "cut off"),
    ],
)
async def test_errors_name_the_cause_and_the_remedy(reply, error, says):
    async with Wire(reply) as wire:
        with pytest.raises(error, match=says) as raised:
            await answer(wire)
    assert "sk-test" not in raised.value.message


async def test_a_silent_server_times_out():
    async with Wire(Reply(chunks=[chunk("so")], then="hang")) as wire:
        with pytest.raises(ModelUnreachable):
            await answer(wire, timeout_s=0.2)


async def test_an_unreachable_server_is_reported():
    async with Wire() as wire:
        pass
    with pytest.raises(ModelUnreachable, match="network"):
        await answer(wire)


async def test_the_key_is_not_in_the_repr():
    assert "sk-test" not in repr(OpenAIModel("m", api_key="sk-test"))


@pytest.mark.parametrize("status", [400, 500, 503])
async def test_a_key_that_the_server_repeats_is_not_in_the_error(status):
    async with Wire(failed(status, message="wrong: plain-key-of-a-server")) as wire:
        model = OpenAIModel("m", base_url=f"{wire.url}/v1", api_key="plain-key-of-a-server", retries=0)
        asked = model.stream(ModelRequest([{"role": "user", "content": "hi"}]))
        for attempt in (anext(asked), model.list_models()):
            with pytest.raises(ModelError) as raised:
                await attempt
            assert "plain-key-of-a-server" not in f"{raised.value} {raised.value!r} {raised.value.args}"
        await model.close()


async def test_a_turn_that_was_cut_off_resumes_without_repeating_finished_calls(tmp_path):
    made = []

    async def look(arguments, context):
        made.append(context.call_id)
        return "fine"

    call = chunk(calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}])
    replies = (
        Reply(chunks=[call, chunk(finish="tool_calls")]),
        *[Reply(chunks=[chunk("All is ")], then="cut")] * 2,
        said("All is well."),
    )
    tools = [ToolSpec("look", "Look.", {"type": "object"}, look)]
    async with Wire(*replies) as wire:
        model = OpenAIModel("m", api_key="sk-test", base_url=f"{wire.url}/v1", retries=0)
        async with Runtime(SqliteStore(tmp_path / "sash.db"), model, tools) as runtime:
            session = await runtime.start_session()
            sent = await runtime.send_message(session.id, "how is it?")
            cut_off = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
            assert cut_off.status == "interrupted"
            assert cut_off.steps[-1].detail["code"] == "model_unreachable"
            assert await runtime.store.messages("local", session.id) == []
            await runtime.resume(sent.id)
            result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
            assert made == ["c1"]
            assert result.response.final_message == "All is well."
        assert not model.is_connected, "a closed runtime keeps no connection"


async def test_a_turn_is_billed_at_the_price_of_the_model_that_answered(tmp_path):
    counted = usage(1_000_000, 100_000, 400_000) | {"model": "gpt-4o-mini-2024-07-18"}
    async with Wire(Reply(chunks=[chunk("Hello."), chunk(finish="stop"), counted])) as wire:
        model = OpenAIModel("my-deployment", api_key="sk-test", base_url=f"{wire.url}/v1")
        async with Runtime(SqliteStore(tmp_path / "sash.db"), model) as runtime:
            session = await runtime.start_session()
            sent = await runtime.send_message(session.id, "hi")
            result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
            bill = result.steps[-1].detail["usage"]
            assert bill["model"] == "gpt-4o-mini-2024-07-18"
            assert bill["cost_usd"] == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.6)
            assert (await runtime.statistics())["cached_share"] == 0.4


def called(*calls):
    """A chunk with tool calls that have any of index, id, name and arguments."""
    return chunk(
        calls=[
            {k: v for k, v in call.items() if k in ("index", "id")}
            | {"function": {k: v for k, v in call.items() if k in ("name", "arguments")}}
            for call in calls
        ]
    )


@pytest.mark.parametrize(
    "chunks",
    [
        [
            called(
                {"index": 0, "id": "1", "name": "a", "arguments": "{}"},
                {"index": 0, "id": "2", "name": "b", "arguments": "{}"},
            )
        ],
        [called({"id": "1", "name": "a", "arguments": "{}"}, {"id": "2", "name": "b", "arguments": "{}"})],
        [
            called({"id": "1", "name": "a", "arguments": "{}"}),
            called({"id": "2", "name": "b", "arguments": "{}"}),
        ],
        [
            called({"index": 0, "id": "1", "name": "a", "arguments": "{"}),
            called({"index": 0, "id": "1", "name": "a", "arguments": "}"}),
            called({"index": 1, "id": "2", "name": "b", "arguments": {}}),
        ],
    ],
)
async def test_tool_calls_of_odd_servers_stay_separate(chunks):
    async with Wire(Reply(chunks=[*chunks, chunk(finish="tool_calls")])) as wire:
        model = OpenAIModel("m", api_key="k", base_url=f"{wire.url}/v1")
        answer = await collect(model.stream(ModelRequest(HI)), lambda text: None)
        await model.close()
    made = [(c["id"], c["function"]["name"], c["function"]["arguments"] or "{}") for c in answer.tool_calls]
    assert made == [("1", "a", "{}"), ("2", "b", "{}")]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (
            Reply(400, body=[{"error": {"code": 400, "message": "API key not valid. Please pass one."}}]),
            "model_key_refused",
        ),
        (failed(400, message="This model's maximum context length is 8192 tokens"), "context_too_long"),
        (failed(402, message="pay first"), "model_quota_reached"),
        (Reply(200, body={"choices": []}), "model_error"),
    ],
)
async def test_errors_of_other_providers_are_recognised(reply, code):
    async with Wire(reply) as wire:
        model = OpenAIModel("m", api_key="k", base_url=f"{wire.url}/v1", retries=0)
        with pytest.raises(ModelError) as error:
            await collect(model.stream(ModelRequest(HI)), lambda text: None)
        await model.close()
    assert error.value.code == code


async def test_a_key_that_cannot_be_sent_is_reported():
    async with Wire(said("x")) as wire:
        model = OpenAIModel("m", api_key="ключ", base_url=f"{wire.url}/v1", retries=0)
        with pytest.raises(ModelError, match="the request to model m failed"):
            await collect(model.stream(ModelRequest(HI)), lambda text: None)
        await model.close()


@pytest.mark.parametrize(
    "options",
    [
        {"retries": -1},
        {"timeout_s": float("nan")},
        {"timeout_s": 0},
        {"azure_endpoint": "https://x"},
        {"model": ""},
    ],
)
def test_impossible_parameters_are_refused(options):
    with pytest.raises(InvalidInput):
        OpenAIModel(**{"model": "m"} | options)


async def test_text_in_parts_is_joined():
    async with Wire(Reply(chunks=[chunk([{"type": "text", "text": "Hi"}]), chunk(finish="stop")])) as wire:
        model = OpenAIModel("m", api_key="k", base_url=f"{wire.url}/v1")
        answer = await collect(model.stream(ModelRequest(HI)), lambda text: None)
        await model.close()
    assert answer.content == "Hi"


async def test_options_go_into_the_body():
    async with Wire(said("ok")) as wire:
        config = ModelConfig(options={"seed": 7, "reasoning_effort": "low", "made_up": 1})
        await answer(wire, ModelRequest([{"role": "user", "content": "hi"}], config=config))
        sent = wire.requests[0].body
        assert (sent["seed"], sent["reasoning_effort"], sent["made_up"]) == (7, "low", 1)


async def test_a_schema_for_the_answer_reaches_the_server_from_a_session():
    schema = {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "task", "schema": schema, "strict": True}}
    options = {"response_format": wanted, "reasoning_effort": "low"}
    async with (
        Wire(said('{"password": "x"}')) as wire,
        Runtime(MemoryStore(), OpenAIModel("m", api_key="k", base_url=f"{wire.url}/v1")) as runtime,
    ):
        session = await runtime.start_session(model=ModelConfig(options={"reasoning_effort": "low"}))
        sent = await runtime.send_message(
            session.id, "make one", model=ModelConfig(options={"response_format": wanted})
        )
        result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
        assert result.status == "completed"
        body = wire.requests[0].body
        assert {name: body[name] for name in options} == options


@pytest.mark.parametrize("name", sorted(OPENAI_RESERVED_OPTIONS))
async def test_reserved_options_are_refused_before_anything_is_stored(name):
    async with Runtime(MemoryStore(), OpenAIModel("m")) as runtime:
        with pytest.raises(InvalidInput, match=name):
            await runtime.start_session(model=ModelConfig(options={name: {}}))
        assert not (await runtime.list_sessions()).items


async def test_a_session_with_reserved_options_of_another_model_reaches_no_server():
    async with Wire(said("ok")) as wire:
        config = ModelConfig(options={"extra_body": {"messages": []}})
        with pytest.raises(InvalidInput, match="extra_body"):
            await answer(wire, ModelRequest(HI, config=config))
        assert wire.requests == []


async def test_the_models_of_a_server_are_listed():
    body = {"object": "list", "data": [{"id": name, "object": "model"} for name in ("b", "a", "b")]}
    async with Wire(Reply(body=body)) as wire:
        model = OpenAIModel("m", api_key="k", base_url=f"{wire.url}/v1", retries=0)
        assert await model.list_models() == ["a", "b"]
        await model.close()
    (asked,) = wire.requests
    assert asked.path == "/v1/models" and asked.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (failed(401), ModelKeyRefused),
        (failed(404), ModelUnknown),
        (Reply(body="<html>"), ModelError),
        (Reply(body={"data": None}), ModelError),
        (Reply(body={"data": ["a"]}), ModelError),
    ],
)
async def test_a_server_without_a_list_of_models_is_an_error(reply, error):
    async with Wire(reply) as wire:
        model = OpenAIModel("m", base_url=f"{wire.url}/v1", retries=0)
        with pytest.raises(error):
            await model.list_models()
        await model.close()
