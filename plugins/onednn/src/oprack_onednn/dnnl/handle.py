"""What all of oneDNN's objects have in common: a pointer that is destroyed with its Python object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from ctypes import byref, c_void_p
from functools import lru_cache
from typing import Any

from oprack.cache import BUDGET

from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY


def dims(values: Iterable[int]) -> Any:
    """A dnnl_dims_t, which is only read; the unused rest is 0."""
    return _dims(tuple(values))


@lru_cache(maxsize=4096)
def _dims(values: tuple[int, ...]) -> Any:
    return _c.Dims(*map(int, values))


def call(name: str, *args: Any) -> None:
    """Call dnnl_<name>. Raises NotServedError when it refuses, and says which function and status it was."""
    status = getattr(LIBRARY.lib, f"dnnl_{name}")(*args)
    if status:
        what = _c.STATUS[status] if status < len(_c.STATUS) else f"status {status}"
        raise NotServedError(f"dnnl_{name}: {what}")


class Native:
    """Owns a pointer; passed to a function it is that pointer.

    Attributes:
        destroy: The name of the function that frees it.
        cost: What such objects are called in the account of `oprack.cache`, and about how many bytes each takes; None
            of those that are not counted.
    """

    __slots__ = ("pointer",)
    destroy = ""
    cost: tuple[str, int] | None = None

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        if self.cost is not None:
            BUDGET.count(*self.cost, 1)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # at exit the library may be gone before its objects, and the process ends anyway
        if hasattr(self, "pointer") and not finalizing():
            getattr(LIBRARY.lib, f"dnnl_{self.destroy}")(self.pointer)
            if self.cost is not None:
                BUDGET.count(self.cost[0], -self.cost[1], -1)


# The slot by the name under which ctypes looks for what it should pass. An object of ctypes beside each pointer would
# double what Python's garbage collector has to walk for every new shape.
Native._as_parameter_ = Native.pointer  # type: ignore[attr-defined]


def create(name: str, *args: Any) -> int:
    out = c_void_p()
    call(name, byref(out), *args)
    assert out.value is not None
    return out.value
