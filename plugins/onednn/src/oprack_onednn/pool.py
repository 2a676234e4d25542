"""The threads of _pool.c, on which oneDNN's parallel regions run in place of libgomp's.

A region of libgomp ends when each of its threads has woken up and done its share, so the first runs after a rest are
slow, and those beside a busy process slower still. In the pool a share is done by whoever comes first.
"""

from __future__ import annotations

import os
from ctypes import CDLL

from oprack_onednn.runner import RUNNER

SWITCH = "OPRACK_ONEDNN_POOL"
"""Environment variable: with "0" oneDNN keeps libgomp's threads."""


class Pool:
    """Whether the pool serves.

    Attributes:
        problem: Why it does not; "" when it does.
    """

    def __init__(self) -> None:
        self.problem = "oneDNN was not opened yet"

    def install(self, library: CDLL) -> None:
        """Let the functions of a library run on the pool's threads, for as long as the process lives."""
        if RUNNER.install is None:
            self.problem = RUNNER.problem
        elif os.environ.get(SWITCH) == "0":
            self.problem = f"{SWITCH}=0"
        else:
            failed = RUNNER.install(library._handle)
            self.problem = f"{failed.decode()} can't be replaced" if failed else ""


POOL = Pool()
