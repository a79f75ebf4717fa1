"""Creates an OpenTelemetry span for each request."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.server.tracing import Tracing


class RequestTracing:
    """Wraps each request in a span, a child of the caller's span if the request names one."""

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
            record_exception=False,  # The message of an exception may contain a secret.
            set_status_on_exception=False,
        ) as span:
            span.set_attribute("http.request.method", scope["method"])

            async def send_observed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    route = getattr(scope.get("route"), "path", None)
                    if route is not None:
                        span.set_attribute("http.route", route)
                        span.update_name(f"{scope['method']} {route}")
                await send(message)

            try:
                await self._app(scope, receive, send_observed)
            except Exception as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise
