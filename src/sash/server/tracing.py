"""OpenTelemetry spans: one for each request, and one for each turn with its calls.

The journal is the truth: a turn's spans are read off its steps when it is over, so that nothing is measured
twice and the loop knows nothing of it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.engine.worker import ContinuationResult
from sash.errors import InvalidConfig
from sash.values.steps import Step

SERVICE = "sash"
# How long a collector may take for what it is sent, and for the last of it when the server stops.
SEND_S = 2


class Tracing:
    """Sends spans to an OTLP endpoint, or to an exporter that is given."""

    def __init__(self, endpoint: str, exporter: Any = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise InvalidConfig(
                f"spans need more packages: pip install 'sash[otel]' ({error})", option="otel_endpoint"
            ) from error
        self._provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
        exporter = exporter or OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces", timeout=SEND_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self._provider.get_tracer(SERVICE)

    def close(self) -> None:
        """Send what is still to be sent."""
        self._provider.shutdown()

    def trace_turn(self, result: ContinuationResult) -> None:
        """Make the spans of a turn that is over; the request that sent it, if it did, is their parent."""
        from opentelemetry import trace
        from opentelemetry.trace import Status, StatusCode

        turn = result.continuation
        span = self.tracer.start_span(
            "sash.turn",
            start_time=_nanoseconds(turn.created_at),
            attributes={
                "sash.session_id": turn.session_id,
                "sash.continuation_id": turn.id,
                "sash.status": turn.status,
            },
        )
        if turn.stats is not None:
            span.set_attribute("gen_ai.usage.input_tokens", turn.stats.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", turn.stats.output_tokens)
        if turn.error is not None:
            span.set_status(Status(StatusCode.ERROR, turn.error.code))
        within = trace.set_span_in_context(span)
        for name, start, end in _calls(turn.created_at, result.steps):
            call = self.tracer.start_span(name, within, start_time=_nanoseconds(start))
            call.end(_nanoseconds(end))
        span.end(_nanoseconds(turn.updated_at))


class Traced:
    """Makes a span of each request that passes."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self._app = app
        self._tracer = tracing.tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            f"HTTP {scope['method']}",
            extract(headers),
            kind=SpanKind.SERVER,
            record_exception=False,  # Its words may have a secret in them.
            set_status_on_exception=False,
        ) as span:
            span.set_attribute("http.request.method", scope["method"])

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    route = getattr(scope.get("route"), "path", None)
                    if route is not None:
                        span.set_attribute("http.route", route)
                        span.update_name(f"{scope['method']} {route}")
                await send(message)

            try:
                await self._app(scope, receive, sending)
            except Exception as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise


def _calls(began: datetime, steps: tuple[Step, ...]) -> Iterator[tuple[str, datetime, datetime]]:
    """Give the calls of models and tools: what, from when, until when."""
    since, called = began, {}
    for step in steps:
        if step.type == "plan":
            yield "sash.model_call", since, step.ts
        elif step.type == "tool_call":
            called[step.detail.get("call_id")] = step.ts
        elif step.type == "tool_result":
            start = called.pop(step.detail.get("call_id"), since)
            yield f"sash.tool {step.detail.get('name', '')}".rstrip(), start, step.ts
        since = step.ts


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000_000)
