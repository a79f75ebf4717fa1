"""OpenTelemetry spans of requests, turns and calls, sent to a real OTLP endpoint."""

import asyncio
from contextlib import asynccontextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sash.server.tracing import Tracing
from sash.testing import calling
from tests.surfaces.serving import serving
from tests.tools import tool


@asynccontextmanager
async def collector():
    """Run an OTLP endpoint. Yield its address and the received spans."""
    spans = []

    async def collect(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        sent = ExportTraceServiceRequest.FromString(await reader.readexactly(length))
        assert head.startswith("post /v1/traces ")
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                spans.extend(scope.spans)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(collect, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", spans


async def test_a_turn_has_spans_for_its_calls_below_the_request(tmp_path):
    look = tool("look", lambda a, c: "fine")
    async with collector() as (endpoint, spans):
        tracing = Tracing(endpoint)
        async with serving(
            tmp_path,
            calling("look"),
            "All is well.",
            tools=[look],
            tracing=tracing,
            on_turn=tracing.trace_turn,
        ) as served:
            await served.wait(await served.send(await served.start(), "the secret is 4711"))
        await asyncio.to_thread(tracing.close)
        named = {span.name: span for span in spans}
        turn = named["sash.turn"]
        assert turn.parent_span_id == named["POST /v1/sessions/{session_id}/messages"].span_id
        for call in ("sash.model_call", "sash.tool look"):
            assert named[call].parent_span_id == turn.span_id
            assert (
                turn.start_time_unix_nano
                <= named[call].start_time_unix_nano
                <= named[call].end_time_unix_nano
            )
        attributes = {a.key: a.value.string_value or a.value.int_value for a in turn.attributes}
        assert attributes["sash.status"] == "completed"
        assert "4711" not in str(spans)


async def test_the_span_of_an_error_contains_no_message(tmp_path, monkeypatch):
    async with collector() as (endpoint, spans):
        tracing = Tracing(endpoint)
        async with serving(tmp_path, tracing=tracing) as served:

            async def broken(*args, **options):
                raise RuntimeError("the driver said: the password is 4711")

            monkeypatch.setattr(served.runtime.store, "list_sessions", broken)
            assert (await served.client.get("/v1/sessions")).status_code == 500
        await asyncio.to_thread(tracing.close)
        [span] = spans
        assert span.status.code == span.status.STATUS_CODE_ERROR
        assert "4711" not in str(spans), spans


async def test_a_collector_that_never_answers_does_not_delay_the_shutdown(tmp_path):
    hung: set[asyncio.StreamWriter] = set()
    async with await asyncio.start_server(lambda _, writer: hung.add(writer), "127.0.0.1", 0) as silent:
        tracing = Tracing(f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}", timeout_s=0.1)
        async with serving(tmp_path, tracing=tracing) as served:
            await served.client.get("/health")
        await asyncio.wait_for(asyncio.to_thread(tracing.close), 5)
        assert hung
        for writer in hung:
            writer.close()


async def test_the_trace_of_the_caller_continues(tmp_path):
    async with collector() as (endpoint, spans):
        tracing = Tracing(endpoint)
        async with serving(tmp_path, tracing=tracing) as served:
            parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
            await served.client.get("/health", headers=parent)
        await asyncio.to_thread(tracing.close)
        [span] = [span for span in spans if span.name == "GET /health"]
        assert span.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
