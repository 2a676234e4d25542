"""The server's end of a worker process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.joining import Feed
from oprack_serve.scheduler import BatchResult
from oprack_serve.signature import Tensor
from oprack_serve.wire import Link, Message


class WorkerProcess:
    """A connected worker; `alive` until its connection or its process ends."""

    def __init__(self, kill: Callable[[int], None], number: int, pid: int, sock: socket.socket) -> None:
        self._kill, self.number, self.pid, self._sock = kill, number, pid, sock
        sock.setblocking(False)
        self._link = Link(self._lost)
        self.alive = True

    async def connect(self) -> None:
        """Take the connection into the event loop, before the first call."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self._link, sock=self._sock)

    def _lost(self) -> None:
        self.alive = False

    async def probe(self, header: dict[str, Any]) -> dict[str, Any]:
        """Send a message without arrays and get its answer. Raises WorkerLostError when the process is gone."""
        answer: asyncio.Future[Message | ConnectionError] = asyncio.get_running_loop().create_future()
        self._link.call(header, [], lambda found: answer.done() or answer.set_result(found))
        found = await answer
        if isinstance(found, ConnectionError):
            raise WorkerLostError(str(found))
        return found[0]

    def run(self, feed: Feed, outputs: list[str], trace: bool, done: Callable[[BatchResult | Exception], None]) -> None:
        """Run the model; `done` gets the result, a WorkerLostError when the process ended, or what else went wrong."""

        def answered(found: Message | ConnectionError) -> None:
            if isinstance(found, ConnectionError):
                done(WorkerLostError(str(found)))
                return
            try:
                result: BatchResult | Exception = _result(*found)
            except Exception as error:
                result = error
            done(result)

        header = {
            "kind": "run",
            "inputs": [[name, tensor.lod] for name, tensor in feed.items()],
            "outputs": outputs,
            "trace": trace,
        }
        self._link.call(header, [tensor.array for tensor in feed.values()], answered)

    def kill(self) -> None:
        """Have its host end it; whoever waits for its answer gets a WorkerLostError."""
        self._kill(self.number)

    def close(self) -> None:
        self.alive = False
        self._link.transport.abort()


def _result(answer: dict[str, Any], arrays: list[Any]) -> BatchResult:
    if "error" in answer:
        return BatchResult({}, answer["run_ms"], RequestError(*answer["error"]), answer.get("trace"))
    outputs = {name: Tensor(array, lod) for (name, lod), array in zip(answer["outputs"], arrays, strict=True)}
    return BatchResult(outputs, answer["run_ms"], None, answer.get("trace"))
