"""The library as the core knows it: whether it serves, how many threads it takes, and which sizes.

Compiled loops run without Python's lock, on threads of a pool of Python's: numba's own parallel loops end the process
when two threads of Python start one at the same time.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, Predicate
from oprack.python.process_limit import ProcessLimit
from oprack.python.threads import ThreadLimit, asked_cpus
from oprack.python.workers import Workers

if TYPE_CHECKING:
    import threadpoolctl

_LEAST = 1_000_000
"""Multiplications and additions of a loop, about, from which on another thread is worth its start."""
_PRODUCT = 4
"""How many times as fast BLAS multiplies."""


class Library:
    """What `register.library` names.

    Attributes:
        shares_products: Whether kernels have multiplied matrices on threads of their own in this process, so that
            NumPy's products had better have none.
    """

    def __init__(self) -> None:
        self._limit, self._least = ThreadLimit(), _LEAST
        self._workers = Workers(asked_cpus)
        self.shares_products = False

    def usable(self) -> bool:
        """Whether numba is installed; it is imported by the first kernel that runs."""
        return _installed()

    def status(self) -> str:
        """One line for `oprack doctor`."""
        if not self.usable():
            return "not used: numba is not installed"
        return f"{self.identity()}, threads: {self.threads()}"

    def identity(self) -> str:
        """The version, by which optimised models are kept on disk."""
        if not self.usable():
            return "no numba"
        return f"numba {_version()}"

    def threads(self) -> int:
        """How many threads a call of this Python thread may take."""
        return self._limit.threads()

    def limit_threads(self, count: int) -> AbstractContextManager[None]:
        """Let calls of this Python thread take at most `count` threads, for the length of a with block."""
        return self._limit.of(count)

    def without_size_limits(self) -> AbstractContextManager[None]:
        """Share out work of any size, for the length of a with block; meant for tests."""
        return self._least_of(0)

    @contextmanager
    def _least_of(self, least: int) -> Iterator[None]:
        before, self._least = self._least, least
        try:
            yield
        finally:
            self._least = before

    def share(self, run: Callable[[int, int], object], count: int, work: int) -> None:
        """Call `run(first, last)` for parts of `range(count)`, on several threads where that is worth it.

        Args:
            run: Computes a part. It gives Python's lock away, and parts have nothing in common.
            count: How many things there are to do.
            work: About how many multiplications and additions that takes in all.
        """
        threads = min(count, work // self._least if self._least else count)
        if threads < 2 or (threads := min(threads, self.threads())) < 2:
            run(0, count)
            return
        edges = [count * i // threads for i in range(threads + 1)]
        parts = [partial(run, *edges[i : i + 2]) for i in range(threads)]
        jobs = [self._workers.submit(part) for part in parts[1:]]
        try:
            parts[0]()
        finally:
            for job, part in zip(jobs, parts[1:], strict=True):
                # what nobody has begun is done here
                part() if job.cancel() else job.wait()

    def share_products(self, run: Callable[[int, int], object], count: int, work: int) -> None:
        """As `share`, of parts that multiply matrices by NumPy, which takes no threads of its own meanwhile.

        The threads of BLAS would wait for the next product on the CPUs that the parts have then.
        """
        if self._one_thread_for(work):
            run(0, count)
            return
        self.shares_products = True
        with ProcessLimit(lambda: _blas().limit(limits=1)):
            self.share(run, count, work // _PRODUCT)

    def _one_thread_for(self, products: int) -> bool:
        return products // _PRODUCT < 2 * self._least or self.threads() < 2

    def product(self, x: Array, y: Array) -> Array:
        """As numpy.matmul of arrays with two dims or more, on the threads that loops run on.

        Args:
            x: [..., rows, terms].
            y: [..., terms, columns].

        Returns:
            [..., rows, columns].
        """
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        shape = *batch, x.shape[-2], y.shape[-1]
        work = math.prod(shape) * x.shape[-1]
        if self._one_thread_for(work):
            return np.matmul(x, y)
        out = np.empty(shape, np.result_type(x, y))
        # the first dim that is long enough, else the longer one of a matrix
        threads = self.threads()
        long = (i for i, n in enumerate(batch) if n >= threads)
        axis = next(long, len(batch) + (shape[-1] > shape[-2])) - len(shape)
        left, right = axis != -1 and _along(x, axis), axis != -2 and _along(y, axis)

        def run(first: int, last: int) -> None:
            part: Any = ..., slice(first, last), *(slice(None),) * (-axis - 1)
            np.matmul(x[part] if left else x, y[part] if right else y, out=out[part])

        self.share_products(run, shape[axis], work)
        return out


def _along(factor: Array, axis: int) -> bool:
    """Whether a factor has a part for each share along an axis, counted from the last."""
    return factor.ndim >= -axis and (axis > -3 or factor.shape[axis] > 1)


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """The BLAS that NumPy multiplies by; nothing where that is Accelerate, whose threads are its own."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def _version() -> str:
    """By the folder beside the package: kept models ask for it, and importlib.metadata is slow to import."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None and spec.origin is not None
    site = os.path.dirname(os.path.dirname(spec.origin))
    found = (name for name in os.listdir(site) if name.startswith("numba-") and name.endswith(".dist-info"))
    return next(found, "numba-of unknown version.dist-info").removeprefix("numba-").removesuffix(".dist-info")


LIBRARY = Library()

usable = Predicate(lambda query: LIBRARY.usable(), "numba is installed")
"""Predicate of every kernel of this library."""
