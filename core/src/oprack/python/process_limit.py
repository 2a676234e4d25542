"""Settings of the whole process that hold for a with block."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_taken = _thread.allocate_lock()


class ProcessLimit:
    """A with block in which the process has other settings, unless another such block set some before.

    Two threads that each save what they find and set it back would leave the process with what one of them had set.

    Args:
        make: Returns the context manager that changes the settings, or changes them itself and takes them back later.
    """

    __slots__ = ("_entered", "_make")

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._entered: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        if _taken.acquire(False):
            try:
                entered = self._make()
                entered.__enter__()
                self._entered = entered
            except BaseException:
                _taken.release()
                raise

    def __exit__(self, *error: object) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            try:
                entered.__exit__(*error)  # type: ignore[arg-type]
            finally:
                _taken.release()
