"""The threads that oneDNN's parallel regions run on: those of pool.c, or those of OpenMP's library, such as libgomp.

A region of libgomp ends when each of its threads has woken up and done its share, so the first runs after a rest are
slow, and those beside a busy process slower still. In the pool a share is done by whoever comes first. Which of the two
oneDNN's library calls was decided when it was put here (`c/build.py`).
"""

from __future__ import annotations

from ctypes import CDLL, c_int
from typing import Any


class Pool:
    """Whether the pool serves.

    Attributes:
        problem: Why it does not; "" when it does.
        set_threads: Sets how many threads the regions of the calling thread have, a function of ctypes once it serves.
        max_threads: Returns that number.
    """

    def __init__(self) -> None:
        self.problem = "oneDNN was not opened yet"
        self.set_threads: Any = lambda count: None
        self.max_threads: Any = lambda: 1

    def find(self, library: CDLL, openmp: CDLL | None = None) -> None:
        """Find the functions that oneDNN's library calls.

        Args:
            library: oneDNN's, with which was loaded what it calls.
            openmp: OpenMP's, on systems for which there is no pool.
        """
        served = openmp is None and hasattr(library, "oprack_omp_set_num_threads")
        why = "there was no C compiler, or no patchelf" if openmp is None else "the pool is for Linux on x86-64 alone"
        self.problem = "" if served else f"oneDNN's library calls them ({why})"
        prefix, source = "oprack_omp" if served else "omp", library if openmp is None else openmp
        self.set_threads = getattr(source, f"{prefix}_set_num_threads")
        self.set_threads.argtypes, self.set_threads.restype = (c_int,), None
        self.max_threads = getattr(source, f"{prefix}_get_max_threads")


POOL = Pool()
