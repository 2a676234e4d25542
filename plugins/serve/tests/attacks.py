"""Clients that leave, lie, dawdle, flood and read nothing: a process of `soak.py`, beside that of the good ones.

It reads lines of JSON from standard input: first what to attack (`{"host", "port", "grpc_port", "requests", "bad_ids",
"large", "impatient", "messages", "seed"}`), then true or false, whether to attack now. At the end of its input it
writes how often it did what, and what was not refused as it should be.
"""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import socket
import sys
import threading
import time
from collections import Counter
from typing import Any

import grpc

THREADS = 4
PAUSE = 0.05
"""Seconds of each between two attacks."""

FLOOD, IDLE, SLOW = 1_100, 120, 40
METHODS = "/inference.GRPCInferenceService/"


class Attacks:
    """What is done to one server.

    host, port, grpc_port: of the server. requests: models and bodies of good requests. bad_ids: such a pair of which
    only the run finds out that it is wrong. large: one whose answer is large. impatient: one that gives up at once.
    messages: good ones of gRPC.
    """

    def __init__(self, target: dict[str, Any]) -> None:
        self.address, self.grpc_address = (target["host"], target["port"]), f"{target['host']}:{target['grpc_port']}"
        self.requests = [(model, body.encode()) for model, body in target["requests"]]
        self.bad_ids, self.large, self.impatient = (
            (model, body.encode()) for model, body in (target["bad_ids"], target["large"], target["impatient"])
        )
        self.messages = [base64.b64decode(text) for text in target["messages"]]
        self.counts: Counter[str] = Counter()
        self.wrong: list[tuple[float, str]] = []  # when, and what
        self.wanted, self.over = threading.Event(), threading.Event()
        of_http = (self.leave, self.half, self.announced, self.large_body, self.trailers, self.flip, self.nonsense)
        of_time = (self.slow, self.deaf, self.idle, self.flood)
        self.kinds = [*of_http, *of_time, self.ids, self.hurry, self.grpc_noise, self.grpc_leave, self.grpc_deaf]

    def go_on(self, seed: int) -> None:
        choose = random.Random(seed)
        while not self.over.is_set():
            if self.wanted.wait(0.1):
                kind = choose.choice(self.kinds)
                self.counts[f"bad: {kind.__name__.replace('_', ' ')}"] += 1
                try:
                    kind(choose)
                except (OSError, grpc.RpcError):
                    self.counts["bad connections cut"] += 1
                time.sleep(PAUSE)

    def _connect(self) -> socket.socket:
        return socket.create_connection(self.address, 5)

    @staticmethod
    def _head(model: str, size: int) -> bytes:
        return f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()

    def _whole(self, choose: random.Random) -> tuple[bytes, bytes]:
        """Head and body of a good request."""
        model, body = choose.choice(self.requests)
        return self._head(model, len(body)), body

    # Bodies that do not come, or are damaged --------------------------------------------------------------------------
    def leave(self, choose: random.Random) -> None:
        with self._connect() as sock:
            sock.sendall(b"".join(self._whole(choose)))

    def half(self, choose: random.Random) -> None:
        head, body = self._whole(choose)
        with self._connect() as sock:
            sock.sendall(head + body[: len(body) // 2])

    def announced(self, choose: random.Random) -> None:
        """More than what comes, and more than what is taken."""
        model, body = choose.choice(self.requests)
        with self._connect() as sock:
            sock.sendall(self._head(model, 10**7) + body)
            sock.recv(65536)

    def flip(self, choose: random.Random) -> None:
        """Some other bytes."""
        head, body = self._whole(choose)
        damaged = bytearray(body)
        for _ in range(choose.randint(1, 8)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        with self._connect() as sock:
            sock.sendall(head + damaged)
            sock.recv(65536)

    def nonsense(self, choose: random.Random) -> None:
        with self._connect() as sock:
            sock.sendall(choose.randbytes(choose.randint(1, 400)))

    def ids(self, _: random.Random) -> None:
        """Ids beyond the vocabulary."""
        model, body = self.bad_ids
        with self._connect() as sock:
            sock.sendall(self._head(model, len(body)) + body)
            if not sock.recv(65536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 500")):
                self.wrong.append((time.monotonic(), "ids beyond the vocabulary were not refused"))

    def hurry(self, _: random.Random) -> None:
        """A client that waits for a millisecond, by its own parameter, and is told so while its run goes on."""
        model, body = self.impatient
        with self._connect() as sock:
            sock.sendall(self._head(model, len(body)) + body)
            if not sock.recv(65536).startswith((b"HTTP/1.1 504", b"HTTP/1.1 200")):
                self.wrong.append((time.monotonic(), "a client in a hurry got another answer than 504"))

    # What does not end ------------------------------------------------------------------------------------------------
    def large_body(self, choose: random.Random) -> None:
        self._chunks(choose, b"", b"10000\r\n" + bytes(65536) + b"\r\n")

    def trailers(self, choose: random.Random) -> None:
        _, body = choose.choice(self.requests)
        self._chunks(choose, b"%x\r\n%s\r\n0\r\n" % (len(body), body), b"a:\r\n" * 4000)

    def _chunks(self, choose: random.Random, first: bytes, rest: bytes) -> None:
        """A body in chunks, which goes on after the server has had enough."""
        model, _ = choose.choice(self.requests)
        with self._connect() as sock:
            head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            sock.sendall(head.encode() + first)
            for _ in range(30):
                sock.sendall(rest)

    # Clients that dawdle ----------------------------------------------------------------------------------------------
    def slow(self, choose: random.Random) -> None:
        """Four bytes a second on each of some connections, for longer than the server waits."""
        head, body = self._whole(choose)
        held = [self._connect() for _ in range(SLOW)]
        try:
            for i in range(12):
                for sock in held:
                    sock.sendall((head + body)[i : i + 1])
                time.sleep(0.25)
        finally:
            _close(held)

    def deaf(self, _: random.Random) -> None:
        """Many requests with large answers, of which none is read."""
        model, body = self.large
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(5)
            sock.connect(self.address)
            sock.sendall((self._head(model, len(body)) + body) * 5)
            time.sleep(2.5)

    def idle(self, _: random.Random) -> None:
        """Connections that say nothing."""
        self._hold(IDLE, 0.2)

    def flood(self, _: random.Random) -> None:
        """More of them than the server has descriptors."""
        self._hold(FLOOD, 0.5)

    def _hold(self, count: int, seconds: float) -> None:
        held: list[socket.socket] = []
        try:
            for _ in range(count):
                held.append(self._connect())
            time.sleep(seconds)
        finally:
            _close(held)

    # gRPC -------------------------------------------------------------------------------------------------------------
    def grpc_noise(self, choose: random.Random) -> None:
        """A message with some other bytes."""
        damaged = bytearray(choose.choice(self.messages))
        for _ in range(choose.randint(1, 8)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        with grpc.insecure_channel(self.grpc_address) as channel:
            channel.unary_unary(f"{METHODS}ModelInfer")(bytes(damaged), timeout=5)

    def grpc_leave(self, choose: random.Random) -> None:
        """Calls that are cancelled, and some whose time is over at once."""
        with grpc.insecure_channel(self.grpc_address) as channel:
            infer = channel.unary_unary(f"{METHODS}ModelInfer")
            calls = [infer.future(choose.choice(self.messages), timeout=choose.choice([0.001, 5])) for _ in range(8)]
            time.sleep(choose.random() * 0.02)
            for call in calls:
                call.cancel()

    def grpc_deaf(self, choose: random.Random) -> None:
        """A stream of requests whose answers nobody reads."""
        with grpc.insecure_channel(self.grpc_address) as channel:
            stream = channel.stream_stream(f"{METHODS}ModelStreamInfer")
            call = stream(iter([choose.choice(self.messages)] * 50), timeout=5)
            time.sleep(1.0)
            call.cancel()


def _close(held: list[socket.socket]) -> None:
    for sock in held:
        sock.close()


def main() -> int:
    os.nice(10)  # they would be on other machines: the less they take of this one, the better
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    target = json.loads(sys.stdin.readline())
    attacks = Attacks(target)
    threads = [threading.Thread(target=attacks.go_on, args=(target["seed"] + i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    for line in sys.stdin:
        (attacks.wanted.set if json.loads(line) else attacks.wanted.clear)()
    attacks.over.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"counts": attacks.counts, "wrong": attacks.wrong}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
