"""Limits the threads of NumPy's math library and of kernel libraries while a predictor runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.inference.no_effect import say_once

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

_NO_LIMIT = contextlib.nullcontext()


class _Together:
    """A few context managers as one; less than contextlib.ExitStack takes counts in runs of some ten microseconds."""

    __slots__ = ("_entered", "_given")

    def __init__(self, given: Sequence[AbstractContextManager[Any]]) -> None:
        self._given, self._entered = given, list[AbstractContextManager[Any]]()

    def __enter__(self) -> None:
        try:
            for manager in self._given:
                manager.__enter__()
                self._entered.append(manager)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *error: Any) -> None:
        while self._entered:
            self._entered.pop().__exit__(*error)


class ThreadLimits:
    """Calling it returns the context manager of one run.

    Args:
        threads: How many threads libraries may use; None limits nothing.
        manager: The packs, whose libraries are limited.
    """

    def __init__(self, threads: int | None, manager: PackManager) -> None:
        self._count, self._manager = threads, manager

    def __call__(self) -> AbstractContextManager[Any]:
        return _NO_LIMIT if self._count is None else _Together([limit(self._count) for limit in self._limits])

    @cached_property
    def _limits(self) -> list[Callable[[Any], AbstractContextManager[Any]]]:
        """Functions that limit the threads of NumPy and kernel libraries; cached, as a failing import is slow."""
        libraries = self._manager.libraries().values()
        limits = [library.limit_threads for library in libraries if not isinstance(library, Exception)]
        try:
            import threadpoolctl
        except ImportError:
            reason = "for NumPy, it needs the package threadpoolctl (pip install it)"
            say_once("Config.set_cpu_math_library_num_threads", reason)
        else:
            limits.append(threadpoolctl.threadpool_limits)
        return limits
