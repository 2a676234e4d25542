"""A stand-in for cupy.cuda.nccl whose ranks are threads: it checks what it is told, and moves memory of the host."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

# The codes of ncclDataType_t and ncclRedOp_t.
NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64 = range(6)
NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16 = 6, 7, 8, 9
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = range(4)
available = True
enqueues = False
"""Whether collectives go on in threads of their own after their calls have returned, as they do on a device."""
_DTYPES = dict(enumerate(("i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8")))
_REDUCE = {NCCL_SUM: np.add, NCCL_PROD: np.multiply, NCCL_MAX: np.maximum, NCCL_MIN: np.minimum}
_ids = itertools.count(1)
_cliques: dict[tuple[int, ...], _Clique] = {}
_lock = threading.Lock()
_state = threading.local()
_WAIT = 20.0


class NcclError(RuntimeError):
    """What CuPy raises."""


def enqueued() -> threading.Thread | None:
    """What the calling thread has enqueued last, where collectives go on after their calls."""
    return getattr(_state, "last", None)


def _enqueue(call: Callable[[], None]) -> None:
    """Run a call behind all that this thread has enqueued."""
    before = enqueued()

    def work() -> None:
        if before is not None:
            before.join()
        with contextlib.suppress(threading.BrokenBarrierError):  # aborted
            call()

    _state.last = threading.Thread(target=work, name="a stream", daemon=True)
    _state.last.start()


class _Clique:
    """Where the ranks of one communicator meet."""

    def __init__(self, size: int) -> None:
        self.barrier, self.values = threading.Barrier(size), [None] * size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """The values of all ranks."""
        self.values[rank] = value
        self.barrier.wait(_WAIT)
        found = list(self.values)
        self.barrier.wait(_WAIT)
        return found


def get_unique_id() -> tuple[int, ...]:
    """128 numbers, each that of a signed char."""
    number = next(_ids)
    return (number % 128, -5, *([0] * 126))


def groupStart() -> None:
    """Calls wait from now on for groupEnd."""
    if getattr(_state, "calls", None) is not None:
        raise NcclError("groups are not nested here")
    _state.calls = []


def groupEnd() -> None:
    """Run the calls of the group: point to point all at once, collectives in order."""
    calls, _state.calls = _state.calls, None
    pairs = [c for c in calls if c[1] in ("send", "recv")]
    if pairs and len(pairs) < len(calls):
        raise NcclError("a group mixes collectives with sends and receives")
    if pairs:
        pairs[0][0]._run_pairs([c[1:] for c in pairs])
        return
    for comm, name, *arguments in calls:
        comm._collective(name, *arguments)


class NcclCommunicator:
    """One rank. Every argument has the type, range and alignment that the library wants."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        if not (isinstance(commId, tuple) and len(commId) == 128 and all(-128 <= x < 128 for x in commId)):
            raise TypeError("commId is not what get_unique_id returned")
        if not 0 <= rank < ndev:
            raise NcclError(f"rank {rank} of {ndev}")
        with _lock:
            self._clique = _cliques.setdefault(commId, _Clique(ndev))
        self._rank, self._size = rank, ndev
        self.aborted, self.broken = False, ""
        seen = self._clique.exchange(rank, (ndev, rank))
        if seen != [(ndev, r) for r in range(ndev)]:
            raise NcclError(f"ranks of a communicator said {seen}")

    def abort(self) -> None:
        """Release the other ranks."""
        self.aborted = True
        self._clique.barrier.abort()

    def check_async_error(self) -> None:
        """Raise what happened to a collective after its call."""
        if self.broken:
            raise NcclError(self.broken)

    # Calls ------------------------------------------------------------------------------------------------------------
    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        self._call("allReduce", sendbuf, recvbuf, count, datatype, op, -1, stream)

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int) -> None:
        self._call("reduce", sendbuf, recvbuf, count, datatype, op, root, stream)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        self._call("reduceScatter", sendbuf, recvbuf, recvcount, datatype, op, -1, stream)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._call("allGather", sendbuf, recvbuf, count, datatype, -1, -1, stream)

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        self._call("broadcast", sendbuff, recvbuff, count, datatype, -1, root, stream)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._call("send", sendbuf, 0, count, datatype, -1, peer, stream)

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._call("recv", 0, recvbuf, count, datatype, -1, peer, stream)

    def _call(
        self, name: str, send: int, receive: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:
        for what, value in (("address", send), ("address", receive), ("count", count), ("stream", stream)):
            if type(value) is not int or value < 0:
                raise TypeError(f"{name}: {what} is {value!r}; expected a Python int of 0 or more")
        if datatype not in _DTYPES:
            raise NcclError(f"{name}: datatype {datatype!r}")
        if name in ("allReduce", "reduce", "reduceScatter") and op not in _REDUCE:
            raise NcclError(f"{name}: op {op!r}")
        if name in ("broadcast", "reduce", "send", "recv") and not 0 <= root < self._size:
            raise NcclError(f"{name}: rank {root!r} of {self._size}")
        size = np.dtype(_DTYPES[datatype]).itemsize
        if count and any(address % size for address in (send, receive)):
            raise NcclError(f"{name}: an address is not that of an element of {size} bytes")
        if getattr(_state, "calls", None) is not None:
            _state.calls.append((self, name, send, receive, count, datatype, op, root))
        elif name in ("send", "recv"):
            self._run_one(name, send, receive, count, datatype, root)
        elif enqueues:
            _enqueue(lambda: self._collective(name, send, receive, count, datatype, op, root))
        else:
            self._collective(name, send, receive, count, datatype, op, root)

    # Running ----------------------------------------------------------------------------------------------------------
    def _collective(self, name: str, send: int, receive: int, count: int, datatype: int, op: int, root: int) -> None:
        n, dtype = self._size, _DTYPES[datatype]
        reads = count * n if name == "reduceScatter" else count
        used = name != "broadcast" or self._rank == root
        seen = self._clique.exchange(
            self._rank, ((name, count, datatype, op, root), _read(send, reads, dtype) if used else None)
        )
        if any(fact != seen[0][0] for fact, _ in seen):
            raise NcclError(f"ranks call different collectives: {[fact for fact, _ in seen]}")
        arrays = [array for _, array in seen]
        if name == "broadcast":
            _write(receive, arrays[root])
        elif name == "allGather":
            _write(receive, np.concatenate(arrays))
        elif name == "reduce":
            if self._rank == root:
                _write(receive, _total(arrays, op))
        elif name == "allReduce":
            _write(receive, _total(arrays, op))
        else:
            _write(receive, _total(arrays, op)[self._rank * count : (self._rank + 1) * count])

    def _run_pairs(self, calls: list[Any]) -> None:
        """All sends and receives of a group."""
        sent = [(peer, _read(at, count, _DTYPES[t])) for name, at, _, count, t, _, peer in calls if name == "send"]
        offered = self._clique.exchange(self._rank, sent)
        left = [[array for to, array in sends if to == self._rank] for sends in offered]
        for name, _, receive, count, datatype, _, peer in calls:
            if name == "recv":
                array = left[peer].pop(0)
                if array.size != count or array.dtype != np.dtype(_DTYPES[datatype]):
                    raise NcclError(f"recv of {count} elements from rank {peer}, which sends {array.size}")
                _write(receive, array)
        if any(left):
            raise NcclError("a send has no receive")

    def _run_one(self, name: str, send: int, receive: int, count: int, datatype: int, peer: int) -> None:
        """A send or a receive outside of groups, which all ranks make at the same time in these tests."""
        self._run_pairs([(name, send, receive, count, datatype, -1, peer)])


def _total(arrays: list[np.ndarray], op: int) -> np.ndarray:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total = _REDUCE[op](total, array).astype(total.dtype)
    return total


def _memory(address: int, count: int, dtype: str) -> np.ndarray:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype)


def _read(address: int, count: int, dtype: str) -> np.ndarray:
    return _memory(address, count, dtype).copy() if count else np.zeros(0, dtype)


def _write(address: int, array: np.ndarray) -> None:
    if array.size:
        _memory(address, array.size, array.dtype.str)[...] = array
