"""A load generator for HTTP that costs little: sockets and epoll, requests as prepared bytes, no parsing beyond need.

The clients of one call are connections of this process. Each sends its next request when it has its answer whole, so
there are never more requests under way than clients.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Load:
    """What a load gave. times: seconds of each request. wall: seconds of all. own_cpu: CPU seconds of the generator.
    cpu: CPU seconds of the server's processes, by name. bad: answers other than 200. wrong: answers of 200 that are not
    what was expected.
    """

    times: list[float] = field(default_factory=list)
    wall: float = 0.0
    own_cpu: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    bad: int = 0
    wrong: int = 0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.times) / self.wall

    def percentile(self, q: float) -> float:
        """Milliseconds within which q per cent of the requests were answered."""
        return float(np.percentile(self.times, q)) * 1e3

    def each(self, seconds: float) -> float:
        """CPU seconds as milliseconds for each request."""
        return seconds * 1e3 / len(self.times)


class _Client:
    """One connection; `number` is that of the request which is under way."""

    def __init__(self, address: tuple[str, int], number: int) -> None:
        self.sock = socket.create_connection(address, 10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.sent = number, 0.0
        self._have: list[bytes] = []
        self._missing = 0

    def send(self, request: bytes) -> None:
        self.sent = time.perf_counter()
        self.sock.sendall(request)

    def answer(self) -> bytes | None:
        """The next answer, None while it is not whole. Raises ConnectionError when the server closed the connection."""
        data = self.sock.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed a connection")
        if not self._missing:
            data = b"".join([*self._have, data])
            self._have.clear()
            end = data.find(b"\r\n\r\n")
            if end >= 0:
                head = data[:end].lower()
                at = head.index(b"\r\ncontent-length:") + 17
                self._missing = end + 4 + int(head[at:].split(b"\r\n", 1)[0])
        self._have.append(data)
        self._missing -= len(data)
        if self._missing:
            self._missing = max(self._missing, 0)
            return None
        answer = self._have[0] if len(self._have) == 1 else b"".join(self._have)
        self._have.clear()
        return answer


def drive(
    address: tuple[str, int],
    requests: Sequence[bytes],
    clients: int,
    seconds: float,
    expected: Sequence[bytes] | None = None,
) -> Load:
    """Send requests from `clients` connections until the time is over.

    Args:
        address: Host and port.
        requests: Whole requests; each client begins at another one and goes round.
        clients: Connections.
        seconds: How long requests are sent; those under way at the end are waited for.
        expected: Of each request the bytes with which its answer has to end.
    """
    found, poller = Load(), select.epoll()
    step = max(1, len(requests) // clients)
    connected = {}
    for i in range(clients):
        one = _Client(address, i * step % len(requests))
        connected[one.sock.fileno()] = one
        poller.register(one.sock.fileno(), select.EPOLLIN)
    cpu, start = time.process_time(), time.perf_counter()
    end, under_way = start + seconds, len(connected)
    for one in connected.values():
        one.send(requests[one.number])
    while under_way:
        for fd, _ in poller.poll():
            one = connected[fd]
            answer = one.answer()
            if answer is None:
                continue
            now = time.perf_counter()
            found.times.append(now - one.sent)
            if not answer.startswith(b"HTTP/1.1 200"):
                found.bad += 1
            elif expected is not None and not answer.endswith(expected[one.number]):
                found.wrong += 1
            if now >= end:
                under_way -= 1
                continue
            one.number = (one.number + 1) % len(requests)
            one.send(requests[one.number])
    found.wall, found.own_cpu = time.perf_counter() - start, time.process_time() - cpu
    poller.close()
    for one in connected.values():
        one.sock.close()
    return found


def processes(pid: int) -> dict[int, str]:
    """A server's processes: "server", "host" of a model, and "worker" where they compute."""
    names = {pid: "server"}
    for host in _children(pid):
        names[host] = "host"
        names |= dict.fromkeys(_children(host), "worker")
    return names


def cpu_of(pids: dict[int, str]) -> dict[str, float]:
    """CPU seconds so far of processes, by name: nanoseconds that the scheduler counted, also of threads that ended."""
    total = dict.fromkeys(pids.values(), 0.0)
    for pid, name in pids.items():
        total[name] += time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid of C makes it, which Python lacks
    return total


def measured(
    pid: int,
    address: tuple[str, int],
    requests: Sequence[bytes],
    clients: int,
    seconds: float,
    expected: Sequence[bytes] | None = None,
) -> Load:
    """`drive`, with the CPU time of a server of oprack by its parts."""
    parts = processes(pid)
    before = cpu_of(parts)
    found = drive(address, requests, clients, seconds, expected)
    found.cpu = {name: seconds - before[name] for name, seconds in cpu_of(parts).items()}
    return found


def called(
    pid: int,
    caller: Callable[[], Callable[[Any], object]],
    requests: Sequence[Any],
    clients: int,
    seconds: float,
) -> Load:
    """As `measured`, of clients that are functions, each on a thread of its own.

    Args:
        pid: The server.
        caller: Makes a client, on its thread: a function that sends a request and waits for its answer.
        requests: What they are given; each begins at another one and goes round.
        clients: Threads.
        seconds: How long requests are sent; those under way at the end are waited for.
    """
    found, parts, step = Load(), processes(pid), max(1, len(requests) // clients)
    before, cpu, start = cpu_of(parts), time.process_time(), time.perf_counter()

    def client(number: int) -> list[float]:
        ask, times, i = caller(), [], number * step
        while (begin := time.perf_counter()) < start + seconds:
            ask(requests[i % len(requests)])
            times.append(time.perf_counter() - begin)
            i += 1
        return times

    with ThreadPoolExecutor(clients) as pool:
        for times in pool.map(client, range(clients)):
            found.times += times
    found.wall, found.own_cpu = time.perf_counter() - start, time.process_time() - cpu
    found.cpu = {name: spent - before[name] for name, spent in cpu_of(parts).items()}
    return found


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
