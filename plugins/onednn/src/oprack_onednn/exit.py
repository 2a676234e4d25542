"""The end of the process: native calls of daemon threads end before Python frees what they work in (_exit.c)."""

from __future__ import annotations

import atexit
from ctypes import c_int, c_void_p, cast, pythonapi
from types import TracebackType

from oprack_onednn.runner import RUNNER


class Exit:
    """A with block around native calls for which Python's lock is given away, one by one.

    Those of the runner need none, nor do regions of the pool. At exit blocks and runs of other threads that are under
    way are waited for, two seconds at most, and for as long no new one begins. Does nothing without the runner.
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
