"""What is particular to Python: its global lock, its garbage collector, and functions from generated source."""

from __future__ import annotations

import gc
import linecache
import sys
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
_number = count()

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether there is a global lock; without it a reference count does not say who else has an object."""


def without_collecting(function: Callable[..., T], *args: Any) -> T:
    """Call a function while the collector is off, in all threads; it stays off if it was.

    Of a model, or of what kernels make for shapes, nearly all objects stay. Each seven hundred new ones would have the
    collector look through them, and every now and then through all objects of the process, for garbage that is not
    there: a tenth of the time. What is garbage is found afterwards.

    This is no context manager, since a signal that arrives when `__exit__` begins would leave the collector off for
    good: Python handles signals where its own functions begin, and none between the end of a call and `gc.enable`.

    Args:
        function: What is called.
        args: Its arguments.

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


def generated_function(source: str, name: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Make a function of source that was generated. Tracebacks and debuggers find the source while the function lives.

    Args:
        source: The source. What it defines beside the function is left among the names.
        name: The function's name in it.
        title: What tracebacks say in place of a file, with a number.
        names: Objects that the code uses, by name.

    Returns:
        The function.
    """
    filename = f"<{title} {next(_number)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), names)
    function: Callable[..., Any] = names.pop(name)
    # The source goes with the function; otherwise a long session would fill linecache.
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function
