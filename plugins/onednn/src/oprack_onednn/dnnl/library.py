"""Opens oneDNN, says whether it can be used in this process, and holds the number of threads.

A process that was forked while another thread computed can't use it: what that had locked in oneDNN stays locked. Nor
can one that was forked after primitives ran on libgomp's threads, which do not exist in it: the first parallel
region would wait for them for ever. NumPy's kernels run there instead, and the first call of one logs it as a warning;
`status()`, which `oprack doctor` prints, says so as well.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from ctypes import CDLL, POINTER, c_void_p, cast
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import Predicate
from oprack.python.interruption import let_interruptions_pass
from oprack.python.logs import get_logger
from oprack.python.threads import asked_cpus

from oprack_onednn.c import build
from oprack_onednn.c.runner import RUNNER, ThreadState
from oprack_onednn.dnnl import _c, wheels
from oprack_onednn.threads.compiler import COMPILER
from oprack_onednn.threads.pool import POOL
from oprack_onednn.threads.process import EXIT, start_workers

_LOG = get_logger(__name__)
FILE = build.LIBRARY
"""The library that is opened."""
_AGAIN = (
    "the wheel of oprack-onednn for Linux on x86-64 with glibc has it, and an installation from source builds it "
    "(pip install --force-reinstall oprack-onednn)"
)
# Compiled primitives that oneDNN keeps for all threads: those of a net or two. It looks through all of them for the
# oldest one whenever it has one more, which takes as long as compiling when there are a thousand, its own default.
_COMPILED = 256
_CAPACITY = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY")


class Library:
    """oneDNN in this process.

    Attributes:
        lib: Its functions, None until they are used.
        ready: Whether it was opened and serves.
        problem: Why it does not, "" when it does or was not opened yet.
        tried: Whether it was asked for, and so opened where that is possible.
        ran: Whether a primitive was executed.
        threads_revision: A number that grows with each new number of threads, and when the library stops to serve.
    """

    def __init__(self) -> None:
        self.lib: CDLL | Any = None  # Any: its objects exist only once it is open, and test for nothing
        self.engine: int | None = None
        self.ready = False
        self.problem = ""
        self.ran = False
        self.threads_revision = 0
        self._threads = 0
        self.tried = False
        self._unsaid = ""
        self._lock = threading.Lock()

    def usable(self) -> bool:
        """Whether kernels of this library may run; opens it on first use."""
        if not self.tried:
            with self._lock:
                if not self.tried:
                    try:
                        self._load()
                        self.ready = True
                    except _UnavailableError as error:
                        self.problem = str(error)
                    self.tried = True
        if self._unsaid:  # a child that computes nothing has nothing to say
            text, self._unsaid = self._unsaid, ""
            _LOG.warning("process %d computes with NumPy's kernels, which take longer: %s", os.getpid(), text)
        return not self.problem

    def _load(self) -> None:
        wheel = wheels.here()
        path, (lib, openmp) = self._open() if wheel is None else self._open_wheel(wheel)
        try:
            _c.declare(lib)
            POOL.find(lib, openmp)
        except AttributeError as error:
            let_interruptions_pass()
            raise _UnavailableError(f"{path} can't be loaded: {error}; {_AGAIN}") from error
        engine = c_void_p()
        if lib.dnnl_engine_create(engine, _c.CPU_ENGINE, 0):
            raise _UnavailableError(f"{path} has no engine for this CPU")
        if not any(name in os.environ for name in _CAPACITY):
            lib.dnnl_set_primitive_cache_capacity(_COMPILED)
        self.engine = engine.value
        self.lib = lib
        RUNNER.load()
        COMPILER.install(lib)
        EXIT.install()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _open(self) -> tuple[str, tuple[CDLL, None]]:
        """The library beside the runner."""
        if sys.byteorder != "little" or sys.platform != "linux" or platform.machine() != "x86_64":
            raise _UnavailableError(f"there is no wheel of it for {sys.platform} on {platform.machine()}")
        path = str(FILE)
        if not os.path.isfile(path):
            raise _UnavailableError(f"{path} is missing: {_AGAIN}")
        try:
            return path, (CDLL(path), None)
        except OSError as error:
            let_interruptions_pass()
            missing = "install your system's libgomp (libgomp1, libgomp)" if "libgomp" in str(error) else _AGAIN
            raise _UnavailableError(f"{path} can't be loaded: {error}; {missing}") from error

    def _open_wheel(self, wheel: wheels.Wheel) -> tuple[str, tuple[CDLL, CDLL]]:
        """The library of a wheel, and OpenMP's."""
        try:
            return wheel.file, wheels.opened(wheel)
        except OSError as error:
            let_interruptions_pass()
            raise _UnavailableError(str(error)) from error

    def _after_fork(self) -> None:
        if not self.ran or self.problem:
            return
        if POOL.problem or RUNNER.lost is None:
            why = "after oneDNN had run, and OpenMP's threads are not in it"
        elif RUNNER.lost():
            why = "while another thread ran oneDNN, and what that had locked stays locked"
        else:
            return
        self.ready = False
        self.threads_revision += 1
        advice = "start processes with multiprocessing's 'spawn' or 'forkserver'"
        self._unsaid = self.problem = f"this process was forked {why}; {advice}"

    # Threads ----------------------------------------------------------------------------------------------------------
    def num_threads(self) -> int:
        """Threads that a primitive may use: what set_num_threads said, else the CPUs that this process may use.

        OMP_NUM_THREADS limits the latter, as for other libraries; `oprack launch` shares the CPUs out by it.
        """
        return self._threads or asked_cpus()

    def set_num_threads(self, count: int) -> None:
        """Set how many threads a primitive uses, in all Python threads; 0 = the CPUs that this process may use."""
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InvalidArgumentError(f"set_num_threads({count!r}): expected a number of threads, or 0 for all CPUs")
        if count != self._threads:
            self._threads = count
            self.threads_revision += 1

    def apply_threads(self, limit: int = 0) -> int:
        """Tell OpenMP, which keeps the number for each thread that starts parallel regions; returns the number."""
        count = limit or self.num_threads()
        POOL.set_threads(count)
        return count

    def start_workers(self, count: int) -> None:
        """Start OpenMP's threads of the calling Python thread, so that no signal ever reaches them."""
        if self.lib is not None and POOL.problem:  # the pool's own are started so
            start_workers(self.lib, count)

    def fill(self, state: ThreadState, stream: int) -> None:
        """Write the functions that the runner calls, and a thread's stream, into the state of that thread."""
        assert self.lib is not None
        functions = (self.lib.dnnl_memory_set_data_handle, self.lib.dnnl_primitive_execute)
        state.set_handle, state.execute = (cast(f, c_void_p).value for f in functions)
        state.set_threads = cast(POOL.set_threads, c_void_p).value
        state.stream = stream

    # What doctor says -------------------------------------------------------------------------------------------------
    def status(self) -> str:
        """One line: the version and what it runs on, or why it does not serve."""
        if not self.usable():
            return self.identity()
        runner = f"runner not used: {RUNNER.problem}" if RUNNER.problem else "runner: compiled"
        pool = f", libgomp's threads: {POOL.problem}" if POOL.problem and not RUNNER.problem else ""
        return f"{self.identity()}, threads: {self.num_threads()}, {runner}{pool}"

    def has_bfloat16(self) -> bool:
        """Whether this CPU multiplies numbers in bfloat16 faster than in float32."""
        return self.lib is not None and self.lib.dnnl_get_effective_cpu_isa() & _BFLOAT16 == _BFLOAT16

    def has_int8(self) -> bool:
        """Whether this CPU adds up products of bytes in 32 bits, which takes a fraction of the time of float32."""
        return self.lib is not None and bool(self.lib.dnnl_get_effective_cpu_isa() & _VNNI)

    def identity(self) -> str:
        """The version and the instructions that it uses, by which optimised models are kept on disk."""
        if not self.usable():
            return f"not used: {self.problem}"
        assert self.lib is not None
        v = cast(self.lib.dnnl_version(), POINTER(_c.Version)).contents
        isa = _ISAS.get(self.lib.dnnl_get_effective_cpu_isa(), "an ISA of its own name")
        return f"oneDNN {v.major}.{v.minor}.{v.patch}, {isa}"


_BFLOAT16 = 0xE7
# the bit of AVX512-VNNI, and that of AVX-VNNI
_VNNI = 0x48
_ISAS = {
    0x1: "SSE4.1",
    0x3: "AVX",
    0x7: "AVX2",
    0xF: "AVX2 with VNNI",
    0x1F: "AVX2 with VNNI 2",
    0x27: "AVX-512",
    0x67: "AVX-512 with VNNI",
    0xE7: "AVX-512 with bfloat16",
    0x1EF: "AVX-512 with float16",
    0xFEF: "AVX-512 with AMX",
    0x1FEF: "AVX-512 with AMX and float16",
}


class _UnavailableError(Exception):
    """Why oneDNN can't be used."""


LIBRARY = Library()

usable = Predicate(lambda query: LIBRARY.usable(), "oneDNN in this process (`oprack doctor` says more)")
"""Predicate of every kernel of this library."""


def status() -> str:
    """One line: oneDNN's version and what it runs on, or why it does not serve this process."""
    return LIBRARY.status()


def num_threads() -> int:
    """Threads that a primitive may use."""
    return LIBRARY.num_threads()


def set_num_threads(count: int) -> None:
    """Set how many threads primitives use, in all Python threads; 0 = the CPUs that this process may use."""
    LIBRARY.set_num_threads(count)
