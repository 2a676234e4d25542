"""Clients that are slow, endless or deaf, by the dozen, and a server that others reach all the same."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import served
import uvicorn
from oprack_serve.http import PARSED_AT_ONCE, RESTS_AT_LEAST, bounded_protocol
from served import row
from uvicorn.server import ServerState

X = np.array([[1, 2]], np.float32)
BODY = json.dumps({"inputs": [row("x", X)]}).encode()
POST = b"POST /v2/models/scaled/infer HTTP/1.1\r\nHost: x\r\n"
CONNECTIONS = 16


@pytest.fixture(scope="module")
def narrow(models: Path) -> Iterator[served.Served]:
    """A server of few connections and a long patience."""
    options = ("--max-connections", str(CONNECTIONS), "--poll", "0", "--log", "failed")
    running = served.Served(str(models / "scaled" / "2"), "--name", "scaled", *options)
    yield running
    running.stop()


def connect(server: served.Served) -> socket.socket:
    return socket.create_connection((server.host, server.port), 10)


def is_open(sock: socket.socket) -> bool:
    """Whether the server keeps the connection, on which it owes nothing."""
    sock.settimeout(0.01)
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


@pytest.mark.parametrize("begin", [b"", POST, POST + b"Content-Length: 9\r\n\r\n{"], ids=["nothing", "head", "body"])
def test_slow_clients_make_room_for_others(narrow, begin):
    """The one that the server has waited for longest goes; a request that runs and those that came last stay."""
    slow = [connect(narrow) for _ in range(CONNECTIONS)]
    try:
        for sock in slow:
            sock.sendall(begin)
            time.sleep(0.02)
        for _ in range(4):
            assert narrow.get("/v2/health/live") == (200, {"live": True})
            assert narrow.infer("scaled", [row("x", X)])[0] == 200
        kept = [is_open(sock) for sock in slow]
        assert not kept[0] and kept == sorted(kept) and sum(kept) > CONNECTIONS // 2
    finally:
        for sock in slow:
            sock.close()


def test_connections_that_had_answers_outlast_a_flood_of_others(narrow):
    """Clients keep a connection and pause between two requests; those that only connect take none of theirs."""
    kept = [http.client.HTTPConnection(narrow.host, narrow.port, timeout=10) for _ in range(4)]
    held: list[socket.socket] = []
    try:
        for connection in kept:
            connection.request("POST", "/v2/models/scaled/infer", BODY)
            assert connection.getresponse().read()
        opened = [connection.sock for connection in kept]
        for _ in range(2 * CONNECTIONS):
            held.append(connect(narrow))
            time.sleep(0.01)
        assert not is_open(held[0]) and all(map(is_open, opened))
        # they have rested for long when others come after a time without any
        for sock in held:
            sock.close()
        time.sleep(RESTS_AT_LEAST + 0.2)
        held += [connect(narrow) for _ in range(2 * CONNECTIONS)]
        narrow.until(lambda: not any(map(is_open, opened)), 10)
    finally:
        for each in (*kept, *held):
            each.close()


@pytest.mark.parametrize("part", [b"a:\r\n" * 4000, b"a" * 16_000], ids=["many", "one"])
def test_trailers_without_end_are_refused(narrow, part):
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    with connect(narrow) as sock:
        sock.sendall(POST + chunks)
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                sock.sendall(part)
                time.sleep(0.001)


def test_trailers_that_come_at_once_are_not_all_parsed():
    """The parser calls for each of them, so clients that send many at once would keep the event loop for themselves."""

    async def calls() -> int:
        async def application(scope: object, receive: object, send: object) -> None:
            await asyncio.sleep(1)

        config = uvicorn.Config(application, log_config=None)
        config.load()
        seen = 0

        class Counting(bounded_protocol(20.0, 4)):
            def on_header(self, name: bytes, value: bytes) -> None:
                nonlocal seen
                seen += 1
                super().on_header(name, value)

        protocol = Counting(config, ServerState(), {})
        ours, theirs = socket.socketpair()
        with theirs:
            transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: protocol, sock=ours)
            protocol.data_received(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n" + b"a:\r\n" * 60_000)
            transport.abort()
            await asyncio.sleep(0)
        return seen

    # what ends the body may be at the beginning of a part, and the next is refused
    assert 2 < asyncio.run(calls()) <= 2 * PARSED_AT_ONCE // 4


def slowest_health(server: served.Served, work) -> tuple[float, float]:
    """Seconds that `work()` took, and those of the slowest answer about health meanwhile."""
    spent, thread = [], threading.Thread(target=work)
    began = time.monotonic()
    thread.start()
    while thread.is_alive():
        start = time.monotonic()
        assert server.get("/v2/health/live")[0] == 200
        spent.append(time.monotonic() - start)
        time.sleep(0.02)
    return time.monotonic() - began, max(spent)


def brackets(count: int) -> bytes:
    head = b'{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": ['
    return head + b"[]," * count + b"[]]}]}"


def test_a_large_request_in_json_stops_no_other(narrow):
    found = []
    took, slowest = slowest_health(
        narrow, lambda: found.append(narrow.post("/v2/models/scaled/infer", brackets(5_000_000)))
    )
    assert found[0][0] == 400 and "0 elements" in found[0][1]["error"]
    assert slowest < took / 2, (slowest, took)


def test_a_large_answer_in_json_stops_no_other(narrow):
    """Numbers that take long to write: where one of a piece is NaN, all go by Python's own encoder."""
    x = np.random.default_rng(0).random((1_000_000, 2), np.float32)
    x[::1000] = np.nan
    parameters = {"binary_data_size": x.nbytes}
    head = json.dumps({"inputs": [{"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": parameters}]})
    headers = {"Inference-Header-Content-Length": str(len(head))}
    found = []
    path = "/v2/models/scaled/infer"
    took, slowest = slowest_health(
        narrow, lambda: found.append(narrow.request("POST", path, head.encode() + x.tobytes(), headers))
    )
    assert found[0][0] == 200
    np.testing.assert_array_equal(served.arrays(json.loads(found[0][1]))[served_output(narrow)], x * np.float32(20))
    assert slowest < took / 2, (slowest, took)


def served_output(server: served.Served) -> str:
    return server.get("/v2/models/scaled")[1]["outputs"][0]["name"]


def test_requests_that_another_process_decodes_are_answered_as_others(narrow):
    """Also after that process was killed."""
    x = np.arange(40_000, dtype=np.float32).reshape(-1, 2)
    for _ in range(2):
        status, answer = narrow.infer("scaled", [row("x", x)], id="large")
        assert status == 200 and answer["id"] == "large"
        np.testing.assert_array_equal(served.arrays(answer)[served_output(narrow)], x * 20)
        decoders = [
            pid
            for pid in served.children(narrow.process.pid)
            if "decoding" in Path(f"/proc/{pid}/cmdline").read_text("utf-8")
        ]
        assert len(decoders) == 1
        os.kill(decoders[0], signal.SIGKILL)
        narrow.until(lambda: decoders[0] not in served.children(narrow.process.pid))  # noqa: B023


def test_descriptors_never_run_out(models):
    """The system allows fewer connections than the option; a flood of them takes none from models and workers."""
    options = ("--name", "scaled", "--poll", "0.1", "--log", "failed")
    limited = ("sh", "-c", 'ulimit -n 400 && exec "$@"', "sh")
    server = served.Served(str(models / "scaled" / "2"), *options, under=limited)
    assert server.event("fewer connections")["allowed"] == 80
    slow = []
    try:
        for _ in range(500):
            slow.append(connect(server))
            slow[-1].sendall(POST)
        (worker,) = server.workers("scaled")
        os.kill(worker, signal.SIGKILL)
        server.event("worker ended")
        for _ in range(5):
            assert server.infer("scaled", [row("x", X)])[0] == 200
            time.sleep(0.1)
    finally:
        for sock in slow:
            sock.close()
    assert server.stop() == 0
    assert {event["event"] for event in server.events} == {
        *("fewer connections", "listening", "model ready", "worker ended", "stopped")
    }
    assert server.other == []


def test_answers_that_nobody_reads_count(models):
    server = served.Served(str(models / "scaled" / "2"), "--name", "scaled", "--max-inflight", "24M", "--log", "failed")
    x = np.ones((1_000_000, 2), np.float32)
    parameters = {"binary_data_size": x.nbytes}
    inputs = [{"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": parameters}]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    body = head + x.tobytes()
    headers = {"Inference-Header-Content-Length": str(len(head))}

    def large() -> int:
        return server.request("POST", "/v2/models/scaled/infer", body, headers)[0]

    assert large() == 200
    lines = f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    deaf = []
    try:
        # There is room for one of them and what it leaves, and then for another: at once, all but one would be refused.
        for _ in range(6):
            deaf.append(socket.socket())
            deaf[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf[-1].connect((server.host, server.port))
            with suppress(OSError):
                deaf[-1].sendall(POST + lines + body)
            time.sleep(0.3)
        server.until(lambda: large() == 503)
        for _ in range(4):  # not only until their requests have run
            time.sleep(0.3)
            assert large() == 503
        assert server.infer("scaled", [row("x", X)])[0] == 200
    finally:
        for sock in deaf:
            sock.close()
    server.until(lambda: large() == 200)
    assert server.stop() == 0


def test_a_log_that_nobody_reads_stops_nothing(models):
    """The pipe is full after some 200 requests; what can't be written is counted, and said when it can again."""
    from oprack_serve.log import MOST_PENDING, JsonLog

    reading, writing = os.pipe()
    try:
        log = JsonLog(descriptor=writing)
        for i in range(3 * MOST_PENDING // 100):
            log("request", number=i, text="a" * 100)
        assert log.lost > 0
        os.set_blocking(reading, False)
        rows = b""
        while len(rows) < MOST_PENDING:
            rows += os.read(reading, 1 << 16)
            log.flush()
        log("last")
        rows += os.read(reading, 1 << 20)
        events = [json.loads(line) for line in rows.splitlines()]
        assert [e["event"] for e in events[-2:]] == ["lines lost", "last"] and events[-2]["count"] == log.lost
        numbers = [e["number"] for e in events[:-2]]
        assert numbers == list(range(len(numbers))) and len(numbers) + log.lost == 3 * MOST_PENDING // 100
    finally:
        os.close(reading)
        os.close(writing)


def test_a_server_whose_log_nobody_reads_answers(models):
    command = [*(sys.executable, "-m", "oprack", "serve", "--port", "0", "--name"), "scaled"]
    process = subprocess.Popen([*command, str(models / "scaled" / "2")], stderr=subprocess.PIPE)
    try:
        url = next(row["url"] for row in map(json.loads, process.stderr) if row["event"] == "listening")
        host, _, port = url.removeprefix("http://").rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        for _ in range(500):  # none has a model of that name
            connection.request("POST", f"/v2/models/{'a' * 128}/infer", BODY)
            answer = connection.getresponse()
            assert answer.status in (404, 503) and answer.read()
        connection.close()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_probes_have_a_port_of_their_own(models):
    """They are answered while clients fill the other one, and until the last request is; metrics are there alone."""
    options = ("--health-port", "0", "--max-connections", "4", "--poll", "0", "--drain-delay", "2", "--log", "failed")
    server = served.Served(str(models / "scaled" / "2"), "--name", "scaled", *options)
    url = server.event("listening")["health_url"]

    def probe(path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    slow = [connect(server) for _ in range(4)]
    try:
        for sock in slow:
            sock.sendall(POST)
        assert probe("/v2/health/live") == (200, b'{"live":true}') and probe("/v2/health/ready")[0] == 200
        assert all(map(is_open, slow))  # probes took no place of theirs
        status, metrics = probe("/metrics")
        assert status == 200 and b"oprack_log_dropped_total 0.0" in metrics
        assert probe("/v2/models/scaled")[0] == 404
    finally:
        for sock in slow:
            sock.close()
    assert server.get("/metrics")[0] == 404 and server.get("/v2/health/ready")[0] == 200
    server.process.send_signal(signal.SIGTERM)
    server.until(lambda: probe("/v2/health/ready")[0] == 503)
    assert probe("/v2/health/live")[0] == 200
    assert server.process.wait(30) == 0
    server.stop(0)


def test_an_answer_for_which_there_is_no_room_is_not_computed(tmp_path):
    """The first answer of its shape says how large those of others are: of more rows, or of as many."""
    served.save(tmp_path / "wide", served.wide)
    server = served.Served(str(tmp_path / "wide"), "--name", "wide", "--max-inflight", "24M", "--log", "failed")

    def ask(rows: int, **more) -> tuple[int, dict]:
        return server.infer("wide", [row("x", np.zeros([rows, 1], np.float32))], **more)

    def body_of(rows: int) -> bytes:
        inputs = [row("x", np.zeros([rows, 1], np.float32))]
        return json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()

    assert len(server.request("POST", "/v2/models/wide/infer", body_of(10))[1]) > 10 * 4 * 30_000
    batches = server.metric("oprack_batch_seconds_count")
    status, answer = ask(250)
    assert status == 413 and "the answer would have 30000000 bytes" in answer["error"]
    status, answer = ask(1200)
    assert status == 413 and "JSON of the answer" in answer["error"]
    assert server.metric("oprack_batch_seconds_count") == batches
    # 20 MB for 170 rows: there is room for one such answer, and none as long as nobody reads it
    body = body_of(170)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((server.host, server.port))
        head = b"POST /v2/models/wide/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        deaf.sendall(head + body)
        server.until(lambda: server.metric("oprack_batch_seconds_count") == batches + 1)
        status, _, headers = server.request("POST", "/v2/models/wide/infer", body)
        assert status == 503 and headers["retry-after"] == "1"
        assert server.metric("oprack_batch_seconds_count") == batches + 1
    server.until(lambda: server.request("POST", "/v2/models/wide/infer", body)[0] == 200)
    assert server.stop() == 0


def test_answers_that_nobody_reads_are_in_memory_once_and_given_back(tmp_path):
    served.save(tmp_path / "wide", served.wide)
    server = served.Served(str(tmp_path / "wide"), "--name", "wide", "--max-inflight", "150M", "--log", "failed")
    inputs = [row("x", np.zeros([170, 1], np.float32))]
    body = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    head = b"POST /v2/models/wide/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    one = 170 * 30_000 * 4

    def resident() -> int:
        return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert server.request("POST", "/v2/models/wide/infer", body)[0] == 200
    rest, deaf = resident(), []
    try:
        for number in range(6):
            deaf.append(socket.socket())
            deaf[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf[-1].connect((server.host, server.port))
            deaf[-1].sendall(head + body)
            server.until(lambda: server.metric("oprack_batch_seconds_count") == 2 + number)  # noqa: B023
        server.until(lambda: resident() < rest + 7.5 * one, 10)
        assert resident() > rest + 3 * one  # the system has taken some of each
    finally:
        for sock in deaf:
            sock.close()
    server.until(lambda: resident() < rest + 2 * one, 10)
    assert server.stop() == 0


def test_lines_that_the_reader_of_the_log_did_not_take_are_counted():
    from oprack_serve.log import MOST_PENDING, JsonLog
    from oprack_serve.metrics import Metrics
    from oprack_serve.models import Models
    from oprack_serve.settings import Settings

    reading, writing = os.pipe()
    try:
        log = JsonLog(descriptor=writing)
        while not log.lost:
            log("request", text="a" * (MOST_PENDING // 8))
        text = Metrics(Models(Settings(), log), log).text().decode()
        assert f"oprack_log_dropped_total {float(log.lost)}" in text
    finally:
        os.close(reading)
        os.close(writing)
