"""ThreadWorld: ranks that are threads of this process, for tests of what runs on several ranks."""

from __future__ import annotations

import contextlib
import copy
import json
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.errors import CollectiveError
from oprack.parallel.communicator import Communicator
from oprack.parallel.world import use_world

WAIT = 60.0
_ALONE = "another rank failed or does not come"


class _Meeting:
    """Where the ranks of a group exchange values."""

    def __init__(self, size: int, wait: float) -> None:
        self.barrier, self.wait = threading.Barrier(size), wait
        self.values: list[Any] = [None] * size
        self.mail: dict[tuple[int, int], queue.SimpleQueue[Any]] = {
            (a, b): queue.SimpleQueue() for a in range(size) for b in range(size)
        }
        self.groups: dict[Any, _Meeting] = {}


class ThreadCommunicator(Communicator):
    """A rank of a ThreadWorld."""

    engine = "threads"
    timed = False

    def __init__(self, meeting: _Meeting, rank: int, size: int, name: str) -> None:
        super().__init__(rank, size, name)
        self._meeting = meeting

    def exchange(self, value: Any) -> list[Any]:
        """The values of all ranks, of arrays copies: a rank that goes on may overwrite its own, as a process may."""
        meeting = self._meeting
        try:
            meeting.values[self.rank] = _copied(value)
            meeting.barrier.wait(meeting.wait)
            found = list(meeting.values)
            meeting.barrier.wait(meeting.wait)
        except threading.BrokenBarrierError:
            raise self._left_alone() from None
        if len({isinstance(v, str) for v in found}) > 1:
            raise CollectiveError(
                f"{self!r}: the ranks run different collectives, this one {', '.join(self.record)[-200:]}"
            )
        return found

    def _left_alone(self) -> CollectiveError:
        last = f"; {self.record[-1]}" if self.record else ""
        return CollectiveError(f"{self!r}: {_ALONE}{last}")

    def _all_reduce(self, x: Any, op: str) -> Any:
        return reduced(op, self.exchange(x))

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        return np.concatenate(self.exchange(x))

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        start = sum(counts[: self.rank])
        return reduced("sum", self.exchange(x))[start : start + counts[self.rank]].copy()

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        found = [given[self.rank] for given in self.exchange(parts)]
        assert [list(x.shape) for x in found] == [list(s) for s in shapes]
        return found

    def _broadcast(self, x: Any, root: int) -> Any:
        return self.exchange(x)[root].copy()

    def _send(self, x: Any, to: int) -> None:
        self._meeting.mail[self.rank, to].put(x.copy())

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        end = time.monotonic() + self._meeting.wait
        while time.monotonic() < end and not self._meeting.barrier.broken:
            with contextlib.suppress(queue.Empty):
                return self._meeting.mail[source, self.rank].get(timeout=0.05)
        raise self._left_alone()

    def _gather_facts(self, value: Any) -> list[Any]:
        return [json.loads(text) for text in self.exchange(json.dumps(value))]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        asked = self.exchange((color, key))
        ranks = sorted((k, r) for r, (c, k) in enumerate(asked) if c == color)
        with _LOCK:
            tag = (self.count, color)
            meeting = self._meeting.groups.setdefault(tag, _Meeting(len(ranks), self._meeting.wait))
        return ThreadCommunicator(meeting, ranks.index((key, self.rank)), len(ranks), name)

    def abort(self, code: int, reason: str = "") -> None:
        self._meeting.barrier.abort()


_LOCK = threading.Lock()


class ThreadWorld:
    """A world of so many ranks, each of which is a thread.

    Args:
        size: Number of ranks.
        wait: Seconds after which a rank no longer waits for the others.
    """

    def __init__(self, size: int, wait: float = WAIT) -> None:
        self.size, self.wait = size, wait

    def run(self, function: Callable[[Communicator], Any]) -> list[Any]:
        """Call a function on every rank, which is what `oprack.parallel.world()` returns meanwhile.

        Args:
            function: Gets the rank's world.

        Returns:
            What each rank returned, in order.

        Raises:
            Exception: What the first rank that failed raised; the other ranks are released.
        """
        meeting = _Meeting(self.size, self.wait)
        results: list[Any] = [None] * self.size
        errors: list[tuple[int, BaseException]] = []

        def rank(r: int) -> None:
            world = ThreadCommunicator(meeting, r, self.size, "world")
            try:
                with use_world(world):
                    results[r] = function(world)
            except BaseException as e:
                errors.append((r, e))
                _release(meeting)

        threads = [threading.Thread(target=rank, args=(r,), name=f"rank {r}", daemon=True) for r in range(self.size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            # Ranks that were only released say less than the one that failed.
            errors.sort(key=lambda e: isinstance(e[1], CollectiveError) and _ALONE in str(e[1]))
            raise copy.copy(errors[0][1]) from errors[0][1]
        return results


def _copied(value: Any) -> Any:
    """What a rank gives away: arrays, and lists of them, as copies."""
    if isinstance(value, list | tuple):
        return [_copied(v) for v in value]
    return value.copy() if hasattr(value, "flags") else value


def _release(meeting: _Meeting) -> None:
    meeting.barrier.abort()
    for group in list(meeting.groups.values()):
        _release(group)


def reduced(op: str, arrays: Sequence[Any]) -> Any:
    """Reduce arrays element by element, in the order of ranks."""
    function = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[op]
    total = arrays[0].copy()
    for x in arrays[1:]:
        total = function(total, x).astype(total.dtype, copy=False)
    return total
