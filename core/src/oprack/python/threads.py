"""How many threads a computation may take: the CPUs of the process, and what a Python thread allows its own calls."""

from __future__ import annotations

import os
import re
import threading

_FOUND = re.match(r"\s*([1-9]\d{0,5})", os.environ.get("OMP_NUM_THREADS", ""))
_ASKED = int(_FOUND[1]) if _FOUND else 1 << 20
"""Threads that OMP_NUM_THREADS allows."""


def cpus() -> int:
    """CPUs that the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def asked_cpus() -> int:
    """CPUs that the process may use; fewer if OMP_NUM_THREADS said so when it began, as for other libraries."""
    return min(cpus(), _ASKED)


class ThreadLimit(threading.local):
    """How many threads the calls of a Python thread may take; 0: as many as there are CPUs for the process."""

    _limit = 0

    def threads(self) -> int:
        """The number."""
        return self._limit or asked_cpus()

    def of(self, count: int) -> _Limited:
        """A with block in which it is `count`, at most."""
        return _Limited(self, count)


class _Limited:
    """The with block; predictors enter it often."""

    __slots__ = ("_before", "_count", "_own")

    def __init__(self, own: ThreadLimit, count: int) -> None:
        self._own, self._count, self._before = own, count, 0

    def __enter__(self) -> None:
        self._before, self._own._limit = self._own._limit, self._count

    def __exit__(self, *error: object) -> None:
        self._own._limit = self._before
