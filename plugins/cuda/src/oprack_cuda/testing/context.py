"""A device context over strict arrays, and an executor whose place cuda it serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from oprack.device import DeviceContext, DeviceContextPool, set_constant_store
from oprack.runtime import Executor
from oprack.runtime.run_context import RandomState
from oprack.tensor import CUDAPlace, Place

from oprack_cuda import raw
from oprack_cuda.graphs import RecordedPlan
from oprack_cuda.testing import emulator, nccl
from oprack_cuda.testing.namespace import xp
from oprack_cuda.testing.strict import LOG, Pointer, StrictArray


def _constant(array: np.ndarray) -> StrictArray:
    """Constants are copied once, which counts for nothing, and are not written into."""
    copied = array.copy()
    copied.flags.writeable = False
    return StrictArray(copied)


set_constant_store(xp, _constant)
raw.set_backend(xp.__name__, emulator.find)


class Stream:
    """A stream beside the context's, whose work is done when its call returns; it notes who waits for whom.

    Attributes:
        waited: How many events of the context's stream it waited for.
        open: Events of it that the context's stream has not waited for.
    """

    ptr = 1

    def __init__(self) -> None:
        self.waited, self.open = 0, list[Event]()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_event(self, event: Event) -> None:
        """Wait for what another stream had enqueued."""
        if event.stream is self:
            raise RuntimeError("a stream waits for itself")
        self.waited += 1

    def record(self) -> Event:
        """An event that is over when the work so far is."""
        self.open.append(Event(self))
        return self.open[-1]


class Event:
    """A point in a stream; None: in the context's. Nobody may wait for it on the host."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream, self._work = stream, nccl.enqueued()

    @property
    def done(self) -> bool:
        """Whether what was enqueued before is over."""
        return self._work is None or not self._work.is_alive()


class StrictDeviceContext(DeviceContext):
    """Place cuda over memory of the host; copies both ways, as a device does."""

    xp = xp
    stream = Pointer(0)

    def new_stream(self) -> Stream:
        """A stream of its own."""
        return Stream()

    def event(self) -> Event:
        """A point in the context's stream."""
        return Event(None)

    def wait(self, event: Event) -> None:
        """Let the context's stream wait for one of another."""
        if event.stream is None:
            raise RuntimeError("a stream waits for itself")
        event.stream.open.remove(event)

    def from_host(self, array: np.ndarray) -> StrictArray:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"from_host got a {type(array).__name__}; expected numpy.ndarray")
        LOG.copy("from_host")
        return StrictArray(array.copy())

    def to_host(self, array: StrictArray) -> np.ndarray:
        if not isinstance(array, StrictArray):
            raise TypeError(f"to_host got a {type(array).__name__}; expected an array of the device")
        LOG.wait("to_host")
        return array._host.copy()

    def synchronize(self) -> None:
        """Work is done when its call returns."""

    def plan_function(self, function: Callable[..., Any], op_types: Collection[str]) -> Callable[..., Any]:
        return RecordedPlan(function, op_types, self)

    def capture(
        self, function: Callable[..., list[Any]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], list[Any]]:
        """As a device records: the results' arrays are known, but nothing has run yet."""
        touched = [a for a in arguments if isinstance(a, StrictArray)]
        before = [a._host.copy() for a in touched]
        LOG.clear()
        results = function(*arguments)
        if LOG.waits or LOG.copies:
            raise RuntimeError(f"recorded work waits or copies: {dict(LOG.waits)} {dict(LOG.copies)}")
        for array, was in zip(touched, before, strict=True):
            array._host[...] = was
        fixed = {id(a) for a in touched}

        def launch() -> None:
            for target, new in zip(results, function(*arguments), strict=True):
                if isinstance(target, StrictArray) and id(target) not in fixed:
                    target._host[...] = new._host

        return launch, results


class _LoggedRandom(RandomState):
    """Numbers of the host's generators count as copies."""

    def generator(self, *arguments: Any) -> np.random.Generator:
        LOG.copy("a generator of the host")
        return super().generator(*arguments)


class OpWatch:
    """Per op type of a run on the reference path: how often it ran, and how often it waited or copied."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.waited: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()

    def before_op(self, op: Any, scope: Any) -> None:
        LOG.clear()

    def after_op(self, op: Any, scope: Any) -> None:
        if not op.runs_itself:
            self.ran[op.type] += 1
            self.waited[op.type] += bool(LOG.waits)
            self.copied[op.type] += bool(LOG.copies)


class StrictExecutor(Executor):
    """An executor with observers of its own."""

    watches: Sequence[Any] = ()

    def run_prepared(self, program: Any, scope: Any, keep: Any = None, observers: Sequence[Any] = ()) -> None:
        super().run_prepared(program, scope, keep, [*self.watches, *observers])


def strict_executor(place: Place | None = None, watch: OpWatch | None = None, **options: Any) -> Executor:
    """`Executor(place, **options)` whose places of kind cuda are strict contexts. watch: looks at every op."""
    executor = StrictExecutor(place or CUDAPlace(0), **options)
    executor.random = _LoggedRandom(executor.random.seed)
    executor.watches = [] if watch is None else [watch]
    executor.pool = DeviceContextPool(lambda kind: StrictDeviceContext if kind == "cuda" else None)
    return executor
