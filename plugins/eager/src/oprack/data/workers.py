"""Worker processes of a DataLoader: the loop that makes batches in each, and the pool that hands them out.

Each worker has a pipe of its own, so none can block or break another. What a batch draws at random follows from its
number, and neither from the worker that makes it nor from when.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import queue
import random
import select
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from numpy.random import mtrand
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import InvalidArgumentError, WorkerError, WorkerTimeoutError

_GRACE = 1.0  # seconds in which a worker may finish its batch once nobody wants it
_SETUP = -1  # number of the failure of worker_init_fn, which belongs to no batch
_SMALL = 16 << 10  # bytes for which a pipe that takes any has room
_COLLATING = -1  # position in a batch whose examples are all there


@dataclass(frozen=True)
class WorkerInfo:
    """A worker process of a DataLoader.

    Attributes:
        id: Its number, 0 to num_workers - 1.
        num_workers: How many there are.
        seed: A number of its own, from which a generator of the dataset's own can start.
        dataset: The worker's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker of a DataLoader that the caller runs in, for datasets and worker_init_fn.

    Returns:
        The worker; None outside of workers, where a DataLoader with num_workers=0 makes its batches, too.
    """
    return _info


def seed_draws(twister: np.random.MT19937, *numbers: int) -> None:
    """Let the next draws of `random`, of NumPy's global generator and of eager ops follow from these numbers alone.

    Args:
        twister: What NumPy's global generator draws from then.
        numbers: The numbers.
    """
    seeds = hashlib.blake2b(repr(numbers).encode(), digest_size=32).digest()
    random.seed(int.from_bytes(seeds[:16], "little"))
    # NumPy takes hundreds of microseconds to tell or to set the state of a generator, and one to take another one.
    mtrand.set_bit_generator(twister)
    np.random.seed(np.frombuffer(seeds, np.uint32, 2, 16))
    RANDOM.load_state({"seed": int.from_bytes(seeds[24:], "little"), "draws": {}})


@contextlib.contextmanager
def kept_draws() -> Iterator[None]:
    """Let a block seed the generators of `seed_draws`; outside, they go on from where they were."""
    before = random.getstate(), mtrand.get_bit_generator(), RANDOM.state()
    try:
        yield
    finally:
        random.setstate(before[0])
        mtrand.set_bit_generator(before[1])
        RANDOM.load_state(before[2])


def make_batch(dataset: Any, collate: Callable[[list[Any]], Any], indices: Iterable[Any], position: Any = None) -> Any:
    """A batch of the examples of these indices; an exception says by a note which of them it came from.

    Args:
        dataset: The dataset.
        collate: Makes a batch of a list of examples.
        indices: Which examples.
        position: Its item 1 is set to the position in `indices` that is being read.

    Returns:
        The batch.
    """
    examples = []
    for at, index in enumerate(indices):
        if position is not None:
            position[1] = at
        try:
            examples.append(dataset[index])
        except BaseException as error:
            error.add_note(f"DataLoader: this came from example {index!r} of the dataset")
            raise
    if position is not None:
        position[1] = _COLLATING
    return collate(examples)


# In a worker --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Failure:
    """An exception on its way to the main process, as text and, where it survives that, as itself."""

    name: str
    message: str
    trace: str
    pickled: bytes | None


def _failure(error: BaseException) -> _Failure:
    name = type(error).__qualname__
    if type(error).__module__ not in ("builtins", "__main__", "__mp_main__"):
        name = f"{type(error).__module__}.{name}"
    message, pickled = "", None
    with contextlib.suppress(Exception):
        message = str(error)
    # Exceptions with an __init__ of their own often do not unpickle, or come back with another text.
    for way in (error, _Parts(error)):
        with contextlib.suppress(Exception):
            data = pickle.dumps(way)
            back = pickle.loads(data)  # our own bytes
            if type(back) is type(error) and str(back) == message:
                pickled = data
                break
    return _Failure(name, message, "".join(traceback.format_exception(error)).rstrip(), pickled)


class _Parts:
    """An exception that unpickles without a call of its __init__."""

    def __init__(self, error: BaseException) -> None:
        self.parts = type(error), error.args, error.__dict__

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_parts, self.parts


def _of_parts(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _work(
    connection: Connection,
    info: WorkerInfo,
    base: int,
    position: Any,
    collate: Callable[[list[Any]], Any],
    init: Callable[[int], Any] | None,
) -> None:
    """What a worker does: batch after batch, until an empty message comes or the main process is gone."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the main one says what it means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _info = info
    answers = _Answers(connection)
    twister = np.random.MT19937(0)
    try:
        seed_draws(twister, base, info.id, 1)
        if init is not None:
            init(info.id)
    except BaseException as error:
        answers.put(bytes(ForkingPickler.dumps((_SETUP, _failure(error)))))
    parent = multiprocessing.parent_process()
    assert parent is not None
    while connection in wait([connection, parent.sentinel]):
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        if not message:
            return
        task, seed, indices = pickle.loads(message)  # from the process that started this one
        position[:] = task, 0
        try:
            seed_draws(twister, *seed)
            answer: Any = make_batch(info.dataset, collate, indices, position)
            data = bytes(ForkingPickler.dumps((task, answer)))
        except BaseException as error:
            data = bytes(ForkingPickler.dumps((task, _failure(error))))
        answers.put(data)


class _Answers:
    """Sends answers; a thread does where the pipe is full, since the main process empties it only between its steps."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self._waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._room = None
        if hasattr(select, "poll"):
            self._room = select.poll()
            self._room.register(connection.fileno(), select.POLLOUT)
        threading.Thread(target=self._send, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Send an answer, now or once there is room for it."""
        # A thread waits for the interpreter, up to 5 ms; a small answer has room in a pipe that takes any.
        if len(data) <= _SMALL and self._room is not None and self._waiting.empty() and not self._lock.locked():
            with self._lock:
                if self._room.poll(0):
                    with contextlib.suppress(OSError):  # the main process wants no more
                        self._connection.send_bytes(data)
                    return
        self._waiting.put(data)

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = self._waiting.get()
                with self._lock:
                    self._connection.send_bytes(data)


# In the main process ------------------------------------------------------------------------------------------------
@dataclass
class _Worker:
    id: int
    process: BaseProcess
    connection: Connection
    position: Any
    tasks: dict[int, list[Any]] = field(default_factory=dict)  # indices of what it has not answered

    def __str__(self) -> str:
        return f"worker {self.id} (process {self.process.pid})"

    def work(self) -> str:
        """What it is at, for a message."""
        task, at = self.position  # answers to tasks before this one may be on their way, or lost
        indices = self.tasks.get(task)
        if indices is None:
            return "it had no batch to make"
        batch = f"of the batch of examples {_shortened(indices)}"
        return f"it was at example {indices[at]!r} {batch}" if at >= 0 else f"it was at the collate_fn {batch}"


class WorkerPool:
    """Workers of a DataLoader, who make batches for one loop at a time.

    Args:
        dataset: The dataset.
        collate: Makes a batch of a list of examples.
        count: How many workers.
        init: Called in each worker when it starts, with its number.
        method: How processes start; None as Python does.
        base: Seed of what `init` draws.

    Raises:
        InvalidArgumentError: The dataset can't be sent to a process.
    """

    def __init__(
        self,
        dataset: Any,
        collate: Callable[[list[Any]], Any],
        count: int,
        init: Callable[[int], Any] | None,
        method: str | None,
        base: int,
    ) -> None:
        context: Any = multiprocessing.get_context(method)
        self.broken = False  # whether another loop would find something left over from this one
        self._grace = _GRACE
        self._workers: list[_Worker] = []
        self._sent = 0
        self._done: dict[int, tuple[_Worker, Any]] = {}
        self._end = weakref.finalize(self, _ended, self._workers, os.getpid(), 0)
        for number in range(count):
            here, there = context.Pipe()
            position = context.RawArray("q", [_SETUP, 0])
            seed = (base + number) % 2**32  # as np.random.seed takes
            info = WorkerInfo(number, count, seed, dataset)
            process = context.Process(
                target=_work, args=(there, info, base, position, collate, init), name=f"worker-{number}", daemon=True
            )
            try:
                process.start()
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                self.close()
                raise InvalidArgumentError(
                    f"DataLoader: a worker that starts by {context.get_start_method()!r} takes dataset, collate_fn and "
                    f"worker_init_fn by pickle, which fails: {error}; define them at the top of a module, or pass "
                    "num_workers=0"
                ) from error
            finally:
                there.close()  # or the end of the worker would not be seen here
            self._workers.append(_Worker(number, process, here, position))

    def close(self) -> None:
        """End the workers; one that is at a batch has a second for it, and none after a timeout or Ctrl-C."""
        if self._end.detach():
            _ended(self._workers, os.getpid(), self._grace)

    def batches(self, batch_sampler: Iterable[Any], base: int, ahead: int, timeout: float) -> Iterator[Any]:
        """Batches in their order.

        Args:
            batch_sampler: Lists of indices.
            base: Seed of this loop.
            ahead: How many batches are ready or in work at a time.
            timeout: Seconds to wait for one; 0 waits for any time.

        Yields:
            The batches.

        Raises:
            WorkerError: A worker died, or raised what can't be raised again here.
            WorkerTimeoutError: A batch did not come in time.
        """
        first = wanted = self._sent
        self._done.clear()
        source = iter(batch_sampler)
        try:
            self._fill(source, base, first, wanted + ahead)
            while wanted < self._sent:
                self._receive(wanted, first, timeout)
                worker, answer = self._done.pop(wanted)
                wanted += 1
                if isinstance(answer, _Failure):
                    raise _raised_again(worker, answer)
                self._fill(source, base, first, wanted + ahead)
                yield answer
        except GeneratorExit:  # the loop ended early; the next one leaves out what it did not take
            raise
        except BaseException as error:
            self.broken = True
            if isinstance(error, WorkerError | KeyboardInterrupt):
                self._grace = 0.0
            raise

    def _fill(self, source: Iterator[Any], base: int, first: int, until: int) -> None:
        for indices in islice(source, until - self._sent):
            given = list(indices)
            worker = min(self._workers, key=lambda w: len(w.tasks))
            worker.tasks[self._sent] = given
            try:
                worker.connection.send_bytes(pickle.dumps((self._sent, (base, self._sent - first), given)))
            except OSError:
                raise self._died(worker) from None
            self._sent += 1

    def _receive(self, wanted: int, first: int, timeout: float) -> None:
        """Take answers until that of `wanted` is there; those before `first` are of a loop that ended early."""
        deadline = time.monotonic() + timeout
        while wanted not in self._done:
            handles = [handle for w in self._workers for handle in (w.connection, w.process.sentinel)]
            ready = wait(handles, max(deadline - time.monotonic(), 0) if timeout else None)
            if not ready:
                raise self._late(wanted, timeout)
            for worker in self._workers:
                if worker.connection in ready:
                    self._take(worker, first)
                elif worker.process.sentinel in ready:
                    raise self._died(worker)

    def _take(self, worker: _Worker, first: int) -> None:
        try:
            data = worker.connection.recv_bytes()
        except (EOFError, OSError):
            raise self._died(worker) from None
        task, answer = pickle.loads(data)  # from a process that this one started
        if task == _SETUP:
            raise _raised_again(worker, answer)
        del worker.tasks[task]
        if task >= first:
            self._done[task] = worker, answer

    def _died(self, worker: _Worker) -> WorkerError:
        worker.process.join(_GRACE)
        code = worker.process.exitcode
        how = f"ended with exit status {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        advice = ""
        if code == -getattr(signal, "SIGKILL", 0):
            advice = "; where nobody did that, memory ran out: take fewer workers or smaller batches"
        elif code == 1:
            advice = (
                "; its traceback is in the standard error above; a program whose workers start by 'spawn' or "
                "'forkserver' needs `if __name__ == \"__main__\":` around what it runs"
            )
        return WorkerError(f"DataLoader: {worker} {how}; {worker.work()}{advice}")

    def _late(self, wanted: int, timeout: float) -> WorkerTimeoutError:
        worker = next(w for w in self._workers if wanted in w.tasks)
        return WorkerTimeoutError(
            f"DataLoader: no batch came within timeout={timeout:g} seconds from {worker}; {worker.work()}; look why "
            "that takes so long, or pass a longer timeout"
        )


def _raised_again(worker: _Worker, failure: _Failure) -> BaseException:
    """The exception of a worker, of its own class where that can be made here."""
    where = f"DataLoader: raised in {worker}:\n{failure.trace}"
    if failure.pickled is not None:
        with contextlib.suppress(Exception):
            error: BaseException = pickle.loads(failure.pickled)
            error.add_note(where)
            return error
    return WorkerError(f"{failure.name}: {failure.message}\n{where}")


def _ended(workers: list[_Worker], pid: int, grace: float) -> None:
    if os.getpid() != pid:  # a copy in a forked process, whose parent still has the workers
        return
    deadline = time.monotonic() + grace
    for worker in workers if grace else ():
        with contextlib.suppress(OSError):
            worker.connection.send_bytes(b"")
    for worker in workers:
        worker.process.join(max(deadline - time.monotonic(), 0))
    for end in (BaseProcess.terminate, BaseProcess.kill):
        for worker in workers:
            if worker.process.is_alive():
                end(worker.process)
        for worker in workers:
            worker.process.join(_GRACE)
    for worker in workers:
        worker.connection.close()
        with contextlib.suppress(ValueError):  # one that even SIGKILL does not reach, such as in a dead mount
            worker.process.close()
    workers.clear()


def _shortened(indices: list[Any]) -> str:
    return f"[{', '.join(map(repr, indices[:8]))}{', ...' if len(indices) > 8 else ''}]"
