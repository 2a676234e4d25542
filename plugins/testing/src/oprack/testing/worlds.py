"""ThreadWorld: ranks that are threads of this process, for tests of what runs on several ranks."""

from __future__ import annotations

import copy
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.errors import CollectiveError
from oprack.parallel.communicator import Communicator
from oprack.parallel.reductions import REDUCTIONS, scaled
from oprack.parallel.world import use_world

WAIT = 60.0
_ALONE = "another rank failed or does not come"


class _Room:
    """Where the ranks of a world wait for each other.

    That none can go on is known at once, and for certain: each waits for what only the others could do. Time says less,
    since ranks of a busy machine are slow.
    """

    def __init__(self, size: int, wait: float) -> None:
        self.size, self.wait = size, wait
        self.moved = threading.Condition()
        self.waiting: dict[ThreadCommunicator, Callable[[], bool]] = {}
        self.gone, self.closed, self.stuck = 0, False, ""

    def until(self, one: ThreadCommunicator, holds: Callable[[], bool]) -> None:
        """Wait, with `moved` held, until something holds; raises CollectiveError when that can't be any more."""
        self.waiting[one] = holds
        try:
            self._look()
            self.moved.wait_for(lambda: holds() or self.closed, self.wait)
        finally:
            del self.waiting[one]
        if not holds():
            self.close()
            last = f"; {one.record[-1]}" if one.record else ""
            raise CollectiveError(f"{one!r}: {self.stuck or _ALONE + last}")

    def leave(self) -> None:
        """A rank has ended."""
        with self.moved:
            self.gone += 1
            self._look()

    def close(self) -> None:
        """Nobody waits any longer."""
        with self.moved:
            self.closed = True
            self.moved.notify_all()

    def _look(self) -> None:
        """Close if no rank can go on; one that may, but has not yet, is still among those that wait."""
        waiting = self.waiting
        if self.closed or not waiting or len(waiting) + self.gone < self.size:
            return
        if not any(holds() for holds in waiting.values()):
            where = ", ".join(f"{one!r} ({one.record[-1] if one.record else 'at its first call'})" for one in waiting)
            self.stuck = f"of {self.size} ranks {self.gone} have ended and all others wait for each other: {where}"
            self.close()


class _Meeting:
    """Where the ranks of a group exchange values."""

    def __init__(self, size: int, room: _Room) -> None:
        self.room, self.here, self.turn = room, 0, 0
        self.values: list[Any] = [None] * size
        self.found: list[Any] = []
        # By number: what ranks gave to a collective that was started, and how many have its result
        self.started: dict[int, dict[int, Any]] = {}
        self.taken: Counter[int] = Counter()
        self.mail: dict[tuple[int, int], deque[Any]] = {(a, b): deque() for a in range(size) for b in range(size)}
        self.groups: dict[Any, _Meeting] = {}


class ThreadCommunicator(Communicator):
    """A rank of a ThreadWorld."""

    engine = "threads"
    timed = False

    def __init__(self, meeting: _Meeting, rank: int, size: int, name: str) -> None:
        super().__init__(rank, size, name)
        self._meeting, self._starts = meeting, 0

    def exchange(self, value: Any) -> list[Any]:
        """The values of all ranks, of arrays copies: a rank that goes on may overwrite its own, as a process may."""
        meeting, given = self._meeting, _copied(value)
        with meeting.room.moved:
            turn = meeting.turn
            meeting.values[self.rank] = given
            meeting.here += 1
            if meeting.here == self.size:
                # these are there until all have come again, so after all have taken them
                meeting.found, meeting.here, meeting.turn = list(meeting.values), 0, turn + 1
                meeting.room.moved.notify_all()
            meeting.room.until(self, lambda: meeting.turn != turn)
            found = list(meeting.found)
        if len({isinstance(v, str) for v in found}) > 1:
            raise CollectiveError(
                f"{self!r}: the ranks run different collectives, this one {', '.join(self.record)[-200:]}"
            )
        return found

    def _start(self, collective: str, x: Any, *arguments: Any) -> _Started:
        number, self._starts = self._starts, self._starts + 1
        given, result = x, None
        if collective == "all_gather":
            counts, result = arguments[0], x
            given = x[sum(counts[: self.rank]) :][: counts[self.rank]]
        with self._meeting.room.moved:
            self._meeting.started.setdefault(number, {})[self.rank] = _copied(given)
            self._meeting.room.moved.notify_all()
        return _Started(self, self._meeting, number, result, lambda all_: self._joined(collective, all_, *arguments))

    def _joined(self, collective: str, given: Sequence[Any], how: Any, factor: float = 1.0) -> Any:
        """The result of a collective, from what all ranks gave."""
        given = [scaled(x, factor) for x in given]
        if collective == "all_reduce":
            return reduced(how, given)
        if collective == "all_gather":
            return np.concatenate(given)
        start = sum(how[: self.rank])
        return reduced("sum", given)[start : start + how[self.rank]].copy()

    def _all_reduce(self, x: Any, op: str) -> Any:
        return self._joined("all_reduce", self.exchange(x), op)

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        return self._joined("all_gather", self.exchange(x), counts)

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        return self._joined("reduce_scatter", self.exchange(x), counts)

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        found = [given[self.rank] for given in self.exchange(parts)]
        assert [list(x.shape) for x in found] == [list(s) for s in shapes]
        return found

    def _broadcast(self, x: Any, root: int) -> Any:
        return self.exchange(x)[root].copy()

    def _send(self, x: Any, to: int) -> None:
        with self._meeting.room.moved:
            self._meeting.mail[self.rank, to].append(x.copy())
            self._meeting.room.moved.notify_all()

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        with self._meeting.room.moved:
            box = self._meeting.mail[source, self.rank]
            self._meeting.room.until(self, lambda: bool(box))
            return box.popleft()

    def _gather_facts(self, value: Any) -> list[Any]:
        return [json.loads(text) for text in self.exchange(json.dumps(value))]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        asked = self.exchange((color, key))
        ranks = sorted((k, r) for r, (c, k) in enumerate(asked) if c == color)
        room, tag = self._meeting.room, (self.count, color)
        with room.moved:
            meeting = self._meeting.groups.setdefault(tag, _Meeting(len(ranks), room))
        return ThreadCommunicator(meeting, ranks.index((key, self.rank)), len(ranks), name)

    def abort(self, code: int, reason: str = "") -> None:
        self._meeting.room.close()


class _Started:
    """A collective under way on ranks that are threads: done when all of them have started it."""

    def __init__(
        self, one: ThreadCommunicator, meeting: _Meeting, number: int, result: Any, join: Callable[[Any], Any]
    ) -> None:
        self._one, self._meeting, self._number, self._result, self._join = one, meeting, number, result, join

    def test(self) -> bool:
        return len(self._meeting.started[self._number]) == self._one.size

    def wait(self) -> Any:
        with self._meeting.room.moved:
            self._meeting.room.until(self._one, self.test)
            given = self._meeting.started[self._number]
            self._meeting.taken[self._number] += 1
            if self._meeting.taken[self._number] == self._one.size:
                del self._meeting.started[self._number], self._meeting.taken[self._number]
        found = self._join([given[r] for r in range(self._one.size)])
        if self._result is None:
            return found
        self._result[...] = found
        return self._result


class ThreadWorld:
    """A world of so many ranks, each of which is a thread.

    Args:
        size: Number of ranks.
        wait: Seconds after which a rank no longer waits for another that computes, or waits for something else.
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
        room = _Room(self.size, self.wait)
        meeting = _Meeting(self.size, room)
        results: list[Any] = [None] * self.size
        errors: list[tuple[int, BaseException]] = []

        def rank(r: int) -> None:
            world = ThreadCommunicator(meeting, r, self.size, "world")
            try:
                with use_world(world):
                    results[r] = function(world)
            except BaseException as e:
                errors.append((r, e))
                room.close()
            finally:
                room.leave()

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


def reduced(op: str, arrays: Sequence[Any]) -> Any:
    """Reduce arrays element by element, in the order of ranks."""
    function = REDUCTIONS[op]
    total = arrays[0].copy()
    for x in arrays[1:]:
        total = function(total, x).astype(total.dtype, copy=False)
    return total
