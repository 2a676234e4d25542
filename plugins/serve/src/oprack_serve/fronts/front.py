"""Another front: a process that takes requests at the server's port and sends them to the server's workers.

    python -m oprack_serve.fronts.front FD LISTENER

FD is a socket to the server, LISTENER one that listens. It loads no model: the server says which ones there are, and
passes a socket to each of their workers. It ends when the server says so, or is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from oprack_serve.app import make_app
from oprack_serve.channel import Channel
from oprack_serve.errors import RequestError
from oprack_serve.fronts import counts
from oprack_serve.host import MAX_MESSAGE, keep_what_is_there
from oprack_serve.joining import JoinRule
from oprack_serve.log import JsonLog, log_all
from oprack_serve.model import READY, WARM_UP_WITH, Model
from oprack_serve.models import Failure, Models
from oprack_serve.options.model_options import ModelOptions
from oprack_serve.repository import FoundModel
from oprack_serve.scheduler import Scheduler
from oprack_serve.server import WAITING_IN_THE_SYSTEM, return_large_memory, uvicorn_config
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature
from oprack_serve.worker_process import WorkerProcess

TELL_SECONDS = 0.5
RELAY_SECONDS = 5.0

Tell = Callable[[dict[str, Any]], None]


class FrontModel(Model):
    """A model that the server has loaded.

    Args:
        message: What the server said of it.
        settings: Of a front.
        scheduler: Of this front.
        event: Called with what happened, for the log.
        tell: Sends the server a message.
    """

    def __init__(
        self,
        message: dict[str, Any],
        settings: Settings,
        scheduler: Scheduler,
        event: Callable[..., None],
        tell: Tell,
    ) -> None:
        found = FoundModel(message["name"], message["version"], Path(), ())
        super().__init__(found, settings, scheduler, event)
        self.number, self._server = message["model"], tell
        self.signature = Signature.from_json(message["signature"])
        self.lane.rule = JoinRule(**message["rule"])
        self.lane.max_batch, self.lane.max_delay = message["max_batch"], message["max_delay"]
        self.lane.max_queue, self.options = message["max_queue"], ModelOptions.from_json(message["options"])
        self.state = READY
        scheduler.lanes.append(self.lane)

    async def connect(self, number: int, pid: int, sock: socket.socket, pidfd: int) -> None:
        """Take a worker that the server has warmed up."""
        worker = WorkerProcess(number, pid, sock, pidfd, None, self.settings.worker_memory, self.replace)
        self._workers[number] = worker
        await worker.connect()
        worker.warm = True
        if worker.alive:  # it may be gone by now
            self.lane.idle.append(worker)
            self.lane.scheduler.pump()

    def disconnect(self, number: int) -> None:
        """Give a worker no more batches."""
        worker = self._workers.pop(number, None)
        if worker is not None:
            self._retire(worker)

    def replace(self, worker: WorkerProcess) -> None:
        """The server replaces it."""
        self._server({"outgrown": worker.number, "of": self.number, "memory": worker.memory})

    async def close(self) -> None:
        """Leave its workers, which go on for others."""
        self._refuse()
        self.lane.idle.clear()
        for worker in self._workers.values():
            worker.hang_up()


class FrontModels(Models):
    """The models that the server has, as far as it has told.

    Args:
        settings: Of a front.
        log: For events.
        number: Of this front.
        control: The socket to the server.
        end: Called when this front is to take no more requests.
    """

    def __init__(
        self, settings: Settings, log: JsonLog, number: int, control: socket.socket, end: Callable[[], None]
    ) -> None:
        super().__init__(settings, log)
        self.scheduler = Scheduler(settings.workers, number)
        self._log, self._end = log, end
        self._known: dict[int, FrontModel] = {}
        self._channel = Channel(control, self._hear, self._server_ended)
        self._relays: dict[int, tuple[list[str], asyncio.Future[bytes]]] = {}
        self._relayed = 0
        self.relay = self._ask
        self._informed = asyncio.Event()

    async def informed(self) -> None:
        """Wait for the state of the server; requests wait in the socket for that."""
        await self._informed.wait()

    async def start(self) -> None:
        """Tell the server from time to time what was counted; what there is to serve, it tells by itself."""
        self._spawn(self._tell())

    async def stop(self) -> None:
        """Leave all workers and the server."""
        self.stopping = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tell_counts()
        for model in self._known.values():
            await model.close()
        self._channel.close()

    def _server_ended(self) -> None:
        if not self.stopping:
            os._exit(1)  # its workers end, too

    # What the server tells --------------------------------------------------------------------------------------------
    def _hear(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "model" in message:
            model = FrontModel(message, self._settings, self.scheduler, self._event, self._channel.send)
            self._known[model.number] = model
            self.on_model(model)
        elif "worker" in message:
            sock, pidfd = socket.socket(fileno=descriptors[0]), descriptors[1]
            self._spawn(self._known[message["of"]].connect(message["worker"], message["pid"], sock, pidfd))
        elif "gone" in message:
            self._known[message["of"]].disconnect(message["gone"])
        elif "state" in message:
            self._take(message["state"])
        elif "text" in message:
            self._relay(message)
        elif "stop" in message:
            self._end()

    def _take(self, state: dict[str, Any]) -> None:
        self._serve({(name, version): self._known[number] for name, version, number in state["serving"]})
        self._failed = {(n, v): Failure(None, reason, 0.0, 0.0) for n, v, reason in state["failed"]}
        self._loading = {(name, version) for name, version in state["loading"]}
        if state["started"] and not self.started:
            keep_what_is_there()
            self._channel.send({"started": True})
        self._informed.set()
        self.started, self.draining, self._expected = state["started"], state["draining"], state["expected"]
        served = {number for _, _, number in state["serving"]}
        for number in self._known.keys() - served:
            self._spawn(self._leave(self._known.pop(number)))

    async def _leave(self, model: FrontModel) -> None:
        await model.drain(self._settings.timeout)
        await model.close()
        self._channel.send({"left": model.number})

    # What it tells ----------------------------------------------------------------------------------------------------
    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            self._tell_counts()

    def _tell_counts(self) -> None:
        counted = {} if self.metrics is None else self.metrics.by_model
        for key, row in counted.items():
            model = self.serving.get(key)
            message: dict[str, Any] = {"counts": list(key), "row": counts.to_json(row), "of": 0, "recorded": []}
            message |= {"waiting": 0, "running": 0}
            if model is not None:
                message |= {"of": model.number, "recorded": model.recorded.most_common(WARM_UP_WITH)}
                message |= {"waiting": model.lane.waiting, "running": model.lane.running}
            self._channel.send(message)
        self._channel.send({"lost_lines": self._log.lost})

    async def _ask(self, of: dict[str, Any]) -> bytes:
        """What all fronts have counted, as the server tells it. Raises RequestError when the server does not answer."""
        self._tell_counts()
        self._relayed = number = self._relayed + 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._relays[number] = [], answer
        self._channel.send({"metrics": number, "what": of})
        try:
            async with asyncio.timeout(RELAY_SECONDS):
                return await answer
        except TimeoutError:
            raise RequestError(503, "the server did not say in time what it has counted; try again later") from None
        finally:
            self._relays.pop(number, None)

    def _relay(self, message: dict[str, Any]) -> None:
        pieces, answer = self._relays.get(message["of"], ([], None))
        pieces.append(message["text"])
        if answer is not None and not message["more"] and not answer.done():
            answer.set_result("".join(pieces).encode())


class _FrontServer(uvicorn.Server):
    """uvicorn without signals: the server says when a front ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(WAITING_IN_THE_SYSTEM)

    def end(self) -> None:
        self.should_exit = True


def main(arguments: Sequence[str]) -> int:
    """Take requests until the server says that it is enough."""
    control, listener = (socket.socket(fileno=int(fd)) for fd in arguments)
    for each in (signal.SIGINT, signal.SIGTERM):  # a terminal or a supervisor may send them to all processes
        signal.signal(each, signal.SIG_IGN)
    first = json.loads(control.recv(MAX_MESSAGE))
    settings = Settings.from_json(first["settings"])
    return_large_memory()
    log = JsonLog(all_requests=settings.log == "all")
    log_all(log)
    server: _FrontServer

    def make_models(settings: Settings, log: JsonLog) -> Models:
        return FrontModels(settings, log, first["number"], control, server.end)

    app = make_app(settings, log, make_models=make_models)
    server = _FrontServer(uvicorn_config(app, settings, log))
    server.run(sockets=[listener])
    log.flush(1.0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
