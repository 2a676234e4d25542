"""Transfer: a collective that was started and is under way while its rank computes."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from oprack.parallel.watchdog import WATCHDOG, Pending
from oprack.runtime.profiler import current_profiler


class Running(Protocol):
    """What an engine has started."""

    def test(self) -> bool:
        """Let it go on without waiting; whether it is done."""

    def wait(self) -> Any:
        """Wait until it is done, and return the result, which the caller may use at once."""


class Transfer:
    """A collective under way. What was given to it stays as it is until `wait`, which returns the result.

    Args:
        pending: The collective.
        running: What the engine has started.
        compare: Raises CollectiveError where the ranks started different ones; None: it is not compared.
    """

    def __init__(self, pending: Pending, running: Running, compare: Callable[[], None] | None) -> None:
        self._pending = pending
        self._running: Running | None = running
        self._compare, self._result = compare, None
        self._start, self._end = time.perf_counter_ns(), 0
        # The first lane of a timeline that no other one has now
        under_way = pending.communicator.under_way
        used: set[int] = {t._lane for t in under_way.values()}
        self._lane: int = next(k for k in itertools.count() if k not in used)
        # An engine writes into memory that has to stay until it is done, whoever still asks for the result.
        under_way[pending.number] = self

    @staticmethod
    def done(result: Any) -> Transfer:
        """One that needs no waiting."""
        transfer = Transfer.__new__(Transfer)
        transfer._running, transfer._result = None, result
        return transfer

    def test(self) -> bool:
        """Let it go on without waiting.

        Returns:
            Whether it is done, so that `wait` returns at once.
        """
        running = self._running
        if running is None or self._end:
            return True
        if running.test():
            self._end = time.perf_counter_ns()
        return bool(self._end)

    def wait(self) -> Any:
        """Wait until it is done; the watchdog ends the program where that takes too long.

        Returns:
            The result; the same for each call.

        Raises:
            CollectiveError: The ranks started different collectives.
        """
        running = self._running
        if running is None:
            return self._result
        what, before = self._pending.what, time.perf_counter_ns()
        with WATCHDOG.watching(self._pending):
            if self._compare is not None:
                self._compare()
            self._result = running.wait()
        now = time.perf_counter_ns()
        profiler = current_profiler()
        if profiler is not None:
            lane = f"messages of {self._pending.communicator.name}, {self._lane + 1}"
            profiler.events.append((what, "collective", self._start, self._end or now, lane))
            profiler.events.append((f"wait for {what}", "wait", before, now, threading.get_ident()))
        self._running = self._compare = None
        self._pending.communicator.under_way.pop(self._pending.number, None)
        return self._result


def waited(transfers: Sequence[Transfer]) -> list[Any]:
    """The results of transfers, in order; all of them are waited for, also where one fails."""
    found, errors = [], list[Exception]()
    for transfer in transfers:
        try:
            found.append(transfer.wait())
        except Exception as e:
            errors.append(e)
    if errors:
        raise errors[0]
    return found
