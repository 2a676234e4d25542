"""Pauses Python's garbage collector where thousands of objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
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
