"""The threads of compile.c, which compile primitives before their turn comes.

For inputs of a new size hundreds of primitives are compiled, each by one thread. Where all of them are known before the
first one runs, the process's other cores take a share.
"""

from __future__ import annotations

import atexit
from ctypes import CDLL, c_void_p, cast
from typing import Any

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.threads.pool import POOL

# A core that compiles is one that computes nothing, and there is never enough to compile for many.
_MOST = 4


class Compiler:
    """Hands descriptors over, and collects their primitives."""

    def __init__(self) -> None:
        self._library: CDLL | None = None

    def install(self, library: CDLL) -> None:
        """Let primitives of a library be compiled, for as long as the process lives; nothing without the runner."""
        own = self._library = RUNNER.library
        if own is None:
            return
        functions = library.dnnl_primitive_create, POOL.set_threads
        own.oprack_compile_install(*(cast(function, c_void_p) for function in functions))
        # at exit the library takes its own data down, whatever its threads are at
        atexit.register(own.oprack_compile_end)

    def ahead(self, desc: Any, threads: int, cores: int) -> int:
        """Have a primitive compiled.

        Args:
            desc: Its descriptor, a PrimitiveDesc, which stays until the job was collected.
            threads: Threads that the primitive will use.
            cores: How many cores the calling thread may use, its own counted.

        Returns:
            The job; 0 where nobody compiles it: on one core, or without the runner.
        """
        if self._library is None or cores < 2:
            return 0
        return self._library.oprack_compile_ahead(desc, threads, min(cores - 1, _MOST)) or 0

    def done(self, job: int) -> bool:
        """Whether a job has ended, so that to collect it takes no time."""
        assert self._library is not None
        return bool(self._library.oprack_compile_done(job))

    def collect(self, job: int) -> int:
        """The primitive of a job, which ends; 0 when it was not compiled: who collects it does so."""
        assert self._library is not None
        return self._library.oprack_compile_collect(job) or 0


COMPILER = Compiler()
