"""oneDNN's objects, each destroyed with its Python object: memory descriptors, primitive descriptors, primitives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_void_p
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY

_SIZE = 4  # bytes of a float32


class NotServedError(Exception):
    """oneDNN has no fast implementation for these shapes; the caller runs the NumPy kernel."""


def dims(values: Sequence[int]) -> Any:
    """A dnnl_dims_t; the unused rest is 0."""
    return _c.Dims(*map(int, values))


def call(name: str, *args: Any) -> None:
    """Call dnnl_<name>. Raises NotServedError when it refuses, and says which function and status it was."""
    status = getattr(LIBRARY.lib, f"dnnl_{name}")(*args)
    if status:
        what = _c.STATUS[status] if status < len(_c.STATUS) else f"status {status}"
        raise NotServedError(f"dnnl_{name}: {what}")


class Native:
    """Owns a pointer; passed to a function it is that pointer. destroy: the name of the function that frees it."""

    __slots__ = ("_as_parameter_", "pointer")
    destroy = ""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        self._as_parameter_ = c_void_p(pointer)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # at exit the library may be gone before its objects, and the process ends anyway
        if hasattr(self, "pointer") and not finalizing():
            getattr(LIBRARY.lib, f"dnnl_{self.destroy}")(self.pointer)


def _create(name: str, *args: Any) -> int:
    out = c_void_p()
    call(name, byref(out), *args)
    assert out.value is not None
    return out.value


Footprint: TypeAlias = "tuple[tuple[int, int], ...]"
"""Which elements there are from an address on: (count, distance in bytes) of dims, innermost first, joined where they
follow on each other. Two layouts with one footprint have the same elements, whatever the order of their dims."""


def footprint(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Footprint:
    """The footprint of an array. strides: in bytes."""
    if 0 in shape:
        return ((0, itemsize),)
    found: list[tuple[int, int]] = []
    for stride, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1 and s):
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * n, found[-1][1])
        else:
            found.append((n, stride))
    return tuple(found)


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Bytes from the first element to the end of the last one behind it. strides: in bytes."""
    if 0 in shape:
        return 0
    return itemsize + sum((n - 1) * max(s, 0) for n, s in zip(shape, strides, strict=True))


def _expect_elements(shape: Sequence[int]) -> None:
    # some primitives divide by sizes when they are made, and end the process
    if min(shape, default=1) < 1:
        raise NotServedError(f"an empty tensor of shape {tuple(shape)}")


class MemoryDesc(Native):
    """Shape and memory layout of a float32 tensor, which is not empty. shape: () for a layout that a primitive chose.

    strides: in elements; None for a layout that a primitive chose, which is dense.
    """

    __slots__ = ("_footprints", "_nbytes", "_reach", "shape", "strides")
    destroy = "memory_desc_destroy"

    def __init__(self, pointer: int, shape: Sequence[int] = (), strides: Sequence[int] | None = None) -> None:
        super().__init__(pointer)
        self.shape, self.strides = tuple(shape), None if strides is None else tuple(strides)
        # told once each: a net's operators share descriptors, and ask again and again
        self._nbytes = self._reach = -1
        self._footprints: dict[int, Footprint] = {}

    @classmethod
    def any(cls, shape: Sequence[int]) -> MemoryDesc:
        """The primitive chooses the layout."""
        _expect_elements(shape)
        return cls(_create("memory_desc_create_with_tag", len(shape), dims(shape), _c.F32, _c.ANY_TAG), shape)

    @classmethod
    def strided(cls, shape: Sequence[int], strides: Sequence[int] | None = None) -> MemoryDesc:
        """A layout by strides, counted in elements; default: row-major."""
        return _strided(tuple(shape), None if strides is None else tuple(strides))

    @classmethod
    def of(cls, array: np.ndarray) -> MemoryDesc:
        """The layout of a NumPy array. Raises NotServedError for strides that oneDNN has not."""
        return cls.strided(array.shape, element_strides(array))

    @classmethod
    def clone(cls, pointer: int) -> MemoryDesc:
        return cls(_create("memory_desc_clone", pointer))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryDesc) and bool(LIBRARY.lib.dnnl_memory_desc_equal(self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """As oneDNN counts them, which is more than the reach where rows are apart."""
        if self._nbytes < 0:
            self._nbytes = int(LIBRARY.lib.dnnl_memory_desc_get_size(self))
        return self._nbytes

    @property
    def reach(self) -> int:
        """Bytes from the first element to the end of the last one."""
        if self._reach < 0:
            strides = self.strides
            self._reach = self.nbytes if strides is None else reach(self.shape, [_SIZE * s for s in strides], _SIZE)
        return self._reach

    def footprint(self, itemsize: int = _SIZE) -> Footprint:
        """Of the elements; of a layout that a primitive chose, of as many as its memory has room for."""
        found = self._footprints.get(itemsize)
        if found is None:
            if self.strides is None:
                found = footprint((self.nbytes // itemsize,), (itemsize,), itemsize)
            else:
                found = footprint(self.shape, [itemsize * s for s in self.strides], itemsize)
            self._footprints[itemsize] = found
        return found


@lru_cache(maxsize=4096)
def _strided(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> MemoryDesc:
    """A descriptor, which never changes, so that all chains share it: a net has few shapes, and asks for each often."""
    _expect_elements(shape)
    if strides is None:
        strides = contiguous_strides(shape)
    pointer = _create("memory_desc_create_with_strides", len(shape), dims(shape), _c.F32, dims(strides))
    return MemoryDesc(pointer, shape, strides)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements; those of dims of size 1 as in a row-major array, since they mean nothing."""
    size = array.itemsize
    found = []
    step = 1
    for n, s in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if n == 1:
            s = step * size
        if s <= 0 or s % size:
            raise NotServedError(f"strides {array.strides}")
        found.append(s // size)
        step = found[-1] * n
    return tuple(reversed(found))


class Memory(Native):
    """A memory object; its address is set before every run, unless it is that of a row-major float32 array."""

    __slots__ = ("array", "desc")
    destroy = "memory_destroy"

    def __init__(self, desc: MemoryDesc, array: np.ndarray | None = None) -> None:
        address = None
        if array is not None:
            if array.dtype != np.float32 or not array.flags.c_contiguous or array.nbytes < desc.reach:
                raise ValueError(f"an array of {array.nbytes} bytes of {array.dtype} for {desc.reach} bytes of float32")
            address = array.ctypes.data
        super().__init__(_create("memory_create", desc, LIBRARY.engine, address))
        self.desc, self.array = desc, array


class PrimitiveDesc(Native):
    """A primitive descriptor.

    Raises NotServedError for an implementation that is no fast one ("ref", "simple"), unless `any_speed`.
    """

    __slots__ = ("impl",)
    destroy = "primitive_desc_destroy"

    def __init__(self, kind: str, *args: Any, any_speed: bool = False) -> None:
        super().__init__(_create(f"{kind}_primitive_desc_create", *args))
        self._read_impl()
        if not any_speed and self.slow:
            raise NotServedError(f"{kind}: the implementation is {self.impl}")

    def _read_impl(self) -> None:
        text = c_char_p()
        call("primitive_desc_query", self, _c.QUERY_IMPL_INFO, 0, byref(text))
        self.impl = (text.value or b"").decode()

    @property
    def slow(self) -> bool:
        return self.impl.startswith(("ref", "simple"))

    def next_impl(self) -> bool:
        """Go on to the next implementation; False when this was the last."""
        if LIBRARY.lib.dnnl_primitive_desc_next_impl(self):
            return False
        self._read_impl()
        return True

    def argument_bytes(self, argument: int) -> int:
        """How many bytes of memory, gaps counted, the primitive expects for an argument; 0 when it does not say."""
        pointer = LIBRARY.lib.dnnl_primitive_desc_query_md(self, _c.QUERY_EXEC_ARG_MD, argument)
        return int(LIBRARY.lib.dnnl_memory_desc_get_size(pointer)) if pointer else 0

    def desc(self, query: int) -> MemoryDesc:
        """The layout that was chosen for an argument: _c.QUERY_SRC_MD and the like."""
        return MemoryDesc.clone(LIBRARY.lib.dnnl_primitive_desc_query_md(self, query, 0))


class Primitive(Native):
    """A compiled primitive."""

    __slots__ = ()
    destroy = "primitive_destroy"

    def __init__(self, desc: PrimitiveDesc) -> None:
        super().__init__(_create("primitive_create", desc))


class Stream(Native):
    """What primitives of one Python thread are executed on."""

    __slots__ = ()
    destroy = "stream_destroy"

    def __init__(self) -> None:
        super().__init__(_create("stream_create", LIBRARY.engine, _c.DEFAULT_STREAM))


class Attributes(Native):
    """Attributes of a primitive: scratch memory from the caller, and operations after the main one."""

    __slots__ = ()
    destroy = "primitive_attr_destroy"

    def __init__(self, post_ops: Sequence[tuple] = ()) -> None:
        """post_ops: ("eltwise", algorithm, alpha, beta), ("sum", scale) or ("binary", algorithm, MemoryDesc)."""
        super().__init__(_create("primitive_attr_create"))
        call("primitive_attr_set_scratchpad_mode", self, _c.SCRATCHPAD_USER)
        if not post_ops:
            return
        chain = _PostOps(_create("post_ops_create"))
        for kind, *rest in post_ops:
            if kind == "eltwise":
                call("post_ops_append_eltwise", chain, *rest)
            elif kind == "sum":
                call("post_ops_append_sum", chain, rest[0], 0, 0)
            else:
                call("post_ops_append_binary", chain, rest[0], rest[1])
        call("primitive_attr_set_post_ops", self, chain)


class _PostOps(Native):
    __slots__ = ()
    destroy = "post_ops_destroy"


def pointers(descs: Sequence[MemoryDesc]) -> Any:
    """A C array of descriptors."""
    return (c_void_p * len(descs))(*(d.pointer for d in descs))
