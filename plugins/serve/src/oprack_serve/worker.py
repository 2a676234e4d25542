"""A worker: runs the batches that the server sends it, one after the other, on a predictor of its own."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Any

import numpy as np
from oprack import Profiler
from oprack.errors import InvalidArgumentError, MemoryLimitError
from oprack.inference import Predictor
from oprack.tensor import LoDTensor

from oprack_serve import wire
from oprack_serve.joining import Feed
from oprack_serve.probe import Proof, probe
from oprack_serve.signature import Signature, Tensor

MAX_EVENTS = 20_000
PAGE = os.sysconf("SC_PAGE_SIZE")


class Worker:
    """Answers the messages of its sockets, in turns, until all are closed.

    Args:
        sock: To the server.
        door: Through which the server passes sockets of other fronts.
        predictor: Runs the model.
        signature: What the model declares.
        proof: Says whether entries of a batch depend on each other.
    """

    def __init__(
        self, sock: socket.socket, door: socket.socket, predictor: Predictor, signature: Signature, proof: Proof
    ) -> None:
        self._socks, self._door = {sock.fileno(): sock}, door
        self._predictor, self._signature, self._proof = predictor, signature, proof
        self._ran_ms = 0.0
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._shared = self._memory()

    def serve(self) -> None:
        """Answer until nobody is left who could ask."""
        poll = select.poll()
        for each in (*self._socks.values(), self._door):
            poll.register(each, select.POLLIN)
        while self._socks:
            for fd, _ in poll.poll():
                if fd == self._door.fileno():
                    found = socket.recv_fds(self._door, 1, 1)[1]
                    if not found:
                        poll.unregister(fd)
                    for new in found:
                        self._socks[new] = socket.socket(fileno=new)
                        poll.register(new, select.POLLIN)
                elif not self._answer(self._socks[fd]):
                    poll.unregister(fd)
                    self._socks.pop(fd).close()

    def _answer(self, sock: socket.socket) -> bool:
        """Answer the next message of a socket; returns whether it is still open."""
        try:
            message = wire.receive(sock)
            if message is None:
                return False
            header, arrays = message
            answer = self._probe if header["kind"] == "probe" else self._run
            wire.send(sock, *answer(header, arrays))
        except ConnectionError:
            return False
        return True

    def _memory(self) -> int:
        """Bytes of this process in memory that no file backs; those that it has when it is forked, it shares."""
        resident, of_files = os.pread(self._statm, 200, 0).split()[1:3]
        return (int(resident) - int(of_files)) * PAGE

    # Before it serves -------------------------------------------------------------------------------------------------
    def _probe(self, header: dict[str, Any], _: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        start = time.perf_counter()
        try:
            proof = self._proof if header["prove"] else _proved_before
            found = probe(self._signature, self._outputs_of, proof, header["declared"], header["recorded"])
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}, []
        ms = (time.perf_counter() - start) * 1e3
        return found.to_json() | {"ms": round(ms, 1)}, []

    # Requests ---------------------------------------------------------------------------------------------------------
    def _run(self, header: dict[str, Any], arrays: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        feed = {name: Tensor(array, lod) for (name, lod), array in zip(header["inputs"], arrays, strict=True)}
        profiler = Profiler() if header["trace"] else None
        origin = time.perf_counter_ns()
        self._ran_ms = 0.0
        answer: dict[str, Any]
        sent: list[np.ndarray] = []
        try:
            if profiler is None:
                found = self._outputs_of(feed)
            else:
                with profiler:
                    found = self._outputs_of(feed)
            answer = {"outputs": [[name, found[name].lod] for name in header["outputs"]]}
            sent = [found[name].array for name in header["outputs"]]
        except Exception as error:
            answer = {"error": [status_of(error), f"{type(error).__name__}: {error}"]}
        answer["run_ms"] = round(self._ran_ms, 3)
        answer["memory"] = self._memory() - self._shared
        if profiler is not None:
            events = profiler.events[:MAX_EVENTS]
            answer["trace"] = [
                [n, c, round((a - origin) / 1e3, 1), round((b - a) / 1e3, 1)] for n, c, a, b, _ in events
            ]
        return answer, sent

    def _outputs_of(self, feed: Feed) -> dict[str, Tensor]:
        start = time.perf_counter()
        try:
            return run_predictor(self._predictor, feed)
        finally:
            self._ran_ms += (time.perf_counter() - start) * 1e3


def run_predictor(predictor: Predictor, feed: Feed) -> dict[str, Tensor]:
    """The outputs of one run, by name."""
    for name, tensor in feed.items():
        predictor.get_input_handle(name).share_external_data(LoDTensor(tensor.array, tensor.lod))
    predictor.run()
    outputs = {}
    for name in predictor.get_output_names():
        handle = predictor.get_output_handle(name)
        outputs[name] = Tensor(handle.copy_to_cpu(), handle.lod())
    return outputs


def _proved_before(dims: dict[str, tuple[int, ...]]) -> str:
    """For a worker that is not the first of its model, whose findings count."""
    return ""


def status_of(error: Exception) -> int:
    """Whose fault an error of a run is: inputs that no rule of an op accepts are the client's."""
    if isinstance(error, MemoryLimitError):
        return 413
    return 400 if isinstance(error, InvalidArgumentError) else 500


def main(
    sock: socket.socket,
    door: socket.socket,
    predictor: Predictor,
    signature: Signature,
    proof: Proof,
    threads: int,
) -> None:
    """Serve in this process, with `threads` threads in each kernel library."""
    from oprack.packs import default_manager

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end
    with contextlib.ExitStack() as limits:
        for library in default_manager().extensions.libraries().values():
            if not isinstance(library, Exception):
                limits.enter_context(library.limit_threads(threads))
        Worker(sock, door, predictor, signature, proof).serve()
