"""What the process does around oneDNN's calls: it delivers signals, forks, and ends.

**Signals.** Some of oneDNN's machine code (its matrix products behind recurrent layers, for one) uses the stack pointer
for data of its own. The handler of a signal, as timers, profilers and event loops have them, would put its frame over
whatever lies there: the process ends with a corrupted heap, or goes on with wrong numbers. So a Python thread that runs
primitives gets a stack of its own for handlers, which Python's have used since 3.10 (`SignalStack`), and the pool's
threads, or libgomp's (`start_workers`), are started with all signals blocked, so that none is ever delivered to them.

**Fork.** A child has the thread that forked alone. The pool begins anew in it (`pool.c`), nothing is compiled ahead any
more (`compile.c`), and oneDNN goes on, unless another thread was in a native call: what that had locked stays locked in
the child. So native calls are counted, and `RUNNER.lost` says in the child whether there was one. libgomp waits in a
child for threads that are not there, so where it serves no child computes by oneDNN (`dnnl.library`).

**The end.** Python ends while daemon threads run: it frees what belongs to them, scratch memory for one, and oneDNN
takes its own data down. A native call that is under way would go on in memory that is gone. So an exit handler waits
for those that are counted, and lets no new one begin (`exit.c`); runs of the runner and regions of the pool count
themselves, all others are in a with block of `EXIT`.
"""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from ctypes import (
    CDLL,
    POINTER,
    Array,
    Structure,
    addressof,
    byref,
    c_char,
    c_int,
    c_size_t,
    c_uint,
    c_void_p,
    cast,
    create_string_buffer,
    pythonapi,
)
from types import TracebackType

from oprack.python.interruption import let_interruptions_pass

from oprack_onednn.c.runner import RUNNER

_SIZE = 1 << 16
# SS_DISABLE, and the order of the fields of a stack_t, which are macOS's own
_DISABLE = 4 if sys.platform == "darwin" else 2

# Memory that a thread may still use, although the object that owned it has gone; see SignalStack.__del__.
_ABANDONED: list[Array[c_char]] = []


class _Stack(Structure):
    pointer: int | None
    flags: int

    if sys.platform == "darwin":
        _fields_ = (("pointer", c_void_p), ("size", c_size_t), ("flags", c_int))
    else:
        _fields_ = (("pointer", c_void_p), ("flags", c_int), ("size", c_size_t))


class SignalStack:
    """The alternative stack of the thread that makes it, unless that has one; it goes with the object."""

    def __init__(self) -> None:
        self._memory: Array[c_char] | None = None
        self._thread = threading.get_native_id()
        try:
            self._set = CDLL(None).sigaltstack
        except (OSError, AttributeError, TypeError):
            let_interruptions_pass()
            return  # a system without such stacks
        self._set.argtypes, self._set.restype = (POINTER(_Stack), POINTER(_Stack)), c_int
        present = _Stack()
        if self._set(None, byref(present)) or not present.flags & _DISABLE:
            return  # someone else's, such as faulthandler's, serves as well
        memory = create_string_buffer(_SIZE)
        if not self._set(byref(_Stack(pointer=addressof(memory), size=_SIZE)), None):
            self._memory = memory

    def __del__(self) -> None:
        memory, present = self._memory, _Stack()
        if memory is None:
            return
        if self._thread != threading.get_native_id():
            # Another thread drops it, or a forked child does: whether the stack is still in use can't be known.
            _ABANDONED.append(memory)
        elif not self._set(None, byref(present)) and present.pointer == addressof(memory):
            self._set(byref(_Stack(flags=_DISABLE)), None)


def start_workers(library: CDLL, count: int) -> None:
    """Start the OpenMP threads of the calling thread with all signals blocked, which threads inherit when they start.

    libgomp keeps them for later parallel regions of `count` threads, and starts none for regions of one.

    Args:
        library: One that runs on libgomp, in which omp_set_num_threads has been called with `count`.
        count: Number of threads of a team, the calling one included.
    """
    try:
        region, nothing = library.GOMP_parallel, CDLL(None).getpid
    except (OSError, AttributeError, TypeError):
        let_interruptions_pass()
        return
    region.argtypes, region.restype = (c_void_p, c_void_p, c_uint, c_uint), None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        region(cast(nothing, c_void_p), None, count, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Exit:
    """A with block around native calls for which Python's lock is given away, one by one.

    Those of the runner need none, nor do regions of the pool. At exit blocks and runs of other threads that are under
    way are waited for, ten seconds at most, and no new one begins until two seconds later. Does nothing without the
    runner.
    """

    def __init__(self) -> None:
        self._enter = self._leave = _nothing

    def install(self) -> None:
        """Have the end of the process noticed, from now on."""
        own = RUNNER.library
        if own is None:
            return
        # it has the first name since Python 3.13
        finalizing = getattr(pythonapi, "Py_IsFinalizing", None) or pythonapi._Py_IsFinalizing
        finalizing.argtypes, finalizing.restype = (), c_int
        own.oprack_exit_install(cast(finalizing, c_void_p))
        self._enter, self._leave = own.oprack_exit_enter, own.oprack_exit_leave
        # Threads that are not daemons have ended by then.
        atexit.register(own.oprack_exit_begin)

    def __enter__(self) -> None:
        self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()


def _nothing() -> None:
    pass


EXIT = Exit()
