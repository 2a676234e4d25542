"""The server's side of its other fronts: it starts them, tells them of models and workers, and adds up what they count.

The server is a front itself and the only one that loads models. Each SYNC_SECONDS it compares what the others know with
what is, and sends the difference; so nothing that changes models or workers needs to know of fronts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from oprack_serve.channel import Channel
from oprack_serve.fronts import counts
from oprack_serve.metrics import ModelMetrics
from oprack_serve.settings import Settings

if TYPE_CHECKING:
    from oprack_serve.model import Model
    from oprack_serve.models import Models

FRONT = (sys.executable, "-m", "oprack_serve.fronts.front")
PAUSE, SHORT_LIFE = 1.0, 5.0
PIECE = 60_000
"""Bytes of text in one message."""

Key = tuple[str, str]


def shares(settings: Settings) -> Settings:
    """What each front may hold of what all may hold together. A body of the largest size fits into each."""
    count = settings.fronts

    def share(total: int) -> int:
        return -(-total // count)

    return replace(
        settings,
        max_connections=share(settings.max_connections),
        max_queue=share(settings.max_queue),
        max_inflight=max(share(settings.max_inflight), settings.max_body),
    )


@dataclass
class _Front:
    """Another front.

    known: the workers that it was told of, by the number of their model. leaving: models that it may still have runs
    of, though they are not served any more. told: the state that it knows. ready: whether it has the models. models,
    lanes, lost_lines: what it counted.
    """

    number: int
    channel: Channel
    process: asyncio.subprocess.Process
    known: dict[int, set[int]] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)
    told: str = ""
    models: dict[Key, dict[str, Any]] = field(default_factory=dict)
    lanes: dict[Key, tuple[int, int]] = field(default_factory=dict)
    lost_lines: int = 0
    ready: bool = False


class Fronts:
    """The other fronts of a server.

    Args:
        settings: Of one front.
        listeners: The socket of each, all of one port. They stay open here, so that connections wait for a front that
            is started anew.
        event: Called with what happened, and facts by name, for the log.
    """

    def __init__(self, settings: Settings, listeners: Sequence[socket.socket], event: Callable[..., None]) -> None:
        self._settings, self._listeners, self._event = settings, listeners, event
        self._fronts: dict[int, _Front] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._models: Models | None = None
        self._text: Callable[[dict[str, Any]], bytes] = lambda _: b""
        self._stopping = self._were_ready = False
        self.restarts = 0
        self._gone: dict[Key, ModelMetrics] = {}
        self._lost_lines = 0

    async def start(self, models: Models, text: Callable[[dict[str, Any]], bytes]) -> None:
        """Start them. text: says what all fronts have counted, of what a front asks for."""
        self._models, self._text = models, text
        await asyncio.gather(*(self._start(number) for number in range(1, len(self._listeners) + 1)))

    async def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener = self._listeners[number - 1]
        try:
            process = await asyncio.create_subprocess_exec(
                *FRONT,
                str(theirs.fileno()),
                str(listener.fileno()),
                pass_fds=[theirs.fileno(), listener.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        finally:
            theirs.close()
        channel = Channel(ours, lambda message, _: self._hear(front, message), lambda: self._ended(front))
        front = self._fronts[number] = _Front(number, channel, process)
        channel.send({"settings": replace(self._settings, grpc_port=None).to_json(), "number": number})

    def _ended(self, front: _Front) -> None:
        """Put another in its place, unless the server is being stopped."""
        self._fronts.pop(front.number, None)
        for key, row in front.models.items():
            counts.add(self._gone.setdefault(key, ModelMetrics()), row)
        self._lost_lines += front.lost_lines
        if not self._stopping:
            self.restarts += 1
            self._event("front ended", front=front.number, pid=front.process.pid)
            self._spawn(self._again(front))

    async def _again(self, front: _Front) -> None:
        start = time.monotonic()
        await front.process.wait()
        await asyncio.sleep(PAUSE if time.monotonic() - start < SHORT_LIFE else 0.0)
        if not self._stopping:
            await self._start(front.number)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What they are told -----------------------------------------------------------------------------------------------
    def sweep(self, _: float) -> None:
        """Tell each what it does not know yet."""
        if self._models is None or not self._fronts:
            return
        state = json.dumps(self._models.state())
        served = {model.number: model for model in self._models.serving.values()}
        for front in list(self._fronts.values()):
            for number, model in served.items():
                self._tell_workers(front, number, model)
            if state != front.told:
                front.told = state
                front.channel.send({"state": self._models.state()})
            for number in front.known.keys() - served.keys():
                del front.known[number]
                front.leaving.add(number)

    def _tell_workers(self, front: _Front, number: int, model: Model) -> None:
        if number not in front.known:
            front.known[number] = set()
            front.channel.send({"model": number, **model.to_json()})
        known, now = front.known[number], {w.number: w for w in model.workers if w.alive and w.warm}
        for gone in known - now.keys():
            known.discard(gone)
            front.channel.send({"gone": gone, "of": number})
        for new in now.keys() - known:
            with contextlib.suppress(OSError):  # it has ended by now
                sock, pidfd = now[new].connect_front()
                known.add(new)
                front.channel.send({"worker": new, "of": number, "pid": now[new].pid}, [sock, pidfd])

    async def drained(self, model: Model, seconds: float) -> None:
        """Wait until no front runs anything of a model that is not served any more, `seconds` at most."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(
            model.number in front.known or model.number in front.leaving for front in self._fronts.values()
        ):
            await asyncio.sleep(0.02)

    def begin_stop(self) -> None:
        """Have them listen no more, and finish what they have."""
        self._stopping = True
        for front in self._fronts.values():
            front.channel.send({"stop": True})
        for listener in self._listeners:
            listener.close()

    async def stop(self, seconds: float) -> None:
        """Wait for their ends, `seconds` at most, and end those that are left."""
        self.begin_stop()
        for task in list(self._tasks):
            task.cancel()
        for front in list(self._fronts.values()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await front.process.wait()
            with contextlib.suppress(ProcessLookupError):
                front.process.kill()
            await front.process.wait()
            front.channel.close()

    # What they tell ---------------------------------------------------------------------------------------------------
    def _hear(self, front: _Front, message: dict[str, Any]) -> None:
        if "counts" in message:
            self._count(front, message)
        elif "started" in message:
            front.ready = True
        elif "lost_lines" in message:
            front.lost_lines = message["lost_lines"]
        elif "left" in message:
            front.leaving.discard(message["left"])
        elif "outgrown" in message:
            self._outgrown(message)
        elif "metrics" in message:
            text = self._text(message["what"]).decode()
            for start in range(0, len(text), PIECE):
                more = start + PIECE < len(text)
                front.channel.send({"text": text[start : start + PIECE], "of": message["metrics"], "more": more})

    def _count(self, front: _Front, message: dict[str, Any]) -> None:
        key = (message["counts"][0], message["counts"][1])
        front.models[key], front.lanes[key] = message["row"], (message["waiting"], message["running"])
        model = self._model(message["of"])
        if model is not None:
            for text, count in message["recorded"]:
                model.recorded[text] = max(count, model.recorded[text])

    def _outgrown(self, message: dict[str, Any]) -> None:
        model = self._model(message["of"])
        if model is None:
            return
        for worker in model.workers:
            if worker.number == message["outgrown"] and not worker.outgrown:
                worker.memory, worker.outgrown = message["memory"], True
                model.replace(worker)

    def _model(self, number: int) -> Model | None:
        served = [] if self._models is None else self._models.serving.values()
        return next((model for model in served if model.number == number), None)

    # What they counted ------------------------------------------------------------------------------------------------
    def total(self, own: dict[Key, ModelMetrics]) -> dict[Key, ModelMetrics]:
        """What this process and all others have counted."""
        found = {key: ModelMetrics() for key in (*own, *self._gone)}
        for counted in (own, self._gone):
            for key, row in counted.items():
                counts.add(found[key], counts.to_json(row))
        for front in self._fronts.values():
            for key, told in front.models.items():
                counts.add(found.setdefault(key, ModelMetrics()), told)
        return found

    def lane(self, key: Key) -> tuple[int, int]:
        """How many requests wait for a model in the other fronts, and how many batches of theirs are at its workers."""
        rows = [front.lanes.get(key, (0, 0)) for front in self._fronts.values()]
        return sum(waiting for waiting, _ in rows), sum(running for _, running in rows)

    @property
    def ready(self) -> bool:
        """Whether all have had the models; one that is started anew has connections wait meanwhile."""
        self._were_ready |= len(self._fronts) == len(self._listeners) and all(f.ready for f in self._fronts.values())
        return self._were_ready

    @property
    def lost_lines(self) -> int:
        """Lines of their logs that were dropped."""
        return self._lost_lines + sum(front.lost_lines for front in self._fronts.values())

    @property
    def count(self) -> int:
        """How many answer, with this process."""
        return 1 + len(self._fronts)
