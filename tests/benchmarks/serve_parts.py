"""What the parts of a request cost in the server, each by itself: decoding, joining, packing, splitting, encoding."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack_serve import answers, joining, protocol, wire
from oprack_serve.joining import JoinRule
from oprack_serve.signature import Signature, Tensor, TensorSpec
from serve_requests import request_bytes
from uvicorn import Config

SIGNATURE = Signature(
    (TensorSpec("words", "int64", (-1, 1), 1),), (TensorSpec("save_infer_model/scale_0", "int64", (-1, 1), 1),)
)
RULE = JoinRule({"save_infer_model/scale_0": "lod"})


def _cpu_ms(work: Callable[[], Any], count: int, requests: int) -> float:
    """CPU milliseconds for each request: the least of several tries."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            work()
        best = min(best, time.process_time() - start)
    return best * 1e3 / count / requests


def parts_of_a_request(texts: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    """CPU milliseconds for each request by part: where all of `texts` are one batch, and where each is one."""
    bodies = []
    for ids in texts:
        head, _, body = request_bytes("lac", [("words", ids, [[0, len(ids)]])]).partition(b"\r\n\r\n")
        length = int(head.rpartition(b":")[2])
        bodies.append((memoryview(body), length))
    limits = protocol.Limits()
    requests, inputs = zip(*[protocol.decode(SIGNATURE, *body, limits) for body in bodies], strict=True)
    found: dict[str, tuple[float, float]] = {}

    def measure(name: str, work: Callable[[int], Callable[[], Any]]) -> None:
        found[name] = _cpu_ms(work(len(texts)), 40, len(texts)), _cpu_ms(work(1), 1000, 1)

    def feeds(n: int) -> list[joining.Feed]:
        return list(inputs[:n])

    def joined(n: int) -> joining.Feed:
        return joining.join(feeds(n)) if n > 1 else feeds(1)[0]

    def message(n: int) -> list[Any]:
        feed = joined(n)
        return wire.pack({"inputs": [[k, t.lod] for k, t in feed.items()]}, [t.array for t in feed.values()])

    def unpack(n: int) -> Any:
        incoming = wire.Incoming()
        for piece in message(n):
            incoming.room[: len(piece)] = piece
            incoming.add(len(piece))
        return incoming.message

    def outputs(n: int) -> dict[str, Tensor]:
        feed = joined(n)["words"]
        return {"save_infer_model/scale_0": Tensor(feed.array, feed.lod)}

    def encode(n: int) -> Callable[[], Any]:
        pieces = joining.split(RULE, feeds(n), outputs(n))
        pairs = list(zip(requests[:n], pieces, strict=True))
        return lambda: [answers.encode(request, piece, "lac", "1", {}) for request, piece in pairs]

    measure("decode", lambda n: lambda: [protocol.decode(SIGNATURE, *body, limits) for body in bodies[:n]])
    measure("join and pack, one message to the worker", lambda n: lambda: message(n))
    measure("unpack, at either end", unpack)
    outputs_of = {n: outputs(n) for n in (1, len(texts))}
    measure("split", lambda n: lambda: joining.split(RULE, feeds(n), outputs_of[n]) if n > 1 else None)
    measure("encode", encode)
    return found


def echo() -> None:
    """Answer everything at a port, which is printed, with fixed bytes, on uvloop where that is installed."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n" + bytes(400)

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.write = transport.write

        def data_received(self, data: bytes) -> None:
            self.write(answer)

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    with asyncio.Runner(loop_factory=Config("", loop="auto").get_loop_factory()) as runner:
        runner.run(serve())
