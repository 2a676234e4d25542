"""Work beside the calling thread, such as hashing, which holds no lock of the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


# Not a Future of concurrent.futures: importing that takes 1.6 ms of a process's start, which this is here to shorten.
class Later(Generic[T]):
    """The result of a function that a thread of its own calls; a start of a process takes time that cores have.

    Args:
        function: Called once, at once.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._work, args=(function,), name="oprack-later", daemon=True)
        self._thread.start()

    def _work(self, function: Callable[[], T]) -> None:
        try:
            self._results.append(function())
        except BaseException as error:  # raised where the result is asked for
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the function, and return its result; raises what it raised."""
        self._thread.join()
        if self._errors:
            raise self._errors[0]
        return self._results[0]
