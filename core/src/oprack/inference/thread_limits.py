"""Limits the threads of NumPy's math library and of kernel libraries while a predictor runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.inference.no_effect import say_once

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

_NO_LIMIT = contextlib.nullcontext()


class ThreadLimits:
    """Calling it returns the context manager of one run.

    Args:
        threads: How many threads libraries may use; None limits nothing.
        manager: The packs, whose libraries are limited.
    """

    def __init__(self, threads: int | None, manager: PackManager) -> None:
        self._count, self._manager = threads, manager

    def __call__(self) -> AbstractContextManager[Any]:
        if self._count is None:
            return _NO_LIMIT
        # of most processes there is one such library, and a run may take no longer than some ten microseconds
        return self._limits[0](self._count) if len(self._limits) == 1 else self._all()

    @contextlib.contextmanager
    def _all(self) -> Iterator[None]:
        with contextlib.ExitStack() as limits:
            for limit in self._limits:
                limits.enter_context(limit(self._count))
            yield

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
