"""The server's end of a worker process."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from oprack_serve import wire
from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.joining import JoinRule
from oprack_serve.scheduler import BatchResult, Job
from oprack_serve.signature import Tensor


class WorkerProcess:
    """A connected worker; `alive` until its connection or its process ends."""

    def __init__(self, kill: Callable[[int], None], number: int, pid: int, sock: socket.socket) -> None:
        self._kill, self.number, self.pid, self._sock = kill, number, pid, sock
        sock.setblocking(False)
        self.alive = True

    async def call(self, header: dict[str, Any], arrays: list[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Send a message and get its answer. Raises WorkerLostError when the process is gone."""
        try:
            return await wire.call(self._sock, header, arrays)
        except OSError as error:
            self.close()
            raise WorkerLostError(str(error)) from None

    async def run(self, rule: JoinRule, jobs: list[Job], trace: bool) -> BatchResult:
        """Run the requests together. Raises WorkerLostError."""
        arrays: list[Any] = []
        requests = []
        for job in jobs:
            rows = []
            for name, tensor in job.feed.items():
                rows.append({"name": name, "array": len(arrays), "lod": tensor.lod})
                arrays.append(tensor.array)
            requests.append({"inputs": rows, "outputs": job.outputs})
        header = {"kind": "run", "rule": rule.to_json(), "requests": requests, "trace": trace}
        answer, found = await self.call(header, arrays)
        results: list[dict[str, Tensor] | RequestError] = []
        for row in answer["results"]:
            if "error" in row:
                results.append(RequestError(*row["error"]))
            else:
                results.append({o["name"]: Tensor(found[o["array"]], o["lod"]) for o in row["outputs"]})
        return BatchResult(results, answer["run_ms"], answer.get("trace"))

    def kill(self) -> None:
        """Have its host end it; whoever waits for its answer gets a WorkerLostError."""
        self._kill(self.number)

    def close(self) -> None:
        self.alive = False
        self._sock.close()
