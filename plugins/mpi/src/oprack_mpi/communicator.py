"""MPI's collectives as a Communicator, by mpi4py over whichever MPI library it finds."""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from mpi4py import MPI
from oprack.errors import InvalidArgumentError
from oprack.parallel import Communicator
from oprack.parallel.reductions import scaled
from oprack.parallel.transfers import Running
from oprack_parallel.launch.reports import ended, ends_all_ranks, write_report

from oprack_mpi.shared import SMALL, Gathering, Reduction, Scattering, SharedRing, is_room, share, shared_ring

_OPS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN, "prod": MPI.PROD}
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Variables in which mpiexec and srun say how many ranks they started."""
_SUMMED = np.dtype(np.float32)
"""In which dtype half floats are added."""
_PAGE = 4096
_PIECE = 1 << 20
"""Bytes of the pieces in which larger arrays are added: several that are under way together take half as long."""


class MPICommunicator(Communicator):
    """Collectives of an MPI communicator on arrays in host memory.

    Args:
        comm: The communicator of mpi4py.
        name: For messages.
    """

    engine = "mpi"

    def __init__(self, comm: MPI.Intracomm, name: str) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size(), name)
        self._comm = comm
        self._ring: SharedRing | None = None  # for what is started, where the ranks are on one machine

    def _all_reduce(self, x: Any, op: str) -> Any:
        given = _summable(x)
        out = np.empty_like(given)
        self._comm.Allreduce(given, out, _OPS[op])
        return out.astype(x.dtype, copy=False)

    def _all_reduce_in_place(self, x: Any, op: str) -> Any:
        if _summable(x) is not x:
            return self._all_reduce(x, op)
        self._comm.Allreduce(MPI.IN_PLACE, x, _OPS[op])
        return x

    def _get_ready(self) -> None:
        self._ring = shared_ring(self._comm)

    def memory(self, size: int, like: Any) -> Any:
        """See Communicator."""
        needed = size * like.dtype.itemsize
        if self._ring is None or needed < SMALL or not is_room(self._comm, -(-needed // self.size)):
            return None
        # the first rank's, behind which the others have a page each that nobody uses
        _, memories = share(self._comm, _PAGE if self.rank else needed)
        return memories[0][:needed].view(like.dtype)

    def _start(self, collective: str, x: Any, *arguments: Any) -> Running:
        if collective == "all_gather":
            row = _row_bytes(x)
            sizes = [c * row for c in arguments[0]]
            if self._ring is not None and x.nbytes >= SMALL:
                return self._ring.start(Gathering(_bytes(x), _ends(sizes), self.rank, lambda: x))
            return _Requests([self._comm.Iallgatherv(MPI.IN_PLACE, [_bytes(x), sizes])], lambda: x)
        how, factor, *into = arguments
        given = _summable(x)
        flat, shared = given.reshape(-1), self._ring is not None and given.nbytes >= SMALL
        shape = x.shape if collective == "all_reduce" else (how[self.rank], *x.shape[1:])
        is_one = shared and any(one.dtype == given.dtype for one in into)  # half floats are added as others
        out = into[0].reshape(shape) if is_one else np.empty(shape, given.dtype)

        def result() -> Any:
            return out.astype(x.dtype, copy=False)

        if collective == "all_reduce":
            if self._ring is not None and shared:
                return self._ring.start(
                    Reduction(flat, how, factor, out.reshape(-1), is_one, self.rank, self.size, result)
                )
            np.multiply(given, given.dtype.type(factor), out=out)
            step = _PIECE // out.itemsize
            pieces = [out.reshape(-1)[k : k + step] for k in range(0, max(out.size, 1), step)]
            return _Requests([self._comm.Iallreduce(MPI.IN_PLACE, piece, _OPS[how]) for piece in pieces], result)
        sizes = [c * math.prod(x.shape[1:]) for c in how]
        if self._ring is not None and shared:
            return self._ring.start(Scattering(flat, "sum", _ends(sizes), factor, out.reshape(-1), self.rank, result))
        return _Requests([self._comm.Ireduce_scatter(scaled(given, factor), out, sizes, MPI.SUM)], result)

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        out = np.empty((sum(counts), *x.shape[1:]), x.dtype)
        row = _row_bytes(x)
        self._comm.Allgatherv(_bytes(x), [_bytes(out), [c * row for c in counts]])
        return out

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        given = _summable(x)
        out = np.empty((counts[self.rank], *x.shape[1:]), given.dtype)
        row = math.prod(x.shape[1:])
        self._comm.Reduce_scatter(given, out, [c * row for c in counts], MPI.SUM)
        return out.astype(x.dtype, copy=False)

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        dtype = parts[0].dtype
        given = np.concatenate([_bytes(p) for p in parts])
        sizes = [math.prod(s) * dtype.itemsize for s in shapes]
        got = np.empty(sum(sizes), np.uint8)
        self._comm.Alltoallv([given, [p.nbytes for p in parts]], [got, sizes])
        ends = np.cumsum([0, *sizes])
        return [got[a:b].view(dtype).reshape(s) for a, b, s in zip(ends, ends[1:], shapes, strict=False)]

    def _broadcast(self, x: Any, root: int) -> Any:
        out = x.copy()
        self._comm.Bcast(_bytes(out), root)
        return out

    def _send(self, x: Any, to: int) -> None:
        self._comm.Send(_bytes(x), to)

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        out = np.empty(tuple(shape), dtype)
        self._comm.Recv(_bytes(out), source)
        return out

    def _gather_facts(self, value: Any) -> list[Any]:
        # As text of known lengths, since mpi4py's own objects travel as pickles, which are code.
        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
        lengths = np.empty(self.size, np.int64)
        self._comm.Allgather(np.array([text.size], np.int64), lengths)
        out = np.empty(int(lengths.sum()), np.uint8)
        self._comm.Allgatherv(text, [out, lengths.tolist()])
        ends = np.cumsum([0, *lengths])
        return [json.loads(out[a:b].tobytes()) for a, b in itertools.pairwise(ends)]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        return MPICommunicator(cast(MPI.Intracomm, self._comm.Split(color, key)), name)

    def abort(self, code: int, reason: str = "") -> None:
        # Before the others are ended, since mpiexec then ends what would report it.
        write_report(reason or ended(code))
        time.sleep(0.2)  # mpiexec drops what a rank has said and it has not read yet
        MPI.COMM_WORLD.Abort(code)


class _Requests:
    """What MPI has started, and the result that it will have written. MPI goes on inside of its calls alone."""

    def __init__(self, requests: list[MPI.Request], result: Callable[[], Any]) -> None:
        self._requests, self._result = requests, result

    def test(self) -> bool:
        return MPI.Request.Testall(self._requests)

    def wait(self) -> Any:
        MPI.Request.Waitall(self._requests)
        return self._result()


def _summable(x: Any) -> Any:
    """The array in a dtype that MPI can add: half floats as float32, booleans as bytes."""
    if x.dtype == np.bool_:
        return x.view(np.uint8)
    if x.dtype.char not in "bBhHiIlLqQfdFD":
        return x.astype(_SUMMED)
    return x


def _bytes(x: Any) -> Any:
    return x.reshape(-1).view(np.uint8)


def _ends(sizes: Sequence[int]) -> list[int]:
    return list(itertools.accumulate(sizes, initial=0))


def _row_bytes(x: Any) -> int:
    size: int = math.prod(x.shape[1:]) * x.dtype.itemsize
    return size


def open_world() -> Communicator:
    """The communicator of all ranks, in a program that ends on all of them when an exception ends it on one.

    Raises:
        InvalidArgumentError: The MPI library does not let several threads call it, or is not that of mpiexec.
    """
    library = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
    by, started = next(((n, os.environ[n]) for n in _SIZES if n in os.environ), ("", ""))
    if started.isdecimal() and int(started) != MPI.COMM_WORLD.Get_size():
        raise InvalidArgumentError(
            f"{started} ranks were started ({by}), but the MPI library ({library}) knows of "
            f"{MPI.COMM_WORLD.Get_size()}: mpiexec or srun is of another MPI. Start by oprack launch, set "
            "MPI4PY_LIBMPI to the library of that mpiexec, or give srun the interface of this MPI (srun --mpi=pmi2)"
        )
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise InvalidArgumentError(
            f"{library} was opened for one thread; expected MPI_THREAD_MULTIPLE: "
            "let oprack open it (oprack.parallel.init()) before anything else imports mpi4py"
        )
    # Of its own, so that messages of the program itself can't get between ours.
    found = MPICommunicator(MPI.COMM_WORLD.Dup(), "world")
    ends_all_ranks(found)
    return found
