"""OpenTelemetry traces of both protocols, as a collector gets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import served
from oprack.cli.main import main

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="opentelemetry's exporter is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{'1' * 32}-{PARENT}-00"


class Collector(ThreadingHTTPServer):
    """Keeps the spans that it gets."""

    def __init__(self) -> None:
        self.spans, self.resources = [], []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        import gzip

        data = self.rfile.read(int(self.headers["Content-Length"]))
        data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
        assert self.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            self.server.resources.append({a.key: a.value.string_value for a in resource.resource.attributes})
            self.server.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.serve_forever, daemon=True)
    thread.start()
    yield collector
    collector.shutdown()
    thread.join()
    collector.server_close()


def test_spans_are_below_the_clients_own(models, collector):
    url = f"http://127.0.0.1:{collector.server_port}"
    running = served.Served("--models", str(models), "--poll", "0", "--grpc-port", "0", "--otlp", url)
    x = np.ones([3, 2], np.float32)
    body = {"inputs": [served.row("x", x)], "id": "mine"}
    path = "/v2/models/scaled/versions/1/infer"
    for parent in (SAMPLED, NOT_SAMPLED, "00-zz-no-01"):
        assert running.request("POST", path, served.json.dumps(body), {"traceparent": parent})[0] == 200
    with triton.InferenceServerClient(running.event("listening", after=1)["url"].removeprefix("grpc://")) as client:
        given = triton.InferInput("x", [3, 2], "FP32").set_data_from_numpy(x)
        client.infer("scaled", [given], headers={"traceparent": SAMPLED})
        with pytest.raises(triton.InferenceServerException):
            client.infer("broken", [given], headers={"traceparent": SAMPLED})
    assert running.stop() == 0  # which sends what there is
    roots = [span for span in collector.spans if span.name.startswith("infer")]
    ours = [span for span in roots if span.trace_id.hex() == TRACE]
    assert [span.name for span in ours] == ["infer scaled", "infer scaled", "infer"]
    assert {span.parent_span_id.hex() for span in ours} == {PARENT}
    assert len(roots) == 4 and not any(span.trace_id.hex() == "1" * 32 for span in roots)
    over_http, over_grpc, broken = ({a.key: a.value for a in span.attributes} for span in ours)
    assert over_http["oprack.request.id"].string_value == "mine"
    assert over_http["oprack.model.name"].string_value == "scaled"
    assert over_http["oprack.batch.entries"].int_value == over_grpc["oprack.batch.entries"].int_value == 3
    assert (over_http["rpc.system"].string_value, over_grpc["rpc.system"].string_value) == ("http", "grpc")
    assert broken["http.response.status_code"].int_value == 503 and ours[2].status.code == 2
    for span in ours[:2]:
        stages = [each for each in collector.spans if each.parent_span_id == span.span_id]
        assert {each.name for each in stages} >= {"read", "decode", "queue", "run", "encode"}
        assert all(each.trace_id == span.trace_id for each in stages)
        assert all(span.start_time_unix_nano <= each.start_time_unix_nano + 2000 for each in stages)
        assert all(each.end_time_unix_nano <= span.end_time_unix_nano + 2000 for each in stages)
    assert {resource["service.name"] for resource in collector.resources} == {"oprack-serve"}


def test_what_is_no_url_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "model", "--otlp", "127.0.0.1:4318"])
    assert "expected a URL, such as http://127.0.0.1:4318" in capsys.readouterr().err
