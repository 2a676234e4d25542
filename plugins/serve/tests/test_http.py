"""HTTP/1.1 by raw sockets: order, keep-alive, what ends a connection, and answers that no client waits for."""

from __future__ import annotations

import json
import socket
import time

import numpy as np
import served
from served import row

X = np.array([[1, 2]], np.float32)
BODY = json.dumps({"inputs": [row("x", X)]}).encode()


def infer(body: bytes = BODY, version: str = "2", more: str = "") -> bytes:
    start = f"POST /v2/models/scaled/versions/{version}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return f"{start}{more}\r\n".encode() + body


def connect(server: served.Served) -> socket.socket:
    return socket.create_connection((server.host, server.port), 10)


def answers(sock: socket.socket, count: int, bodiless: bool = False) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    """Status, headers and body of so many answers."""
    data, found = b"", []
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        size = 0 if bodiless else int(headers.get(b"content-length", 0))
        if end and len(rest) >= size:
            found.append((int(head.split()[1]), headers, rest[:size]))
            data = rest[size:]
            continue
        more = sock.recv(65536)
        assert more, data
        data += more
    assert not data
    return found


def first(answer: tuple[int, dict[bytes, bytes], bytes]) -> list[float]:
    assert answer[0] == 200, answer
    return json.loads(answer[2])["outputs"][0]["data"]


def test_requests_sent_without_waiting_are_answered_in_their_order(server):
    """Of two models, so that later ones could be done first; and none that is still being read delays the others."""
    with connect(server) as sock:
        sock.sendall(
            b"".join(infer(version="12"[i % 2]) for i in range(40)) + b"GET /v2/health/live HTTP/1.1\r\n\r\nGE"
        )
        found = answers(sock, 41)
        assert [first(a) for a in found[:40]] == [[10.0, 20.0], [20.0, 40.0]] * 20
        assert json.loads(found[40][2]) == {"live": True}
        sock.sendall(b"T /v2 HTTP/1.1\r\n\r\n")
        assert json.loads(answers(sock, 1)[0][2])["name"] == "oprack"


def test_a_head_that_came_before_is_answered_as_the_first_time(server):
    """Whole, in parts, two at once, behind an empty line, and as the last one of a connection."""
    data = infer(more="X-Known: 1\r\n")
    with connect(server) as sock:
        for _ in range(2):
            sock.sendall(data)
            assert first(answers(sock, 1)[0]) == [20.0, 40.0]
        for at in (1, data.index(b"\r\n\r\n") + 4, len(data) - 1):
            sock.sendall(data[:at])
            time.sleep(0.02)
            sock.sendall(data[at:])
            assert first(answers(sock, 1)[0]) == [20.0, 40.0]
        sock.sendall(data + infer(version="1") + b"\r\n" + data)
        assert [first(a) for a in answers(sock, 3)] == [[20.0, 40.0], [10.0, 20.0], [20.0, 40.0]]
        sock.sendall(data.replace(b"[1.0, 2.0]", b"[2.0, 4.0]"))
        assert first(answers(sock, 1)[0]) == [40.0, 80.0]
        last = data.replace(b"X-Known: 1", b"Connection: close")
        sock.sendall(last + data)
        assert len(answers(sock, 1)) == 1 and sock.recv(100) == b""


def test_what_comes_behind_a_last_request_is_not_run(server):
    """It may have been sent before the client knew."""

    def named(name: str) -> bytes:
        return json.dumps({"inputs": [row("x", X)], "id": name}).encode()

    before = len(server.events)
    with connect(server) as sock:
        sock.sendall(infer(named("a")) + infer(named("b"), more="Connection: close\r\n") + infer(named("c")))
        assert [first(a) for a in answers(sock, 2)] == [[20.0, 40.0]] * 2 and sock.recv(100) == b""
    server.infer("scaled", [row("x", X)], id="last")
    server.event("request", after=before, id="last")
    ids = [e.get("id") for e in server.events[before:] if e["event"] == "request"]
    assert [i for i in ids if i in ("a", "b", "c")] == ["a", "b"]


def test_a_body_in_chunks_and_one_in_single_bytes(server):
    with connect(server) as sock:
        head = b"POST /v2/models/scaled/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(BODY[i : i + 7]), BODY[i : i + 7]) for i in range(0, len(BODY), 7))
        sock.sendall(head + chunks + b"0\r\nX-Behind: 1\r\n\r\n")
        assert first(answers(sock, 1)[0]) == [20.0, 40.0]
        for byte in infer():
            sock.sendall(bytes([byte]))
        assert first(answers(sock, 1)[0]) == [20.0, 40.0]


def test_a_request_that_comes_whole_is_answered_as_one_in_pieces(server):
    """The first is answered on its connection, the other one through ASGI."""
    with connect(server) as sock:
        for request in (infer(), infer(b"{"), infer(version="9"), infer(b""), infer(more="Accept-Encoding: gzip\r\n")):
            found = []
            for pieces in ([request], [request[:-10], request[-10:]]):
                for piece in pieces:
                    sock.sendall(piece)
                    time.sleep(0.02)
                ((status, headers, body),) = answers(sock, 1)
                assert headers.pop(b"date").endswith(b"gmt")
                found.append((status, headers, body))
            assert found[0] == found[1]


def test_what_keeps_a_connection_and_what_ends_it(server):
    with connect(server) as sock:
        for request in (infer(b"{"), infer(version="9"), infer(more="Content-Encoding: br\r\n"), infer()):
            sock.sendall(request)  # a refused request's body is read, so the next one begins where it should
            ((status, headers, _),) = answers(sock, 1)
            assert status in (400, 404, 415, 200) and b"connection" not in headers
        sock.sendall(infer(more="Connection: close\r\n") + infer())
        assert answers(sock, 1)[0][1][b"connection"] == b"close" and sock.recv(100) == b""
    with connect(server) as sock:
        sock.sendall(b"GET /v2 HTTP/1.0\r\n\r\n")
        ((status, headers, _),) = answers(sock, 1)
        assert (status, headers[b"connection"]) == (200, b"close") and sock.recv(100) == b""
    with connect(server) as sock:  # another protocol is not spoken, and HTTP/1.1 goes on
        sock.sendall(b"GET /v2 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        assert answers(sock, 1)[0][0] == 200


def test_an_announced_body_is_asked_for_or_refused(server):
    announced = "Expect: 100-continue\r\n"
    with connect(server) as sock:
        head, _, body = infer(more=announced).partition(b"\r\n\r\n")
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert first(answers(sock, 1)[0]) == [20.0, 40.0]
    with connect(server) as sock:
        sock.sendall(infer(version="9", more=announced).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert answers(sock, 1)[0][0] == 404 and sock.recv(100) == b""


def test_head_paths_and_methods(server):
    with connect(server) as sock:
        sock.sendall(b"HEAD /v2/health/live HTTP/1.1\r\n\r\n")
        ((status, headers, _),) = answers(sock, 1, bodiless=True)
        assert status == 200 and headers[b"content-length"] == b"13" and headers[b"date"].endswith(b"gmt")
    for path in ("/v2?x=1", "/v2/models/sc%61led"):
        assert server.get(path)[0] == 200, path
    for path in ("/v2/", "/v2/models/scaled/"):
        status, _, headers = server.request("GET", path)
        assert status == 307 and headers["location"].endswith(path[:-1]), path
    for path in ("/", "/v2/models", "/v2/models/scaled/x", "/v2//health/live", "/v1"):
        status, answer = server.get(path)
        assert status == 404 and path in answer["error"], path
    status, _, headers = server.request("PUT", "/v2/repository/index", "x")
    assert (status, headers["allow"]) == (405, "POST")


def test_bytes_that_begin_no_request_keep_no_connection(server):
    """Empty lines may stand before a request; a client that sends nothing else is cut off in time."""
    with connect(server) as sock:
        sock.sendall(b"\r\n\r\n" + infer())
        assert first(answers(sock, 1)[0]) == [20.0, 40.0]
    with connect(server) as sock:
        began = time.monotonic()
        try:
            while time.monotonic() - began < 8:
                sock.sendall(b"\r\n")
                time.sleep(0.05)
            raise AssertionError("the server kept a connection without a request")
        except ConnectionError:
            assert time.monotonic() - began > 1
    with connect(server) as sock:
        sock.sendall(b"\r\n" * 40_000)
        assert sock.recv(100).startswith(b"HTTP/1.1 400")


def test_a_body_that_stops_is_408_and_a_model_that_is_slow_is_waited_for(server):
    """Also where the next request has begun: its head is late because the server is."""
    with connect(server) as sock:
        sock.sendall(infer()[:-5])
        status, headers, _ = answers(sock, 1)[0]
        assert (status, headers[b"connection"]) == (408, b"close") and sock.recv(100) == b""
    body = json.dumps({"inputs": [row("n", [10_000_000])], "parameters": {"timeout": 2_500_000}}).encode()
    start = b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    with connect(server) as sock:
        sock.sendall(start + body + b"GET /v2/health/li")
        assert answers(sock, 1)[0][0] == 504  # after more than the time that a head may take
        sock.sendall(b"ve HTTP/1.1\r\n\r\n")
        assert json.loads(answers(sock, 1)[0][2]) == {"live": True}


def test_a_client_that_does_not_read_its_answer_is_cut_off(server):
    """Its answers fill the buffers; the server reads no more of its requests, and ends the connection in time."""
    x = np.ones([20_000, 2], np.float32)
    big = infer(json.dumps({"inputs": [row("x", x)]}).encode())
    with connect(server) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(8)
        began = time.monotonic()
        try:
            for _ in range(200):
                sock.sendall(big)
            raise AssertionError("the server took 50 megabytes and no answer was read")
        except (ConnectionError, TimeoutError):
            assert time.monotonic() - began < 7
    assert server.infer("scaled", [row("x", X)])[0] == 200


def test_metrics_are_what_prometheus_reads(server):
    from prometheus_client.parser import text_string_to_metric_families

    server.infer("scaled", [row("x", X)], "1")
    text = server.request("GET", "/metrics")[1].decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"oprack_requests", "oprack_stage_seconds", "oprack_batch_requests", "oprack_batch_seconds"} <= set(families)
    rows = [s for s in families["oprack_batch_requests"].samples if s.labels.get("version") == "1"]
    buckets = [s.value for s in rows if s.name.endswith("_bucket") and s.labels["model"] == "scaled"]
    (count,) = (s.value for s in rows if s.name.endswith("_count") and s.labels["model"] == "scaled")
    assert buckets == sorted(buckets) and buckets[-1] == count >= 1
