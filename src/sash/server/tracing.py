"""OpenTelemetry spans of turns and their calls.

The spans of a turn are derived from its journal when the turn ends. So the turn loop contains no tracing.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import InvalidConfig
from sash.values.steps import Plan, Step, ToolCall, ToolResult

SERVICE_NAME = "sash"
EXPORT_TIMEOUT_S = 2.0


class Tracing:
    """Exports spans to an OTLP endpoint. The exporter gives up on a batch after `timeout_s`."""

    def __init__(self, endpoint: str, *, timeout_s: float = EXPORT_TIMEOUT_S) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise InvalidConfig(
                f"tracing needs more packages: pip install 'sash[otel]' ({error})", option="otel_endpoint"
            ) from error
        self._provider = TracerProvider(resource=Resource.create({"service.name": SERVICE_NAME}))
        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces", timeout=timeout_s)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer: Any = self._provider.get_tracer(SERVICE_NAME)

    def close(self) -> None:
        """Export the remaining spans and stop the exporter."""
        self._provider.shutdown()

    def trace_turn(self, result: ContinuationResult) -> None:
        """Create the spans of a finished turn, under the span of the request that sent it, if any."""
        from opentelemetry import trace
        from opentelemetry.trace import Status, StatusCode

        turn = result.continuation
        span = self.tracer.start_span(
            "sash.turn",
            start_time=_to_nanoseconds(turn.created_at),
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
        context = trace.set_span_in_context(span)
        for name, started_at, ended_at in _find_calls(turn.created_at, result.steps):
            call = self.tracer.start_span(name, context, start_time=_to_nanoseconds(started_at))
            call.end(_to_nanoseconds(ended_at))
        span.end(_to_nanoseconds(turn.updated_at))


def _find_calls(
    turn_started_at: datetime, steps: tuple[Step, ...]
) -> Iterator[tuple[str, datetime, datetime]]:
    """Yield the name, start and end of each model call and tool call among the steps."""
    previous_at, called_at = turn_started_at, {}
    for step in steps:
        match step.body:
            case Plan():
                yield "sash.model_call", previous_at, step.ts
            case ToolCall(call_id=call_id):
                called_at[call_id] = step.ts
            case ToolResult(call_id=call_id, name=name):
                yield f"sash.tool {name}".rstrip(), called_at.pop(call_id, previous_at), step.ts
        previous_at = step.ts


def _to_nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)
