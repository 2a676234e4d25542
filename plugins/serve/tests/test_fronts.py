"""Several fronts: processes that take requests at one port for the same workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.cli.main import main
from oprack_serve.fronts import counts, manager
from oprack_serve.log import JsonLog
from oprack_serve.metrics import ModelMetrics
from oprack_serve.settings import Settings
from served import Served, arrays, row

X = np.array([[1, 2]], np.float32)


def fronts_of(server: Served) -> list[int]:
    """Process ids of the fronts beside the server."""
    found = served.children(server.process.pid)
    return [pid for pid in found if "fronts.front" in Path(f"/proc/{pid}/cmdline").read_text("utf-8")]


def test_fronts_share_workers_models_and_counts(tmp_path):
    """Requests are answered by all of them, by one set of workers, while a model is replaced and a worker is killed."""
    served.save(tmp_path / "models" / "scaled", served.scaled(10.0))
    options = ("--fronts", "3", "--workers", "2", "--poll", "0.1", "--health-port", "0")
    server = Served("--models", str(tmp_path / "models"), *options)
    answers: Counter[object] = Counter()
    done = threading.Event()

    def ask() -> None:
        status, answer = server.infer("scaled", [row("x", X)])
        answers[arrays(answer).popitem()[1][0, 0].item() if status == 200 else status] += 1

    def go_on() -> None:
        while not done.is_set():
            ask()

    threads = [threading.Thread(target=go_on) for _ in range(3)]
    try:
        for _ in range(60):
            ask()
        first = fronts_of(server)
        assert len(first) == 2 and len(server.workers("scaled")) == 2
        health = server.event("listening")["health_url"].removeprefix("http://")
        server.host, server.port = health.split(":")[0], int(health.split(":")[1])
        server.until(lambda: server.metric("oprack_requests_total", status="200") == 60)
        assert server.metric("oprack_stage_seconds_count", stage="run") == 60 and server.metric("oprack_fronts") == 3
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        server.host, server.port = host, int(port)
        for thread in threads:
            thread.start()
        served.save(tmp_path / ".new", served.scaled(30.0))
        (tmp_path / "models" / "scaled").rename(tmp_path / ".old")
        (tmp_path / ".new").rename(tmp_path / "models" / "scaled")
        server.event("model retired")
        os.kill(server.workers("scaled")[0], signal.SIGKILL)
        server.event("worker ended")
        seen = answers[30.0]
        server.until(lambda: answers[30.0] > seen + 30)
    finally:
        done.set()
        for thread in threads:
            if thread.ident:
                thread.join()
    assert set(answers) == {10.0, 30.0}
    # one that is gone is replaced; what came to its socket meanwhile waits for that
    os.kill(first[0], signal.SIGKILL)
    server.event("front ended", pid=first[0])
    for _ in range(20):
        assert server.infer("scaled", [row("x", X)])[0] == 200
    server.until(lambda: len(fronts_of(server)) == 2)
    left = [*fronts_of(server), *server.workers("scaled")]
    assert server.stop() == 0 and server.other == []
    assert not any(os.path.exists(f"/proc/{pid}") for pid in left)


def test_metrics_at_any_front_are_those_of_all(tmp_path):
    served.save(tmp_path / "scaled", served.scaled(10.0))
    server = Served(str(tmp_path / "scaled"), "--name", "scaled", "--fronts", "2", "--poll", "0")
    for _ in range(12):
        assert server.infer("scaled", [row("x", X)])[0] == 200
    server.until(lambda: server.metric("oprack_requests_total", status="200") == 12)
    for _ in range(8):  # each of these is answered by a front of chance
        assert server.metric("oprack_requests_total", status="200") == 12
    # the server that is killed takes them along
    others = fronts_of(server)
    server.stop(signal.SIGKILL)
    server.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in others), 10)


def test_statistics_and_grpc_are_those_of_all_fronts(tmp_path):
    """gRPC is answered by the server; what it counts, and what each front counts over HTTP, is one sum everywhere."""
    triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
    served.save(tmp_path / "scaled", served.scaled(10.0))
    options = ("--fronts", "3", "--grpc-port", "0", "--poll", "0")
    server = Served(str(tmp_path / "scaled"), "--name", "scaled", *options)
    address = next(e["url"] for e in server.events if e.get("url", "").startswith("grpc://")).removeprefix("grpc://")
    for _ in range(12):
        assert server.infer("scaled", [row("x", X)])[0] == 200
    with triton.InferenceServerClient(address) as client:
        given = triton.InferInput("x", [1, 2], "FP32").set_data_from_numpy(X)
        for _ in range(5):
            answer = client.infer("scaled", [given])
            assert answer.as_numpy(answer.get_response().outputs[0].name).tolist() == [[10, 20]]

        def counted() -> list[int]:
            (over_grpc,) = client.get_inference_statistics("scaled").model_stats
            (over_http,) = server.get("/v2/models/scaled/stats")[1]["model_stats"]  # by a front of chance
            return [
                *(over_grpc.inference_count, over_grpc.inference_stats.success.count),
                *(over_http["inference_count"], over_http["inference_stats"]["success"]["count"]),
            ]

        server.until(lambda: counted() == [17] * 4)
        for _ in range(8):
            assert counted() == [17] * 4
    assert server.stop() == 0


@pytest.mark.parametrize("option", ["--allow-pipelines", "--shared-memory"])
def test_what_lives_in_one_process_is_refused_with_several_fronts(tmp_path, capsys, option):
    served.save(tmp_path / "scaled", served.scaled(10.0))
    assert main(["serve", "--models", str(tmp_path), "--port", "0", "--fronts", "2", option])
    assert f"{option} works in one process alone" in capsys.readouterr().err


def test_a_pipeline_in_the_folder_is_none_of_the_fronts_models(tmp_path):
    """Each says the reason, and the models beside it are served by all."""
    served.save(tmp_path / "scaled", served.scaled(10.0))
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "pipeline.toml").write_text("")
    (tmp_path / "words" / "pipeline.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    server = Served("--models", str(tmp_path), "--fronts", "2", "--poll", "0", wait=False)
    server.event("model ready", model="scaled")
    server.until(lambda: server.get("/v2/health/ready")[0] == 200)
    for _ in range(8):
        assert server.infer("scaled", [row("x", X)])[0] == 200
        status, answer = server.infer("words", [row("x", X)])
        assert status == 503 and "--allow-pipelines" in answer["error"], answer
    assert server.stop() == 0 and not (tmp_path / "ran").exists()


def test_a_worker_that_takes_too_much_memory_is_replaced_under_all_fronts(tmp_path):
    served.save(tmp_path / "scaled", served.scaled(10.0))
    options = ("--fronts", "2", "--worker-memory", "64K", "--poll", "0")
    server = Served(str(tmp_path / "scaled"), "--name", "scaled", *options)
    (first,) = server.workers("scaled")

    def replaced() -> bool:
        assert server.infer("scaled", [row("x", X)])[0] == 200
        return first not in server.workers("scaled")

    server.until(replaced)
    server.event("worker outgrown", pid=first)
    assert server.stop() == 0


def test_a_port_that_another_server_has_is_not_shared(tmp_path):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        from oprack_serve.server import _listen_together

        with pytest.raises(OSError, match="in use"):
            _listen_together("127.0.0.1", other.getsockname()[1], 2)


def test_fronts_divide_what_all_may_hold_together():
    one = manager.shares(Settings(fronts=3, max_connections=100, max_queue=10, max_inflight=300, max_body=150))
    assert (one.max_connections, one.max_queue, one.max_inflight) == (34, 4, 150)
    again = Settings.from_json(json.loads(json.dumps(one.to_json())))
    assert again == one
    paths = Settings(models=Path("a"), cache=Path("b"))
    assert Settings.from_json(paths.to_json()) == paths


def test_counts_of_fronts_add_up():
    one, two, total = ModelMetrics(), ModelMetrics(), ModelMetrics()
    one.statuses[200] += 3
    two.statuses.update({200: 2, 404: 1})
    one.stages["run"].observe(0.5)
    two.batch_entries.observe(7)
    for each in (one, two):
        counts.add(total, json.loads(json.dumps(counts.to_json(each))))
    assert total.statuses == {200: 5, 404: 1}
    assert total.stages["run"].samples()[0][-1] == ("+Inf", 1) and total.batch_entries.samples()[1] == 7


def test_lines_of_several_processes_stay_whole():
    reading, writing = os.pipe()
    try:
        log = JsonLog(descriptor=writing)
        for i in range(50):
            log.lost = 0
            log.add({"time": 0.0, "event": "request", "number": i, "text": "a" * 300})
        written = []
        write = os.write
        os.write = lambda fd, data: written.append(bytes(data)) or write(fd, data)
        try:
            log.flush()
        finally:
            os.write = write
        assert len(written) > 3 and all(piece.endswith(b"\n") for piece in written)
    finally:
        os.close(reading)
        os.close(writing)
