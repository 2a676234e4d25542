"""What depends on the Python that runs: its global lock, and its garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether there is a global lock; without it a reference count does not say who else has an object."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, in all threads, for the length of a with block; it stays off if it was.

    Of a model, or of what kernels make for shapes, nearly all objects stay. Each seven hundred new ones would have the
    collector look through them, and every now and then through all objects of the process, for garbage that is not
    there: a tenth of the time. What is garbage is found afterwards.
    """
    enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if enabled:
            gc.enable()
