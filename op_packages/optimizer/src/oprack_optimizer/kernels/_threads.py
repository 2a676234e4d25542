"""Threads for what NumPy computes with one: it gives the interpreter's lock away for as long as it goes over memory."""

from __future__ import annotations

import os
from collections.abc import Callable

from oprack.python.threads import cpus
from oprack.python.workers import Workers

# What limits the threads of NumPy's own library limits these, too.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count() -> int:
    """Threads that NumPy may use: the CPUs of this process, unless an environment variable says fewer."""
    limits = [int(text) for name in _VARIABLES if (text := os.environ.get(name, "")).isdecimal()]
    return max(1, min([cpus(), *(limit for limit in limits if limit)]))


def in_turns(function: Callable[[], None], most: int) -> None:
    """Call a function in this thread, and at the same time in others, `most` in all.

    It works on what is left of a job until there is nothing left, so a call that begins late has nothing to do. The
    first error of any of them is raised.
    """
    helpers = min(most, count()) - 1
    if helpers < 1:
        function()
        return
    jobs = [_WORKERS.submit(function) for _ in range(helpers)]
    try:
        function()
    finally:
        # all of them write to arrays of this call; one that did not begin by now never does
        for job in jobs:
            if not job.cancel():
                job.wait()


def apart(function: Callable[[], None], most: int) -> None:
    """Call a function in other threads, in `most` of them at the same time, and wait: what interrupts this thread, such
    as Ctrl-C, does not stop it within the function. The first error of any of them is raised.
    """
    jobs = [_WORKERS.submit(function) for _ in range(max(1, min(most, count())))]
    for job in jobs:
        job.wait()


_WORKERS = Workers(lambda: count())
