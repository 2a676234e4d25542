"""Settings of the whole process that hold for a with block."""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_lock = _thread.allocate_lock()

# Whose settings hold, by a weak reference, since a block that is interrupted as it begins never ends.
_holder: weakref.ref[ProcessLimit] | None = None


class ProcessLimit:
    """A with block in which the process has other settings, unless another such block set some before.

    Two threads that each save what they find and set it back would leave the process with what one of them had set.

    Args:
        make: Returns the context manager that changes the settings, or changes them itself and takes them back later.
    """

    __slots__ = ("__weakref__", "_entered", "_make")

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._entered: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        global _holder
        with _lock:
            if _holder is not None and _holder() is not None:
                return
            _holder = weakref.ref(self)
        try:
            entered = self._make()
            entered.__enter__()
            self._entered = entered
        except BaseException:
            _holder = None
            raise

    def __exit__(self, *error: object) -> None:
        global _holder
        if _holder is not None and _holder() is self:
            entered, self._entered = self._entered, None
            try:
                if entered is not None:
                    entered.__exit__(*error)  # type: ignore[arg-type]
            finally:
                _holder = None
