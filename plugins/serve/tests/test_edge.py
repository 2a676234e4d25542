"""Clients that are slow, endless or deaf, by the dozen, and a server that others reach all the same."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import served
from served import row

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


@pytest.mark.parametrize("part", [b"a:\r\n" * 4000, b"a" * 16_000], ids=["many", "one"])
def test_trailers_without_end_are_refused(narrow, part):
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    with connect(narrow) as sock:
        sock.sendall(POST + chunks)
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                sock.sendall(part)
                time.sleep(0.001)
