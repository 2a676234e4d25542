"""Denormal numbers count as 0 while a predictor runs, as in Paddle's: a CPU takes many times as long for them.

A net that multiplies what is small again and again, or a gelu far below 0, makes some of them. CPUs other than x86 are
about as fast with them, and keep them.
"""

from __future__ import annotations

import ctypes
import os
import sys

import numpy as np

# fenv_t of the C library: glibc and musl have the register for SSE and AVX behind seven words of the x87 unit.
_FloatingPointState = ctypes.c_uint32 * 8
_MXCSR = 7
_FLUSH_RESULTS, _IGNORE_OPERANDS = 1 << 15, 1 << 6


def _math_library() -> ctypes.PyDLL | None:
    """The C library's functions of floating-point states; None where they are not what is known here."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64" or sys.maxsize < 1 << 32:
        return None
    for name in ("libm.so.6", None):  # musl has them in its only library
        try:
            library = ctypes.PyDLL(name)  # which keeps the GIL: to give it back takes longer
            library.fegetenv, library.fesetenv  # noqa: B018 - raises where there are none
        except (OSError, AttributeError):
            continue
        return library
    return None


class FlushedDenormals:
    """A with block in which the calling thread computes with 0 in place of denormal numbers, where the CPU can.

    Pools of threads that are told so by whoever starts their work do as well; one thread enters it at a time.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before = _FloatingPointState()

    def __enter__(self) -> None:
        if _LIBRARY is not None:
            _LIBRARY.fegetenv(self._before)
            _LIBRARY.fesetenv(_FLUSHING)

    def __exit__(self, *error: object) -> None:
        if _LIBRARY is not None:
            _LIBRARY.fesetenv(self._before)


_LIBRARY = _math_library()
SERVES = _LIBRARY is not None
"""Whether denormal numbers count as 0 here."""
_FLUSHING = _FloatingPointState()
if _LIBRARY is not None:
    _LIBRARY.fegetenv(_FLUSHING)
    _FLUSHING[_MXCSR] |= _FLUSH_RESULTS | _IGNORE_OPERANDS
    for _dtype in "efd":
        np.finfo(_dtype)  # which NumPy keeps; in the block it would find no denormal number, and warn
