"""Threads that call functions for others, and that Ctrl-C leaves usable."""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Job:
    """A function that a thread of `Workers` calls.

    Args:
        function: What is called.
    """

    __slots__ = ("_begun", "_ended", "_error", "_function")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self._error: BaseException | None = None
        self._begun, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._ended.acquire()

    def work(self) -> None:
        """Call the function, in the thread of a worker."""
        function = self._function
        if self._begun.acquire(False) and function is not None:
            try:
                function()
            except BaseException as error:  # raised where the result is asked for
                self._error = error
            finally:
                self._function = function = None  # what it holds may be large
                self._ended.release()

    def cancel(self) -> bool:
        """Whether no worker had begun with the function by now; then none ever does."""
        return self._begun.acquire(False)

    def wait(self) -> None:
        """Wait until the function has returned. Raises what it raised."""
        with self._ended:
            pass
        if self._error is not None:
            raise self._error


class Workers:
    """Threads that wait for functions to call. They start when there is something to do, and end with the process.

    An executor of the standard library takes its locks in functions of Python, which Ctrl-C and handlers of signals
    interrupt: a lock that such a function has just taken is never given back, and its threads wait for ever. Here
    queues and locks are those of C, between whose calls nothing is held.

    Args:
        most: How many threads there are at most.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._started = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """A process that was forked has no threads but one."""
        self._jobs, self._started = SimpleQueue(), 0

    def submit(self, function: Callable[[], Any]) -> Job:
        """Have a function called by a thread.

        Args:
            function: What is called.

        Returns:
            The job, which the caller waits for or cancels.
        """
        if self._started < self._most():
            _thread.start_new_thread(_serve, (self._jobs,))  # an interruption here makes one more, and no harm
            self._started += 1
        job = Job(function)
        self._jobs.put(job)
        return job


def _serve(jobs: SimpleQueue[Job]) -> None:
    while True:
        jobs.get().work()
