"""NCCL's collectives as a Communicator: arrays of GPUs by CuPy's bindings, all else by a communicator of hosts.

Not run on several GPUs yet: the tests compare it with NumPy over a stand-in that checks every argument.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from oprack.device import DeviceContext
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.parallel import Communicator
from oprack.parallel.reductions import scaled
from oprack.parallel.transfers import Running
from oprack.parallel.world import launched_engine, open_engine
from oprack.tensor import CUDAPlace

from oprack_cuda.context import open_cuda
from oprack_cuda.library import CUDA

_CODES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16")
"""Dtypes that NCCL adds, by the names of its constants."""
_AS = {"bool": "uint8", "int16": "int32", "uint16": "uint32", "complex64": "float32", "complex128": "float64"}
"""What others are added as; complex numbers as pairs."""


class NCCLCommunicator(Communicator):
    """Collectives on arrays of a GPU, enqueued on its context's stream; the host does not wait for them.

    What is started goes on a stream of its own, beside kernels: it waits there for what was enqueued before, and the
    context's stream waits for it when its result is asked for.

    Arrays in host memory, facts and groups go by the communicator of hosts, over which the id that NCCL's communicators
    meet by is spread as well.

    Args:
        host: The same ranks, for arrays in host memory.
        device: The context of this rank's GPU.
        nccl: The module `cupy.cuda.nccl`.

    Attributes:
        place: This rank's GPU.
    """

    engine = "nccl"

    def __init__(self, host: Communicator, device: DeviceContext, nccl: Any) -> None:
        super().__init__(host.rank, host.size, host.name)
        self._host, self._nccl = host, nccl
        self._device: Any = device  # streams and events are of CUDA's contexts alone
        self.place = device.place
        self._side: Any = None  # the stream of what is started
        self._on_side = False
        ids = host.gather_facts([int(x) for x in nccl.get_unique_id()] if host.rank == 0 else None)
        with device.activate():
            self._comm = nccl.NcclCommunicator(host.size, tuple(ids[0]), host.rank)

    # What NCCL is told ------------------------------------------------------------------------------------------------
    def _code(self, dtype: np.dtype[Any]) -> int | None:
        name = f"NCCL_{np.dtype(dtype).name.upper()}"
        code: int | None = getattr(self._nccl, name, None) if np.dtype(dtype).name in _CODES else None
        return code

    def _addable(self, x: Any, op: str) -> Any:
        """The array in a dtype that NCCL adds, on the same memory where that is possible."""
        name = np.dtype(x.dtype).name
        if self._code(x.dtype) is not None:
            return x
        if name == "bool":
            return x.view(np.uint8)
        if name.startswith("complex") and op == "sum":
            return x.reshape(-1).view(_AS[name])
        if name in ("int16", "uint16", "bfloat16"):
            return x.astype(_AS.get(name, "float32"))
        raise InvalidArgumentError(
            f"{self!r}: all_reduce {op!r} of {name}; NCCL reduces integers, floats and booleans, and adds complex ones"
        )

    @property
    def _stream(self) -> int:
        return int((self._side if self._on_side else self._device.stream).ptr)

    @contextlib.contextmanager
    def _active(self) -> Iterator[None]:
        """Let the GPU and the stream be current on which the collective is enqueued, for its arrays and copies."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._device.activate())
            if self._on_side:
                stack.enter_context(self._side)
            yield

    def _get_ready(self) -> None:
        self._host._get_ready()

    def _ends(self, x: Any, running: Running | None = None) -> Callable[[], bool] | None:
        if running is not None and not isinstance(running, _Enqueued):
            return None  # the hosts' own
        if running is None and not isinstance(x, self._device.xp.ndarray):
            return None
        done = self._device.event() if running is None else running.done

        def ends() -> bool:
            if not done.done:
                self._comm.check_async_error()  # of the network, or of a rank that is gone
            return bool(done.done)

        return ends

    def _start(self, collective: str, x: Any, *arguments: Any) -> Running | None:
        if isinstance(x, np.ndarray):
            return self._host._start(collective, x, *arguments)
        if self._side is None:
            self._side = self._device.new_stream()
        self._side.wait_event(self._device.event())
        self._on_side = True
        try:
            if collective == "all_gather":
                start = sum(arguments[0][: self.rank])
                found = self._gathered(x[start : start + arguments[0][self.rank]], arguments[0], x)
            else:
                how, factor = arguments
                with self._active():
                    given = scaled(x, factor)
                found = getattr(self, f"_{collective}")(given, how)
            done = self._side.record()
        finally:
            self._on_side = False
        return _Enqueued(self._device, done, x, found)

    @contextlib.contextmanager
    def _group(self) -> Iterator[None]:
        """Calls that NCCL starts together, so that none of them waits for another."""
        self._nccl.groupStart()
        try:
            yield
        finally:
            self._nccl.groupEnd()

    def _bytes(self) -> int:
        """The code of what is moved and not added."""
        code: int = self._nccl.NCCL_UINT8
        return code

    # Collectives ------------------------------------------------------------------------------------------------------
    def _all_reduce(self, x: Any, op: str) -> Any:
        if isinstance(x, np.ndarray):
            return self._host._all_reduce(x, op)
        with self._active():
            given = self._addable(x, op)
            return self._reduced(given, self._device.xp.empty_like(given), op, x)

    def _all_reduce_in_place(self, x: Any, op: str) -> Any:
        if isinstance(x, np.ndarray):
            return self._host._all_reduce_in_place(x, op)
        with self._active():
            given = self._addable(x, op)
            return self._reduced(given, given, op, x)

    def _reduced(self, given: Any, out: Any, op: str, like: Any) -> Any:
        code, kind = self._code(given.dtype), getattr(self._nccl, f"NCCL_{op.upper()}")
        self._comm.allReduce(given.data.ptr, out.data.ptr, int(given.size), code, kind, self._stream)
        return self._as_before(out, like.dtype, like.shape)

    def _as_before(self, out: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        """What was reduced, as the dtype that was given."""
        if np.dtype(dtype).kind == "c":
            return out.view(dtype).reshape(tuple(shape))
        return out if out.dtype == dtype else out.astype(dtype)

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        if isinstance(x, np.ndarray):
            return self._host._all_gather(x, counts)
        with self._active():
            out = self._device.xp.empty((sum(counts), *x.shape[1:]), x.dtype)
        return self._gathered(x, counts, out)

    def _gathered(self, x: Any, counts: Sequence[int], out: Any) -> Any:
        """`out`, which the rows of all ranks are written into; `x` may be this rank's part of it."""
        row = _row_bytes(x)
        with self._active():
            if len(set(counts)) == 1:
                self._comm.allGather(x.data.ptr, out.data.ptr, counts[0] * row, self._bytes(), self._stream)
                return out
            start = out.data.ptr
            with self._group():  # NCCL gathers parts of one size, so each rank spreads its own
                for rank, rows in enumerate(counts):
                    if rows:
                        mine = x.data.ptr if rank == self.rank else start
                        self._comm.broadcast(mine, start, rows * row, self._bytes(), rank, self._stream)
                    start += rows * row
        return out

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        if isinstance(x, np.ndarray):
            return self._host._reduce_scatter(x, counts)
        kind = self._nccl.NCCL_SUM
        shape = (counts[self.rank], *x.shape[1:])
        with self._active():
            given = self._addable(x, "sum")
            pairs = 2 if np.dtype(x.dtype).kind == "c" else 1
            row = math.prod(x.shape[1:]) * pairs
            out = self._device.xp.empty((counts[self.rank] * row,), given.dtype)
            code = self._code(given.dtype)
            if len(set(counts)) == 1:
                self._comm.reduceScatter(given.data.ptr, out.data.ptr, counts[0] * row, code, kind, self._stream)
            else:
                start = given.data.ptr
                with self._group():
                    for rank, rows in enumerate(counts):
                        if rows:
                            to = out.data.ptr if rank == self.rank else start
                            self._comm.reduce(start, to, rows * row, code, kind, rank, self._stream)
                        start += rows * row * np.dtype(given.dtype).itemsize
            return self._as_before(out, x.dtype, shape).reshape(shape)

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        if isinstance(parts[0], np.ndarray):
            return self._host._all_to_all(parts, shapes)
        with self._active():
            found = [self._device.xp.empty(tuple(s), parts[0].dtype) for s in shapes]
            with self._group():
                for rank, (part, got) in enumerate(zip(parts, found, strict=True)):
                    if part.size:
                        self._comm.send(part.data.ptr, int(part.nbytes), self._bytes(), rank, self._stream)
                    if got.size:
                        self._comm.recv(got.data.ptr, int(got.nbytes), self._bytes(), rank, self._stream)
        return found

    def _broadcast(self, x: Any, root: int) -> Any:
        if isinstance(x, np.ndarray):
            return self._host._broadcast(x, root)
        with self._active():
            out = self._device.xp.empty_like(x)
            self._comm.broadcast(x.data.ptr, out.data.ptr, int(x.nbytes), self._bytes(), root, self._stream)
        return out

    def _send(self, x: Any, to: int) -> None:
        with self._active():
            given = self._device.from_host(x) if isinstance(x, np.ndarray) else x
            self._comm.send(given.data.ptr, int(given.nbytes), self._bytes(), to, self._stream)

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        with self._active():
            out = self._device.xp.empty(tuple(shape), dtype)
            self._comm.recv(out.data.ptr, int(out.nbytes), self._bytes(), source, self._stream)
        return out

    def _gather_facts(self, value: Any) -> list[Any]:
        return self._host._gather_facts(value)

    def _split(self, color: int, key: int, name: str) -> Communicator:
        return NCCLCommunicator(self._host.split(color, key, name), self._device, self._nccl)

    def abort(self, code: int, reason: str = "") -> None:
        self._comm.abort()
        self._host.abort(code, reason)


class _Enqueued:
    """A collective on the stream of its own; the array that it reads stays as long as it does."""

    def __init__(self, device: Any, done: Any, given: Any, found: Any) -> None:
        self._device, self.done, self._given, self._found = device, done, given, found

    def test(self) -> bool:
        return bool(self.done.done)

    def wait(self) -> Any:
        self._device.wait(self.done)
        return self._found


def _row_bytes(x: Any) -> int:
    return math.prod(x.shape[1:]) * int(np.dtype(x.dtype).itemsize)


def open_world() -> Communicator:
    """The communicator of all ranks on GPUs: `oprack.parallel.init("nccl")`, or OPRACK_ENGINE=nccl.

    Ranks are started by a launcher of MPI, whose communicator serves the hosts. Each rank of a machine takes a GPU of
    its own, in order.

    Returns:
        The communicator; its attribute `place` is this rank's GPU.

    Raises:
        PreconditionNotMetError: CuPy, the driver, a GPU or NCCL is missing.
        InvalidArgumentError: Two ranks would share a GPU.
    """
    cupy = CUDA.require("engine nccl")
    from cupy.cuda import nccl

    if not nccl.available:
        raise PreconditionNotMetError(
            f"engine nccl: CuPy {cupy.__version__} finds no NCCL; pip install nvidia-nccl-cu12 (or -cu13), or your "
            "system's libnccl2"
        )
    host = open_engine(launched_engine() or "local")
    machine = os.uname().nodename
    before = sum(name == machine for name in host.gather_facts(machine)[: host.rank])
    place = CUDAPlace(before % cupy.cuda.runtime.getDeviceCount())
    taken = host.gather_facts([machine, cupy.cuda.Device(place.device_id).pci_bus_id])
    other = taken.index(taken[host.rank])
    if other != host.rank:
        raise InvalidArgumentError(
            f"engine nccl: ranks {other} and {host.rank} on {machine} have one GPU, {taken[other][1]}; NCCL wants one "
            "for each: start no more ranks than there are GPUs, and see CUDA_VISIBLE_DEVICES"
        )
    return NCCLCommunicator(host, open_cuda(place), nccl)
