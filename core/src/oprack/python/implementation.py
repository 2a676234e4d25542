"""What depends on the Python that runs: its global lock, and its garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
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
