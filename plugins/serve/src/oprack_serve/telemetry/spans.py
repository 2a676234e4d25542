"""Traces by OpenTelemetry: a span for each request, below the client's own, and one below it for each stage.

Spans are made when a request has been answered, of times that are taken anyway, and sent by a thread. The standard's
environment variables hold, such as OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

import os
import time
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PATH = "/v1/traces"


class Spans:
    """Sends the spans of requests to a collector.

    Args:
        url: Of the collector, for OTLP over HTTP: "http://127.0.0.1:4318".
        version: Of the server.
    """

    def __init__(self, url: str, version: str) -> None:
        name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "oprack-serve"}
        self._provider = TracerProvider(resource=Resource.create(name | {"service.version": version}))
        endpoint = url if url.endswith(PATH) else url.rstrip("/") + PATH
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._tracer = self._provider.get_tracer("oprack_serve", version)
        self._propagator = TraceContextTextMapPropagator()

    def record(self, call: Any, status: int, error: str) -> None:
        """Make the spans of a request, a Call of oprack_serve.infer, that has been answered, if it is sampled."""
        now = time.monotonic()
        offset = time.time() - now

        def ns(moment: float) -> int:
            return round((moment + offset) * 1e9)

        parent = self._propagator.extract(call.trace_context())
        name = call.model.name if call.model else ""
        span = self._tracer.start_span(
            f"infer {name}".strip(), parent, trace.SpanKind.SERVER, start_time=ns(call.started)
        )
        if span.is_recording():
            span.set_attributes(_attributes(call, status))
            if status >= 500:
                span.set_status(trace.StatusCode.ERROR, error[:200])
            below = trace.set_span_in_context(span)
            for stage, (start, end) in call.stages().items():
                self._tracer.start_span(stage, below, start_time=ns(start)).end(ns(end))
        span.end(ns(now))

    def close(self) -> None:
        """Send what there is."""
        self._provider.shutdown()


def _attributes(call: Any, status: int) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {
        "rpc.system": "grpc" if call.protocol == "grpc" else "http",
        "http.response.status_code": status,
        "oprack.bytes_in": call.bytes_in,
    }
    if call.model is not None:
        found |= {"oprack.model.name": call.model.name, "oprack.model.version": call.model.version}
    if call.decoded is not None and call.decoded.id:
        found["oprack.request.id"] = call.decoded.id
    if call.job is not None and call.job.batch[0]:
        number, requests, entries = call.job.batch
        found |= {"oprack.batch.number": number, "oprack.batch.requests": requests, "oprack.batch.entries": entries}
        found["oprack.predictor_ms"] = call.job.run_ms
    return found
