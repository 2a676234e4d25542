"""Device contexts of places cuda and cuda_pinned: stream, library handles, memory, and copies to and from the host."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
from oprack.device import DeviceContext, set_constant_store
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import CUDAPinnedPlace, CUDAPlace

from oprack_cuda.constants import ConstantStore
from oprack_cuda.graphs import RecordedPlan
from oprack_cuda.library import CUDA

# Pinned buffers that wait for their copy; looked through whenever so many have gathered
_IN_FLIGHT = 64


_constants = functools.cache(ConstantStore)


@functools.cache
def open_cuda(place: CUDAPlace) -> CUDADeviceContext:
    """The context of a GPU, one for all executors: what one of them enqueued is done before another's work of the same
    thread begins.
    """
    return CUDADeviceContext(place)


@functools.cache
def open_pinned(place: CUDAPinnedPlace) -> CUDAPinnedDeviceContext:
    """The context of page-locked memory."""
    return CUDAPinnedDeviceContext(place)


class CUDADeviceContext(DeviceContext):
    """One GPU. Kernels and copies are enqueued on `stream`, one per thread; `activate` makes both current.

    Memory comes from CuPy's pool, which hands a freed block out again on the stream that it was used on: a temporary
    may be dropped as soon as its last kernel is enqueued. Memory of the host has no such pool: `hold` keeps it until
    the stream has passed. Raises PreconditionNotMetError when CuPy, the driver or the device is missing.
    """

    def __init__(self, place: CUDAPlace) -> None:
        super().__init__(place)
        cupy = CUDA.require(repr(place))
        count = cupy.cuda.runtime.getDeviceCount()
        if not 0 <= place.device_id < count:
            raise InvalidArgumentError(
                f"{place!r}: the driver lists {count} GPU(s), numbered from 0; see CUDA_VISIBLE_DEVICES"
            )
        self.xp = cupy
        set_constant_store(cupy, _constants(cupy))
        self.device = cupy.cuda.Device(place.device_id)
        self._of_thread = threading.local()

    @property
    def stream(self) -> Any:
        """The calling thread's stream on this device; it and the legacy default stream do not wait for each other."""
        found = getattr(self._of_thread, "stream", None)
        if found is None:
            # A stream that waits for the legacy default stream would wait for every library that uses that one.
            found = self._of_thread.stream = self.new_stream()
            self._of_thread.in_flight = deque()
        return found

    def new_stream(self) -> Any:
        """A stream beside that of the thread, for work that `wait` brings together with it again."""
        with self.device:
            return self.xp.cuda.Stream(non_blocking=True)

    @contextlib.contextmanager
    def activate(self) -> Iterator[None]:
        """Make the device and the stream current in the calling thread, so that everything is enqueued there."""
        with self.device, self.stream:
            yield

    # Recording --------------------------------------------------------------------------------------------------------
    def plan_function(self, function: Callable[..., Any], op_types: Collection[str]) -> Callable[..., Any]:
        return RecordedPlan(function, op_types, self)

    def capture(
        self, function: Callable[..., list[Any]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], list[Any]]:
        """Record what `function(*arguments)` enqueues, without running it: (launch, results that each launch fills).

        Its temporaries come from a pool of their own, so that nothing else is ever put where the graph writes.
        Raises what CUDA, CuPy or the function raise; the stream records no more then.
        """
        # The default pool would hand a temporary's block to others, and the next launch would write there.
        pool, stream = self.xp.cuda.MemoryPool(), self.stream
        with self.activate(), self.xp.cuda.using_allocator(pool.malloc):
            stream.begin_capture()
            try:
                results = function(*arguments)
            except BaseException:
                with contextlib.suppress(Exception):  # the recording is broken; the error above says why
                    stream.end_capture()
                raise
            graph = stream.end_capture()

        def launch(pool: Any = pool) -> None:
            graph.launch(stream=stream)

        return launch, results

    # Library handles and events ---------------------------------------------------------------------------------------
    def cublas(self) -> int:
        """cuBLAS's handle, set to the current stream; CuPy keeps one per thread and device."""
        with self.device:
            return int(self.device.cublas_handle)

    def event(self, *, timing: bool = False) -> Any:
        """An event recorded now on the stream: `context.wait(event)` on another stream, event.synchronize() here."""
        with self.activate():
            event = self.xp.cuda.Event(disable_timing=not timing)
            event.record(self.stream)
        return event

    def wait(self, event: Any) -> None:
        """Let the stream wait for an event of another stream or device; the host goes on."""
        self.stream.wait_event(event)

    def synchronize(self) -> None:
        self.stream.synchronize()

    # Copies -----------------------------------------------------------------------------------------------------------
    def from_host(self, array: np.ndarray) -> Array:
        """The array on the device, by one copy; pageable memory goes through CuPy's pinned staging pool."""
        if isinstance(array, self.xp.ndarray):
            return self._from_device(array)
        with self.activate():
            # CuPy copies pageable memory before it returns, so that the array may go or change.
            if not is_pinned(array):
                return self.xp.array(array, order="C")
            array = np.ascontiguousarray(array)
            copied = self.xp.empty(array.shape, array.dtype)
            copied.set(array, stream=self.stream)
            self.hold(array)
        return copied

    def _from_device(self, array: Array) -> Array:
        """An array that its owner may have computed on another device or stream."""
        device: Any = array.device  # CuPy's, which NumPy's types know as "cpu"
        if device.id == self.place.device_id:
            return array
        source = self.xp.cuda.Device(device.id)
        with source:
            # Nobody says on which stream its owner computed it, so all work of that device is waited for.
            source.synchronize()
        with self.activate():
            return self.xp.array(array)

    def to_host(self, array: Array) -> np.ndarray:
        """The array on the host, by one copy into pinned memory; waits until it is there."""
        if isinstance(array, np.ndarray):
            return array
        with self.activate():
            copied = pinned_empty(self.xp, array.shape, array.dtype)
            self.xp.ascontiguousarray(array).get(stream=self.stream, out=copied)
        return copied

    def hold(self, host: Any) -> None:
        """Keep an object alive until the stream has passed what is enqueued now."""
        event = self.event()
        waiting = self._of_thread.in_flight
        waiting.append((event, host))
        while len(waiting) > _IN_FLIGHT or (waiting and waiting[0][0].done):
            waiting.popleft()[0].synchronize()

    # Memory -----------------------------------------------------------------------------------------------------------
    def memory(self) -> dict[str, int]:
        """Bytes: used by arrays, held by the pool, free and total on the device."""
        with self.device:
            pool = self.xp.get_default_memory_pool()
            free, total = self.device.mem_info
            return {"used": pool.used_bytes(), "held": pool.total_bytes(), "free": free, "total": total}

    def limit_memory(self, size: int) -> None:
        """The pool asks the device for no more than `size` bytes; 0 = no limit."""
        with self.device:
            self.xp.get_default_memory_pool().set_limit(size=size)

    def release_memory(self) -> int:
        """Give blocks that no array uses back to the device; bytes that the pool still holds."""
        self.synchronize()
        with self.device:
            pool = self.xp.get_default_memory_pool()
            pool.free_all_blocks()
            self.xp.get_default_pinned_memory_pool().free_all_blocks()
            return int(pool.total_bytes())


class CUDAPinnedDeviceContext(DeviceContext):
    """Page-locked memory of the host: feeds that live here are copied to a GPU without staging. No kernel runs here."""

    xp = np

    def __init__(self, place: CUDAPinnedPlace) -> None:
        super().__init__(place)
        self._cupy = CUDA.require(repr(place))

    def from_host(self, array: np.ndarray) -> np.ndarray:
        copied = pinned_empty(self._cupy, array.shape, array.dtype)
        copied[...] = array
        return copied

    def to_host(self, array: np.ndarray) -> np.ndarray:
        return array

    def synchronize(self) -> None:
        """Memory of the host: nothing is enqueued here."""


def pinned_empty(cupy: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array in page-locked memory of CuPy's pool, which takes it back when the last view of it dies."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    if not size:
        return np.empty(shape, dtype)
    memory = cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
    return np.frombuffer(memory, np.uint8, size * dtype.itemsize).view(dtype).reshape(shape)


def is_pinned(array: np.ndarray) -> bool:
    """Whether an array lies in memory that pinned_empty gave."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return type(base).__name__ == "PinnedMemoryPointer"
