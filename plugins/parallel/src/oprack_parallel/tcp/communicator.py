"""Collectives over TCP as a Communicator, on arrays in host memory.

An all_reduce of few bytes goes by recursive doubling, one of many by a ring that adds and a gathering of its parts; a
gathering takes as many rounds as the number of ranks has bits. The algorithms and their costs: Thakur, Rabenseifner and
Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.errors import CollectiveError
from oprack.parallel import Communicator
from oprack.parallel.reductions import REDUCTIONS, scaled
from oprack.parallel.transfers import Running
from oprack.python.workers import Workers

from oprack_parallel.launch.reports import ended, ends_all_ranks, write_report
from oprack_parallel.tcp.connections import Connections
from oprack_parallel.tcp.launchers import started

_NATIVE = "?bBhHiIlLqQfdgFDG"
"""Dtypes that are reduced as they are; others, half floats, as float32."""
_FEW = 1 << 16
"""Bytes of an array that is reduced as a whole, in fewer rounds."""
_PIECE = 1 << 18
"""Bytes that are added as soon as they are there, while more come and they are still in the processor's cache."""
_FACTS = 1 << 26
"""Bytes of facts of all ranks."""
_HEAD = struct.Struct("!IQ")
"""Before each message: what it is part of, and its bytes."""


class TCPCommunicator(Communicator):
    """Collectives of a group of ranks that have connections among each other.

    Args:
        connections: Those of this process.
        group: A text by which all ranks of the group know it.
        ranks: Who is in it, by their ranks among all.
        rank: This rank in the group.
        name: For messages.
    """

    engine = "tcp"

    def __init__(self, connections: Connections, group: str, ranks: Sequence[int], rank: int, name: str) -> None:
        super().__init__(rank, len(ranks), name)
        self._connections, self._group, self._ranks = connections, group, ranks
        self._sockets: dict[tuple[str, int], socket.socket] = {}
        self._splits = 0
        self._worker: Workers | None = None  # of what is started

    # What is started --------------------------------------------------------------------------------------------------
    def _get_ready(self) -> None:
        self._worker = Workers(lambda: 1)  # one, so that collectives run in the order in which they were started

    def _start(self, collective: str, x: Any, *arguments: Any) -> Running | None:
        if self._worker is None:
            return None
        return _UnderWay(self._worker, lambda: self._started_one(collective, x, *arguments))

    def _started_one(self, collective: str, x: Any, how: Any, factor: float = 1.0) -> Any:
        """What `_start` started, in the worker's thread."""
        if collective == "all_gather":
            self._gather(_bytes(x), [c * _row(x) for c in itertools.accumulate(how, initial=0)])
            return x
        given = scaled(x, factor)
        return self._all_reduce(given, how) if collective == "all_reduce" else self._reduce_scatter(given, how)

    # Collectives ------------------------------------------------------------------------------------------------------
    def _all_reduce(self, x: Any, op: str) -> Any:
        given = x if x.dtype.char in _NATIVE else x.astype(np.float32)
        return self._reduced(given.copy() if given is x else given, op).astype(x.dtype, copy=False)

    def _all_reduce_in_place(self, x: Any, op: str) -> Any:
        return self._reduced(x, op) if x.dtype.char in _NATIVE else self._all_reduce(x, op)

    def _reduced(self, x: Any, op: str) -> Any:
        """Reduce in the memory of `x`; returns it."""
        flat = x.reshape(-1)
        if x.nbytes <= _FEW:
            self._double(flat, REDUCTIONS[op])
        else:
            cuts = [flat.size * r // self.size for r in range(self.size + 1)]
            self._add_along_ring(flat, cuts, REDUCTIONS[op])
            self._gather(_bytes(flat), [c * x.itemsize for c in cuts])
        return x

    def _double(self, x: Any, op: np.ufunc) -> None:
        """Recursive doubling; ranks beyond a power of two hand theirs to another and get the result back."""
        most = 1 << (self.size.bit_length() - 1)
        other = np.empty_like(x)
        if self.rank >= most:
            self._exchange("all_reduce", [_bytes(x)], self.rank - most)
            self._exchange("all_reduce", into=_bytes(x), source=self.rank - most)
            return
        extra = self.rank + most
        if extra < self.size:
            self._exchange("all_reduce", into=_bytes(other), source=extra)
            op(x, other, out=x)
        step = 1
        while step < most:
            there = self.rank ^ step
            self._exchange("all_reduce", [_bytes(x)], there, _bytes(other), there)
            # In one order on both, by which the sign of a zero and the bits of a NaN are the same, too.
            op(*((x, other) if self.rank < there else (other, x)), out=x)
            step *= 2
        if extra < self.size:
            self._exchange("all_reduce", [_bytes(x)], extra)

    def _add_along_ring(self, x: Any, cuts: Sequence[int], op: np.ufunc) -> None:
        """Reduce along a ring, in the memory of `x`, so that rank r has x[cuts[r]:cuts[r + 1]] of the result."""
        n, r = self.size, self.rank
        most = max(b - a for a, b in itertools.pairwise(cuts))
        piece = np.empty(min(most, max(1, _PIECE // x.itemsize)), x.dtype)
        for step in range(1, n):
            out, own = (r - step) % n, (r - step - 1) % n
            target = x[cuts[own] : cuts[own + 1]]

            def add(start: int, stop: int, target: Any = target) -> None:
                op(target[start:stop], piece[: stop - start], out=target[start:stop])

            given = [_bytes(x[cuts[out] : cuts[out + 1]])]
            self._exchange("reduce", given, (r + 1) % n, _Pieces(piece, target.size, add), (r - 1) % n)

    def _gather(self, out: memoryview, cuts: Sequence[int]) -> None:
        """Bruck's gathering: a rank hands on all that it has, in each round; first cuts[r] to cuts[r + 1]."""
        n, r, have = self.size, self.rank, 1
        while have < n:
            more = min(have, n - have)
            given, wanted = self._span(out, cuts, r, more), self._span(out, cuts, (r + have) % n, more)
            self._exchange("gather", given, (r - have) % n, wanted, (r + have) % n)
            have += more

    def _span(self, out: memoryview, cuts: Sequence[int], first: int, count: int) -> list[memoryview]:
        """The parts of so many ranks from one on, which may go round the end."""
        end = first + count
        if end <= self.size:
            return [out[cuts[first] : cuts[end]]]
        return [out[cuts[first] : cuts[-1]], out[: cuts[end - self.size]]]

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        out = np.empty((sum(counts), *x.shape[1:]), x.dtype)
        cuts = [c * _row(x) for c in itertools.accumulate(counts, initial=0)]
        view = _bytes(out)
        view[cuts[self.rank] : cuts[self.rank + 1]] = _bytes(x)
        self._gather(view, cuts)
        return out

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        given = x if x.dtype.char in _NATIVE else x.astype(np.float32)
        work = given.copy() if given is x else given
        row = math.prod(x.shape[1:])
        cuts = [c * row for c in itertools.accumulate(counts, initial=0)]
        self._add_along_ring(work.reshape(-1), cuts, np.add)
        own = work.reshape(-1)[cuts[self.rank] : cuts[self.rank + 1]]
        return own.astype(x.dtype).reshape(counts[self.rank], *x.shape[1:])

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        n, r = self.size, self.rank
        found = [np.empty(tuple(shape), parts[0].dtype) for shape in shapes]
        found[r][...] = parts[r]
        for step in range(1, n):
            to, source = (r + step) % n, (r - step) % n
            self._exchange("all_to_all", [_bytes(parts[to])], to, _bytes(found[source]), source)
        return found

    def _broadcast(self, x: Any, root: int) -> Any:
        """Along a binomial tree."""
        out, n = x.copy(), self.size
        view, place = [_bytes(out)], (self.rank - root) % n
        step = 1
        while step < n and not place & step:
            step *= 2
        if place:
            self._exchange("broadcast", into=view, source=(self.rank - step) % n)
        step //= 2
        while step:
            if place + step < n:
                self._exchange("broadcast", view, (self.rank + step) % n)
            step //= 2
        return out

    def _send(self, x: Any, to: int) -> None:
        self._exchange("send", [_bytes(x)], to)

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        out = np.empty(tuple(shape), dtype)
        self._exchange("send", into=_bytes(out), source=source)
        return out

    def _gather_facts(self, value: Any) -> list[Any]:
        """As `_gather`, of texts whose lengths are not known before."""
        n, r, have = self.size, self.rank, [value]
        while len(have) < n:
            step, more = len(have), min(len(have), n - len(have))
            text = memoryview(json.dumps(have[:more]).encode())
            got = bytearray()
            self._exchange("facts", [text], (r - step) % n, got, (r + step) % n)
            have += json.loads(got)
        return have[n - r :] + have[: n - r]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        asked = self._gather_facts([color, key])
        inside = [r for _, r in sorted((k, r) for r, (c, k) in enumerate(asked) if c == color)]
        self._splits += 1
        group, ranks = f"{self._group}/{self._splits}.{color}", [self._ranks[r] for r in inside]
        return TCPCommunicator(self._connections, group, ranks, inside.index(self.rank), name)

    def abort(self, code: int, reason: str = "") -> None:
        # The others find their connections closed, and say so in their turn.
        write_report(reason or ended(code), told=reason.startswith(RankLostError.__name__))
        sys.stdout.flush()
        os._exit(code)

    # Messages ---------------------------------------------------------------------------------------------------------
    def _exchange(
        self,
        what: str,
        out: Sequence[memoryview] | None = None,
        to: int = -1,
        into: Sequence[memoryview] | memoryview | bytearray | _Pieces = (),
        source: int = -1,
    ) -> None:
        """Send one message and receive one at the same time, so that no two ranks wait for each other.

        Args:
            what: Which collective they belong to.
            out: The bytes for `to`; None: none is sent.
            to: A rank of the group.
            into: Where the bytes from `source` go; a bytearray takes as many as come.
            source: A rank of the group; -1: nothing is received.
        """
        sends = _Sending(self, what, out, to) if out is not None else None
        takes = (
            _Receiving(self, what, [into] if isinstance(into, memoryview) else into, source) if source >= 0 else None
        )
        while True:
            moved = False
            if sends is not None:
                moved = sends.go()
                sends = None if sends.done else sends
            if takes is not None:
                moved = takes.go() or moved
                takes = None if takes.done else takes
            if sends is None and takes is None:
                return
            if not moved:
                _wait(sends, takes)

    def socket_of(self, what: str, rank: int, sends: bool) -> socket.socket:
        """The connection to a rank of the group.

        Collectives have one in both directions. Messages from one rank to another have one that the sender opens, so
        that a few bytes are on their way before the other rank asks for them.
        """
        kind = "" if what != "send" else "to" if sends else "from"
        if (kind, rank) not in self._sockets:
            group, opens = (f"{self._group} messages", sends) if kind else (self._group, self.rank > rank)
            with self.named(rank):
                found = self._connections.to(group, self.rank, rank, self._ranks[rank], opens)
            self._sockets[kind, rank] = found
        return self._sockets[kind, rank]

    def named(self, rank: int) -> _Named:
        """Errors of a connection inside a with block say whose it is."""
        return _Named(self, rank)


class _UnderWay:
    """A collective that a thread of its own runs."""

    def __init__(self, workers: Workers, run: Callable[[], Any]) -> None:
        self._found: list[Any] = []
        self._job = workers.submit(lambda: self._found.append(run()))

    def test(self) -> bool:
        """Whether it is done."""
        return bool(self._found)

    def wait(self) -> Any:
        """Wait for the result."""
        self._job.wait()
        return self._found[0]


class _Named:
    """A with block in which errors of a connection become a CollectiveError that names the rank at its other end."""

    def __init__(self, communicator: TCPCommunicator, rank: int) -> None:
        self._communicator, self._rank = communicator, rank

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError | EOFError | CollectiveError):
            c = self._communicator
            raise RankLostError(
                f"{c!r}: rank {self._rank} has ended, or the connection to it is lost ({error}); what it said last, or "
                "its launcher, tells why"
            ) from error


class RankLostError(CollectiveError):
    """Another rank has ended, whose own report says more."""


class _Pieces:
    """Where a message goes that is added to something piece by piece."""

    def __init__(self, piece: Any, size: int, add: Callable[[int, int], None]) -> None:
        self.piece, self.size, self.add = piece, size, add


class _Sending:
    """A message on its way to a rank."""

    def __init__(self, communicator: TCPCommunicator, what: str, out: Sequence[memoryview], to: int) -> None:
        self._named = communicator.named(to)
        self.socket = communicator.socket_of(what, to, True)
        head = _HEAD.pack(_code(what), sum(len(v) for v in out))
        self._left = [memoryview(head), *(v for v in out if len(v))]
        self.done = False

    def go(self) -> bool:
        """Send what can be sent at once; whether something was."""
        with self._named:
            try:
                sent = self.socket.sendmsg(self._left)
            except BlockingIOError:
                return False
        self._left = _rest(self._left, sent)
        self.done = not self._left
        return True


class _Receiving:
    """A message on its way from a rank."""

    def __init__(
        self, communicator: TCPCommunicator, what: str, into: Sequence[memoryview] | bytearray | _Pieces, source: int
    ) -> None:
        self._communicator, self._what, self._source, self._into = communicator, what, source, into
        self._named = communicator.named(source)
        self.socket = communicator.socket_of(what, source, False)
        self._head = bytearray(_HEAD.size)
        self._added = 0
        self._left = [memoryview(self._head)]
        self._wanted = 0
        self._checked = self.done = False
        if not isinstance(into, bytearray | _Pieces):  # in one call of the system
            self._left += [v for v in into if len(v)]

    def go(self) -> bool:
        """Take what is there; whether something was."""
        with self._named:
            try:
                got = self.socket.recvmsg_into(self._left)[0]
            except BlockingIOError:
                return False
            if not got:
                raise EOFError("it closed the connection")
        head = len(self._left[0]) if not self._checked else 0
        self._left = _rest(self._left, got)
        if not self._checked and got >= head:
            self._check()
        if not self._left:
            self._next()
        return True

    def _check(self) -> None:
        """The header is there: compare it with what is expected."""
        self._checked = True
        code, size = _HEAD.unpack(self._head)
        into = self._into
        if isinstance(into, bytearray):
            wanted = size if size <= _FACTS else _FACTS
        elif isinstance(into, _Pieces):
            wanted = into.size * into.piece.itemsize
        else:
            wanted = sum(len(v) for v in into)
        if code != _code(self._what) or size != wanted:
            said = _NAMES.get(code, "something unknown")
            raise CollectiveError(
                f"{self._communicator!r}: rank {self._source} sent {size} bytes of {said}, where this rank waits for "
                f"{wanted} bytes of {self._what}. All ranks must call the same collectives in the same order on arrays "
                "of the same shapes: look for an if or a loop that depends on the rank"
            )
        if isinstance(into, bytearray):
            into.extend(bytes(size))
            self._left = [memoryview(into)] if size else []

    def _next(self) -> None:
        """All that was asked for is there: ask for the next piece, or be done."""
        into = self._into
        if not isinstance(into, _Pieces):
            self.done = True
            return
        start = self._added
        if self._wanted:
            self._added += self._wanted
            into.add(start, self._added)
        self._wanted = min(into.size - self._added, into.piece.size)
        self.done = not self._wanted
        self._left = [_bytes(into.piece[: self._wanted])] if self._wanted else []


_WHATS = ("all_reduce", "reduce", "gather", "all_to_all", "broadcast", "send", "facts")
_NAMES = dict(enumerate(_WHATS, 0x6F700000))
_CODES = {name: code for code, name in _NAMES.items()}


def _code(what: str) -> int:
    return _CODES[what]


def _wait(sends: _Sending | None, takes: _Receiving | None) -> None:
    """Sleep until one of two connections can go on."""
    poll = select.poll()
    asked: dict[int, int] = {}
    if sends is not None:
        asked[sends.socket.fileno()] = select.POLLOUT
    if takes is not None:
        fd = takes.socket.fileno()
        asked[fd] = asked.get(fd, 0) | select.POLLIN
    for fd, events in asked.items():
        poll.register(fd, events)
    poll.poll()


def _rest(views: list[memoryview], done: int) -> list[memoryview]:
    """What is left of some buffers when so many bytes of them are done."""
    while views and done >= len(views[0]):
        done -= len(views[0])
        views = views[1:]
    return [views[0][done:], *views[1:]] if done else views


def _bytes(x: Any) -> memoryview:
    return memoryview(x.reshape(-1).view(np.uint8))


def _row(x: Any) -> int:
    size: int = math.prod(x.shape[1:]) * x.itemsize
    return size


def open_world() -> Communicator:
    """The communicator of all ranks, in a program that ends on all of them when an exception ends it on one.

    Raises:
        InvalidArgumentError: The launcher's variables are missing or can't be.
        CollectiveError: Not all ranks came in time.
    """
    start = started()
    found = TCPCommunicator(Connections(start), "world", range(start.size), start.rank, "world")
    ends_all_ranks(found)
    return found
