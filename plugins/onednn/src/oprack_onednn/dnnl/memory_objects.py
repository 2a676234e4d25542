"""What primitives take for memory: a descriptor with an address. A chain's are made, and destroyed, all at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from ctypes import c_void_p, cast
from functools import cache

from oprack.cache import BUDGET

from oprack_onednn.c.runner import RUNNER, array_type
from oprack_onednn.dnnl.handle import call, create
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import MemoryDesc

# Bytes of each, with its copy of the descriptor.
_KIND, _OBJECT = "memory objects", 1200


class MemoryObjects:
    """Memory objects, which go with this object. Each keeps a copy of its descriptor.

    Args:
        descs: The descriptor of each.
        handles: The address of what lies there; 0 where it is set before every run.

    Attributes:
        pointers: The objects, in the same order.

    Raises:
        NotServedError: oneDNN has no memory.
    """

    __slots__ = ("_array", "pointers")

    def __init__(self, descs: Sequence[MemoryDesc], handles: Sequence[int]) -> None:
        count = len(descs)
        kind = array_type(c_void_p, count)
        self._array, self.pointers = kind(), list[int]()
        own = RUNNER.library
        if own is None:
            for desc, handle in zip(descs, handles, strict=True):
                self.pointers.append(create("memory_create", desc, LIBRARY.engine, handle or None))
                BUDGET.count(_KIND, _OBJECT, 1)
            return
        given = kind(*[desc.pointer for desc in descs]), kind(*handles)
        if own.oprack_memories_create(*_functions(), LIBRARY.engine, *given, self._array, count):
            raise NotServedError("dnnl_memory_create: out of memory")
        self.pointers = list(self._array)
        BUDGET.count(_KIND, _OBJECT * count, count)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing():  # the library may be gone before its objects
            return
        count = len(getattr(self, "pointers", ()))
        BUDGET.count(_KIND, -_OBJECT * count, -count)
        if RUNNER.library is None:
            for pointer in getattr(self, "pointers", ()):
                call("memory_destroy", pointer)
        elif getattr(self, "pointers", None):
            RUNNER.library.oprack_memories_destroy(_functions()[1], self._array, len(self.pointers))


@cache
def _functions() -> tuple[c_void_p, c_void_p]:
    """Addresses of the functions that make a memory object, and destroy it."""
    lib = LIBRARY.lib
    assert lib is not None
    return cast(lib.dnnl_memory_create, c_void_p), cast(lib.dnnl_memory_destroy, c_void_p)
