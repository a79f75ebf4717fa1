"""The Responses API through the official SDK, against a fake server that can break the wire format."""

import asyncio

import pytest

from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    ModelError,
    ModelKeyRefused,
    ModelQuotaReached,
    ModelUnreachable,
)
from sash.models.openai.model import OpenAIModel
from sash.ports.model import ModelRequest, Usage, collect
from sash.values.sessions import ModelConfig
from tests.models.wire import Reply, Wire, failed

WAIT_S = 30
HI = [{"role": "user", "content": "hi"}]


def event(kind, **fields):
    return {"type": f"response.{kind}", "sequence_number": 0, **fields}


def text(delta):
    return event("output_text.delta", delta=delta, item_id="i", output_index=0, content_index=0, logprobs=[])


def response(status="completed", **fields):
    counts = {
        "input_tokens": 100,
        "output_tokens": 10,
        "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 64},
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    whole = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": status}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": counts}
    return event(status, response=whole | rest | fields)


async def answer(wire, request=None, on_text=lambda text: None):
    options = {"api_key": "sk-test", "base_url": f"{wire.url}/v1", "timeout_s": 5, "retries": 0}
    model = OpenAIModel("m", mode="responses", **options)
    try:
        return await asyncio.wait_for(collect(model.stream(request or ModelRequest(HI)), on_text), WAIT_S)
    finally:
        await model.close()


async def test_text_and_reasoning_are_streamed_and_usage_is_counted():
    thought = event("reasoning_summary_text.delta", delta="hm", item_id="i", output_index=0, summary_index=0)
    seen = []
    async with Wire(Reply(chunks=[thought, text("Hel"), text("lo"), response()])) as wire:
        result = await answer(wire, on_text=seen.append)
    assert seen == ["Hel", "Hello"]
    assert (result.content, result.reasoning, result.stop_reason) == ("Hello", "hm", "stop")
    assert result.usage == Usage(100, 10, 64, 4, "m")
    [asked] = wire.requests
    assert asked.path == "/v1/responses"
    assert asked.body == {"model": "m", "input": HI, "stream": True, "store": False}


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "task", "schema": SCHEMA, "strict": True},
                }
            },
            {"text": {"format": {"type": "json_schema", "name": "task", "schema": SCHEMA, "strict": True}}},
        ),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        (
            {"reasoning_effort": "low", "reasoning": {"summary": "auto"}},
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        (
            {"reasoning_effort": "low", "reasoning": {"effort": "high"}},
            {"reasoning": {"effort": "high"}},
        ),
        (
            {"verbosity": "low", "response_format": {"type": "text"}},
            {"text": {"verbosity": "low", "format": {"type": "text"}}},
        ),
        ({"reasoning_effort": None, "response_format": None}, {}),
        (
            {"text": {"format": {"type": "text"}}, "seed": 7},
            {"text": {"format": {"type": "text"}}, "seed": 7},
        ),
    ],
)
async def test_options_of_chat_completions_are_sent_under_their_names_here(options, sent):
    async with Wire(Reply(chunks=[text("{}"), response()])) as wire:
        await answer(wire, ModelRequest(HI, config=ModelConfig(options=options)))
    [asked] = wire.requests
    assert asked.body == {"model": "m", "input": HI, "stream": True, "store": False, **sent}


async def test_tool_calls_and_their_results_are_items():
    def added(index, name):
        item = {
            "type": "function_call",
            "id": f"f{index}",
            "call_id": f"c{index}",
            "name": name,
            "arguments": "",
        }
        return event("output_item.added", item=item, output_index=index)

    def part(index, delta):
        return event("function_call_arguments.delta", delta=delta, item_id=f"f{index}", output_index=index)

    chunks = [
        added(0, "look"),
        *(part(0, letter) for letter in '{"a": 1}'),
        added(1, "see"),
        part(1, "{}"),
        response(),
    ]
    said = [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c9", "name": "look", "content": "fine"},
    ]
    tool = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    async with Wire(Reply(chunks=chunks)) as wire:
        result = await answer(wire, ModelRequest(said, [{"type": "function", "function": tool}]))
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in result.tool_calls]
    assert calls == [("c0", "look", '{"a": 1}'), ("c1", "see", "{}")]
    body = wire.requests[0].body
    assert body["tools"] == [{"type": "function", **tool}]
    assert body["input"] == [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": "u", "detail": "auto"},
            ],
        },
        {"type": "function_call", "call_id": "c9", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "fine"},
    ]


async def test_an_answer_that_reached_the_token_limit_stops_with_length():
    async with Wire(
        Reply(chunks=[text("so"), response("incomplete", incomplete_details={"reason": "max_output_tokens"})])
    ) as wire:
        assert (await answer(wire)).stop_reason == "length"


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (failed(401), ModelKeyRefused, "api_key"),
        (
            Reply(
                chunks=[text("so"), response("incomplete", incomplete_details={"reason": "content_filter"})]
            ),
            ContentFiltered,
            "stopped",
        ),
        (
            Reply(chunks=[response("failed", error={"code": "server_error", "message": "overloaded"})]),
            ModelError,
            "overloaded",
        ),
        (
            Reply(
                chunks=[{"type": "error", "code": "x", "message": "no", "param": None, "sequence_number": 0}]
            ),
            ModelError,
            "no",
        ),
        (Reply(chunks=[text("so"), "{not json"]), ModelUnreachable, "cut off"),
        (Reply(chunks=[text("so")], then="cut"), ModelUnreachable, "cut off"),
        (Reply(chunks=[text("so")]), ModelUnreachable, "cut off"),
    ],
)
async def test_errors_name_the_cause_and_the_remedy(reply, error, says):
    async with Wire(reply) as wire:
        with pytest.raises(error, match=says):
            await answer(wire)


async def test_a_complete_tool_call_replaces_its_fragments():
    item = {
        "type": "function_call",
        "id": "f",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"room": "attic"}',
    }
    begun = event("output_item.added", output_index=0, item=item | {"arguments": ""})
    piece = event("function_call_arguments.delta", delta='{"room": "att', item_id="f", output_index=0)
    done = event("output_item.done", output_index=0, item=item)
    for chunks in ([done], [begun, done], [begun, piece, done]):
        async with Wire(Reply(chunks=[*chunks, response()])) as wire:
            result = await answer(wire)
        [call] = result.tool_calls
        assert (call["id"], call["function"]) == ("c1", {"name": "look", "arguments": '{"room": "attic"}'})


async def test_usage_without_details_is_counted():
    counts = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    async with Wire(Reply(chunks=[text("Hi"), response(usage=counts)])) as wire:
        assert (await answer(wire)).usage == Usage(5, 2, model="m")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", ContextTooLong),
        ("rate_limit_exceeded", ModelQuotaReached),
        ("odd", ModelError),
    ],
)
async def test_an_error_event_in_the_stream_is_recognised(code, kind):
    failed_event = {"type": "error", "code": code, "message": "no", "param": None, "sequence_number": 1}
    async with Wire(Reply(chunks=[failed_event])) as wire:
        with pytest.raises(kind):
            await answer(wire)


async def test_options_of_chat_completions_get_the_names_of_this_api():
    schema = {"type": "object", "properties": {"n": {"type": "number"}}}
    form = {"type": "json_schema", "json_schema": {"name": "count", "schema": schema, "strict": True}}
    config = ModelConfig(options={"reasoning_effort": "low", "response_format": form, "seed": 7})
    async with Wire(Reply(chunks=[text("{}"), response()])) as wire:
        await answer(wire, ModelRequest(HI, config=config))
    sent = wire.requests[0].body
    assert (sent["reasoning"], sent["seed"]) == ({"effort": "low"}, 7)
    assert sent["text"] == {
        "format": {"type": "json_schema", "name": "count", "schema": schema, "strict": True}
    }
    assert not {"reasoning_effort", "response_format"} & sent.keys()
