"""One version of a model in the server: its host process, its workers, and whether it serves."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from oprack_serve.channel import Channel
from oprack_serve.edge.answer_sizes import AnswerSizes
from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.joining import Feed, JoinRule
from oprack_serve.options.model_options import ModelOptions
from oprack_serve.protocol import KnownRequests
from oprack_serve.repository import FoundModel
from oprack_serve.scheduler import Lane, Scheduler
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature
from oprack_serve.worker_process import WorkerProcess

_NUMBERS = itertools.count(1)
LOADING, READY, UNAVAILABLE = "LOADING", "READY", "UNAVAILABLE"
MAX_RECORDED, WARM_UP_WITH = 256, 8
HOST = (sys.executable, "-m", "oprack_serve.host")
"""What is run as the host process; benchmarks put other engines in its place."""


class LoadError(Exception):
    """The model can't be served; the text says why."""


class Model:
    """A version of a model.

    Args:
        found: Where it lies.
        settings: The server's.
        scheduler: Gives its requests to its workers.
        event: Called with what happened, and facts by name, for the log.

    Attributes:
        options: What serve.toml says, with the precisions of the server where it says none.
        state: LOADING, READY or UNAVAILABLE.
        reason: Why it is UNAVAILABLE.
        restarts: How many workers ended and were replaced.
        recorded: Shapes of requests, as JSON, with how often they came.
        answer_sizes: What its answers took.
        known_requests: Those that came before, over HTTP.
        number: Another one for each object, also of one name and version.
        on_lost: Called when the host process ended while the model served.
    """

    def __init__(self, found: FoundModel, settings: Settings, scheduler: Scheduler, event: Callable[..., None]) -> None:
        self.found, self.settings, self._event = found, settings, event
        self.key, self.name, self.version = found.key, found.name, found.version
        self.state, self.reason = LOADING, ""
        self.lane = Lane(scheduler, settings.max_batch, settings.max_delay, settings.max_queue)
        self.options = ModelOptions()
        self.signature = Signature((), ())
        self.restarts = 0
        self.recorded: Counter[str] = Counter()
        self._texts: dict[Any, str] = {}  # of `recorded`, by what each says
        self.number = next(_NUMBERS)
        self.answer_sizes, self.known_requests = AnswerSizes(), KnownRequests()
        self._declared: list[Any] = []
        self._process: asyncio.subprocess.Process | None = None
        self._host_channel: Channel | None = None
        self._workers: dict[int, WorkerProcess] = {}
        self._outgrown: list[WorkerProcess] = []  # those whose successors are being warmed up
        self._loaded: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._preparing: set[asyncio.Task[None]] = set()
        self._prepared = asyncio.Event()
        self._closing = False
        self.on_lost: Callable[[Model], None] = lambda model: None

    @property
    def workers(self) -> list[WorkerProcess]:
        """Its workers, also those that are not warm yet or have just ended."""
        return list(self._workers.values())

    def to_json(self) -> dict[str, Any]:
        """What another front needs of it, beside its workers."""
        return {
            "name": self.name,
            "version": self.version,
            "signature": self.signature.to_json(),
            "rule": self.lane.rule.to_json(),
            "max_batch": self.lane.max_batch,
            "max_delay": self.lane.max_delay,
            "max_queue": self.lane.max_queue,
            "options": self.options.to_json(),
        }

    @property
    def needs(self) -> list[str]:
        """Names of models without which it can't be loaded."""
        return []

    @property
    def ready(self) -> bool:
        """Whether it serves, by a worker that has answered and was not lost since."""
        return self.state == READY and any(worker.alive and worker.warm for worker in self._workers.values())

    @property
    def worker_count(self) -> int:
        """How many workers it is to have."""
        return self.options.workers or self.settings.workers

    # Loading ----------------------------------------------------------------------------------------------------------
    async def load(self, recorded: Counter[str] | None = None) -> None:
        """Start the host, warm up a worker, and serve. Raises LoadError; nothing is left of it then.

        recorded: shapes that an earlier version served, to warm this one up with.
        """
        start = time.monotonic()
        try:
            async with asyncio.timeout(self.settings.load_timeout):
                await self._load(recorded or Counter())
        except asyncio.CancelledError:
            if self._process is not None:
                self._process.kill()  # it would notice only when it has loaded the model
            await self.close()
            raise
        except TimeoutError:
            await self.close()
            raise LoadError(f"it did not load and warm up within {self.settings.load_timeout:g} seconds") from None
        except Exception as error:
            await self.close()
            text = str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
            raise LoadError(text) from None
        self.state = READY
        self.lane.scheduler.lanes.append(self.lane)
        self._event(
            "model ready",
            model=self.name,
            version=self.version,
            seconds=round(time.monotonic() - start, 2),
            batching=self.lane.rule.described(),
        )

    async def _load(self, recorded: Counter[str]) -> None:
        own = self.options = self.found.options().or_else(self.settings.precisions())
        if self.worker_count > self.settings.workers:
            raise LoadError(
                f"serve.toml has workers = {own.workers}; the server runs {self.settings.workers} batches at once: "
                f"start it with --workers {own.workers}"
            )
        self.lane.max_batch = own.max_batch or self.settings.max_batch
        self.lane.max_delay = self.settings.max_delay if own.max_delay is None else own.max_delay
        # the server's own is the share of a front already
        self.lane.max_queue = -(-own.max_queue // self.settings.fronts) if own.max_queue else self.settings.max_queue
        self._declared, self.recorded = own.examples, Counter(dict(recorded.most_common(WARM_UP_WITH)))
        await self._start_host()
        message = await self._loaded
        if "failed" in message:
            raise LoadError(message["failed"])
        self.signature = Signature.from_json(message["loaded"])
        self._check_examples()
        await self._prepared.wait()
        if self.reason:
            raise LoadError(self.reason)

    def _check_examples(self) -> None:
        names = {spec.name for spec in self.signature.inputs}
        for example in self._declared:
            if set(example) != names:
                raise LoadError(
                    f"an example of serve.toml has {sorted(example)}; the model's inputs are {sorted(names)}"
                )

    def _host(self) -> tuple[str, ...]:
        """The command of the host process."""
        return HOST

    async def _start_host(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings, threads = self.settings, self.options.threads or self.settings.threads_of_a_worker()
        libraries = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        cache = "" if settings.cache is None else settings.cache
        options = json.dumps(self.options.of_predictor())
        workers, limit = self.worker_count, settings.memory_limit
        behind = "1" if self.lane.scheduler.lanes else ""
        arguments = (theirs.fileno(), self.found.path, workers, threads, limit, cache, options, behind)
        self._process = await asyncio.create_subprocess_exec(
            *self._host(),
            *map(str, arguments),
            pass_fds=[theirs.fileno()],
            env=os.environ | libraries,
            stdin=asyncio.subprocess.DEVNULL,
        )
        theirs.close()
        self._host_channel = Channel(ours, self._hear, self._host_ended)

    def _hear(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """A message from the host."""
        if "worker" in message:
            sock, pidfd, door = (
                socket.socket(fileno=descriptors[0]),
                descriptors[1],
                socket.socket(fileno=descriptors[2]),
            )
            limit = self.settings.worker_memory
            worker = WorkerProcess(message["worker"], message["pid"], sock, pidfd, door, limit, self.replace)
            self._workers[worker.number] = worker
            task = asyncio.get_running_loop().create_task(self._prepare(worker))
            self._preparing.add(task)
            task.add_done_callback(self._preparing.discard)
        elif "ended" in message:
            self._worker_ended(message["ended"], message["status"])
        elif not self._loaded.done():
            self._loaded.set_result(message)

    async def _prepare(self, worker: WorkerProcess) -> None:
        """Warm a worker up; the first one's findings are the rule by which requests are joined."""
        recorded = [json.loads(text) for text, _ in self.recorded.most_common(WARM_UP_WITH)]
        try:
            await worker.connect()
            wanted = {"declared": self._declared, "recorded": recorded, "prove": not self._prepared.is_set()}
            async with asyncio.timeout(self.settings.load_timeout):
                answer = await worker.probe({"kind": "probe"} | wanted)
        except (WorkerLostError, TimeoutError):
            worker.kill()
            self._prepared.set()
            self.reason = self.reason or ("" if self.state == READY else "a worker ended while it was warmed up")
            return
        if not self._prepared.is_set():
            self.reason = answer.get("error", "")
            if not self.reason:
                self.lane.rule = JoinRule(**answer["rule"])
                self.signature = self.signature.with_outputs(answer["outputs"])
                if answer["why"]:
                    self._event(
                        "model not warmed up",
                        model=self.name,
                        version=self.version,
                        reason=answer["why"][:1000],
                        fix="declare shapes in serve.toml: [[examples]]",
                    )
            self._prepared.set()
        worker.warm = True
        self._tell({"warm": worker.number})
        if self._outgrown:
            self._retire(self._outgrown.pop())
        self.lane.idle.append(worker)
        self.lane.scheduler.pump()

    def replace(self, worker: WorkerProcess) -> None:
        """Have the host fork another worker; this one runs batches until that one is warmed up."""
        if self._tell({"replace": worker.number}):
            self._outgrown.append(worker)
            self._event(
                "worker outgrown",
                model=self.name,
                version=self.version,
                pid=worker.pid,
                memory=worker.memory,
                limit=self.settings.worker_memory,
            )

    def _tell(self, message: dict[str, Any]) -> bool:
        """Send the host a message; returns whether it was there to take it."""
        if self._host_channel is not None:
            self._host_channel.send(message)
        return self._host_channel is not None

    def _retire(self, worker: WorkerProcess) -> None:
        """End a worker, after the batch that it runs."""
        if worker in self.lane.idle:
            self.lane.idle.remove(worker)
            worker.hang_up()
        worker.alive = False

    # Ends -------------------------------------------------------------------------------------------------------------
    def _worker_ended(self, number: int, status: int) -> None:
        worker = self._workers.pop(number, None)
        if worker is None or self._closing:
            return
        self.restarts += 1
        self._event("worker ended", model=self.name, version=self.version, pid=worker.pid, status=status)
        self._retire(worker)  # one that runs a batch finds its connection closed

    def _host_ended(self) -> None:
        self._host_channel = None
        if not self._loaded.done():
            self._loaded.set_result({"failed": "its process ended while it loaded the model"})
        self._prepared.set()
        if not self._closing:
            self._event("host ended", model=self.name, version=self.version)
            if self.state == READY:  # its workers go on until another host has taken over
                self.on_lost(self)
            else:
                self.reason = self.reason or "its process ended"

    async def close(self) -> None:
        """End the processes. What waits is refused; `drain` before it lets it finish."""
        self._closing = True
        self._refuse()
        for task in list(self._preparing):
            task.cancel()
        if self._host_channel is not None:
            self._host_channel.close()
            self._host_channel = None
        self.lane.idle.clear()
        for worker in self._workers.values():
            worker.kill()
        if self._process is not None:
            try:
                async with asyncio.timeout(5):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    def _refuse(self) -> None:
        """Take no more requests, and answer those that wait."""
        self.state = UNAVAILABLE
        if self.lane in self.lane.scheduler.lanes:
            self.lane.scheduler.lanes.remove(self.lane)
        self.lane.fail_all(RequestError(503, f"model {self.name!r} version {self.version} was taken away"))

    async def drain(self, seconds: float) -> None:
        """Wait until nothing waits and nothing runs, `seconds` at most."""
        end = time.monotonic() + seconds
        while not self.lane.drained and time.monotonic() < end:
            await asyncio.sleep(0.02)

    # Use --------------------------------------------------------------------------------------------------------------
    def record(self, feed: Feed) -> None:
        """Remember the shapes of a request, to warm up the version that comes after this one."""
        if any(len(level) > 64 for tensor in feed.values() for level in tensor.lod):
            return
        shapes = tuple((tensor.array.shape, *map(tuple, tensor.lod)) for tensor in feed.values())
        text = self._texts.get(shapes)
        if text is None:  # of each batch; most have shapes that came before, or come when enough are known
            if len(self.recorded) >= MAX_RECORDED:
                return
            text = json.dumps({name: {"shape": list(t.array.shape), "lod": t.lod} for name, t in feed.items()})
            if len(text) >= 4096:
                return
            self._texts[shapes] = text
        self.recorded[text] += 1

    def metadata(self, versions: list[str]) -> dict[str, Any]:
        """The model metadata of the protocol."""
        return {
            "name": self.name,
            "versions": versions,
            "platform": "oprack",
            "inputs": [row for spec in self.signature.inputs for row in spec.described()],
            "outputs": [row for spec in self.signature.outputs for row in spec.described()],
            "parameters": {"batching": self.lane.rule.described(), "max_batch": self.lane.max_batch},
        }
