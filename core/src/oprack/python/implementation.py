"""What depends on the Python and the machine that run: the global lock, the garbage collector, denormal numbers."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether there is a global lock; without it a reference count does not say who else has an object."""


def without_collecting(function: Callable[..., T], *args: Any, stays: bool = False) -> T:
    """Call a function while the collector is off, in all threads; it stays off if it was.

    Of a model, or of what kernels make for shapes, nearly all objects stay. Each seven hundred new ones would have the
    collector look through them, and every now and then through all objects of the process, for garbage that is not
    there: a tenth of the time. What is garbage is found afterwards.

    This is no context manager, since a signal that arrives when `__exit__` begins would leave the collector off for
    good: Python handles signals where its own functions begin, and none between the end of a call and `gc.enable`.

    Args:
        function: What is called.
        args: Its arguments.
        stays: Whether what it makes stays, as modules and a model do. The collector takes all objects for old then,
            which it looks through every now and then; else it looks through the new ones at once, for some ten
            milliseconds of a start. Garbage among them would stay for long. Nothing changes in a process that froze
            objects itself.

    Returns:
        What the function returns.
    """
    enabled = gc.isenabled()
    try:
        gc.disable()
        return function(*args)
    finally:
        if enabled:
            gc.enable()
            if stays and hasattr(gc, "freeze") and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()


def without_denormals(function: Callable[..., T], *args: Any) -> T:
    """Call a function while the calling thread computes with 0 in place of denormal numbers, where that is known how.

    x86 takes many times as long for them. Pools of threads follow where whoever starts their work tells them so. This
    is no context manager for the reason that `without_collecting` has.

    Args:
        function: What is called.
        args: Its arguments.

    Returns:
        What the function returns.
    """
    found = floating_point_state()
    if found is None:
        return function(*args)
    kind, get, put, flushing = found
    before = kind()
    get(before)
    try:
        put(flushing)
        return function(*args)
    finally:
        put(before)


@cache
def floating_point_state() -> tuple[Any, Callable[[Any], int], Callable[[Any], int], Any] | None:
    """The C library's fenv_t, fegetenv and fesetenv, and a state that flushes; None where they are not what is known.

    glibc and musl have the register of SSE and AVX behind seven words of the x87 unit.
    """
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64" or sys.maxsize < 1 << 32:
        return None
    import ctypes

    import numpy as np

    for name in ("libm.so.6", None):  # musl has them in its only library
        try:
            library = ctypes.PyDLL(name)  # which keeps the GIL: to give it back takes longer
            get, put = library.fegetenv, library.fesetenv
        except (OSError, AttributeError):
            continue
        kind = ctypes.c_uint32 * 8
        flushing = kind()
        get(flushing)
        flushing[7] |= 1 << 15 | 1 << 6  # results, operands
        for dtype in "efd":
            np.finfo(dtype)  # which NumPy keeps; with that state it would find no denormal number, and warn
        return kind, get, put, flushing
    return None
