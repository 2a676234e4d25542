"""The server's end of a worker process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.host import SHORT_LIFE
from oprack_serve.joining import Feed
from oprack_serve.scheduler import BatchResult
from oprack_serve.signature import Tensor
from oprack_serve.wire import Link, Message


class WorkerProcess:
    """A connected worker; `alive` until its connection or its process ends, or it is to run no more batches.

    Args:
        number: Its host's name for it.
        pid: Of the process.
        sock: To the worker.
        pidfd: Of the process, by which it can be ended when its host is gone, too.
        door: Through which it is passed the sockets of other fronts, None for one that belongs to another process.
        memory_limit: Bytes that it may take for itself, 0 for any.
        on_outgrown: Called once, when it takes more.

    Attributes:
        warm: Whether it has answered its probe.
        outgrown: Whether it has taken more than it may, and its host was asked for another.
        memory: Bytes that it had taken for itself after its latest run.
    """

    def __init__(
        self,
        number: int,
        pid: int,
        sock: socket.socket,
        pidfd: int,
        door: socket.socket | None,
        memory_limit: int,
        on_outgrown: Callable[[WorkerProcess], None],
    ) -> None:
        self.number, self.pid, self._sock, self._pidfd, self._door = number, pid, sock, pidfd, door
        self._memory_limit, self._on_outgrown = memory_limit, on_outgrown
        sock.setblocking(False)
        self._link = Link(self.kill)
        self._started = time.monotonic()
        self.outgrown = False
        self.alive, self.warm, self.memory = True, False, 0

    async def connect(self) -> None:
        """Take the connection into the event loop, before the first call."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self._link, sock=self._sock)

    async def probe(self, header: dict[str, Any]) -> dict[str, Any]:
        """Send a message without arrays and get its answer. Raises WorkerLostError when the process is gone."""
        try:
            answer, _ = await self._link.ask(header, [])
        except ConnectionError as error:
            raise WorkerLostError(str(error)) from None
        return answer

    def run(self, feed: Feed, outputs: list[str], trace: bool, done: Callable[[BatchResult | Exception], None]) -> None:
        """Run the model; `done` gets the result, a WorkerLostError when the process ended, or what else went wrong."""

        def answered(found: Message | ConnectionError) -> None:
            if isinstance(found, ConnectionError):
                done(WorkerLostError(str(found)))
                return
            try:
                result: BatchResult | Exception = _result(*found)
                self._weigh(found[0]["memory"])
            except Exception as error:
                result = error
            done(result)
            if not self.alive:  # another has taken its place while it ran
                self.hang_up()

        header = {
            "kind": "run",
            "inputs": [[name, tensor.lod] for name, tensor in feed.items()],
            "outputs": outputs,
            "trace": trace,
        }
        self._link.call(header, [tensor.array for tensor in feed.values()], answered)

    def _weigh(self, memory: int) -> None:
        self.memory = memory
        if not self._memory_limit or memory <= self._memory_limit or self.outgrown:
            return
        # where warming up takes more than the limit, workers are replaced all the same, but not without a pause
        if time.monotonic() - self._started > SHORT_LIFE:
            self.outgrown = True
            self._on_outgrown(self)

    def connect_front(self) -> tuple[socket.socket, int]:
        """A socket for another process to send batches by, and the descriptor by which that one can end the worker.

        The caller passes them on and closes the socket. Raises OSError when the worker is gone.
        """
        assert self._door is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._door, [b"\0"], [theirs.fileno()])
        return ours, self._pidfd

    def hang_up(self) -> None:
        """Leave a worker that runs nothing for this process. It ends when the other fronts have left it, too."""
        self._close()
        self._hang_up()

    def kill(self) -> None:
        """End it. Who waits for its answer gets a WorkerLostError at once, though the process may take its time."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._close()
        self._hang_up()

    def _close(self) -> None:
        self.alive = False
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        if self._door is not None:
            self._door.close()

    def _hang_up(self) -> None:
        if self._link.transport is None:
            self._sock.close()
        else:
            self._link.transport.abort()


def _result(answer: dict[str, Any], arrays: list[Any]) -> BatchResult:
    if "error" in answer:
        return BatchResult({}, answer["run_ms"], RequestError(*answer["error"]), answer.get("trace"))
    outputs = {name: Tensor(array, lod) for (name, lod), array in zip(answer["outputs"], arrays, strict=True)}
    return BatchResult(outputs, answer["run_ms"], None, answer.get("trace"))
