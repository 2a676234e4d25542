"""oneDNN's objects, each destroyed with its Python object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref, c_char_p, c_int, c_void_p, cast
from functools import cache, lru_cache
from typing import Any

import numpy as np
from oprack.cache import BUDGET, Cache

from oprack_onednn.c.runner import RUNNER, array_type
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import Footprint, NotServedError, contiguous_strides, element_strides, footprint, reach
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.threads.compiler import COMPILER
from oprack_onednn.threads.process import EXIT


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


class Handle:
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
Handle._as_parameter_ = Handle.pointer  # type: ignore[attr-defined, misc]


def create(name: str, *args: Any) -> int:
    out = c_void_p()
    call(name, byref(out), *args)
    assert out.value is not None
    return out.value


class Attributes(Handle):
    """Attributes of a primitive: scratch memory from the caller, scales, and operations after the main one.

    Those with the same operations and scales are one object, which never changes.
    """

    __slots__ = ()
    destroy = "primitive_attr_destroy"

    def __new__(cls, post_ops: Sequence[tuple[Any, ...]] = (), scales: Sequence[tuple[int, int]] = ()) -> Attributes:
        """Find or make attributes.

        Args:
            post_ops: ("eltwise", algorithm, alpha, beta), ("sum", scale) or ("binary", algorithm, MemoryDesc).
            scales: (argument, mask) of what is multiplied by numbers that are given at each run, or divided by them if
                it is a result; a mask has a bit for each dim along which these numbers differ.

        Returns:
            The attributes.
        """
        key: tuple[Any, ...] = tuple([tuple([id(x) if isinstance(x, Handle) else x for x in op]) for op in post_ops])
        key += (tuple(scales),) if scales else ()
        entry: tuple[Attributes, tuple[tuple[Any, ...], ...]] | None = _KNOWN[key]
        if entry is None:
            # with the operations, so that no other descriptor can get the id of one of theirs
            entry = _made(cls, post_ops, scales), tuple(post_ops)
            _KNOWN.keep(key, entry, _ATTRIBUTES)
        return entry[0]

    def __init__(self, post_ops: Sequence[tuple[Any, ...]] = (), scales: Sequence[tuple[int, int]] = ()) -> None:
        """Nothing: the object is complete when it is found or made."""


def _made(cls: type[Attributes], post_ops: Sequence[tuple[Any, ...]], scales: Sequence[tuple[int, int]]) -> Attributes:
    found = Handle.__new__(cls)
    found.pointer = create("primitive_attr_create")
    call("primitive_attr_set_scratchpad_mode", found, _c.SCRATCHPAD_USER)
    for argument, mask in scales:
        call("primitive_attr_set_scales_mask", found, argument, mask)
    if not post_ops:
        return found
    chain = _PostOps(create("post_ops_create"))
    for kind, *rest in post_ops:
        if kind == "eltwise":
            call("post_ops_append_eltwise", chain, *rest)
        elif kind == "sum":
            call("post_ops_append_sum", chain, rest[0], 0, 0)
        else:
            call("post_ops_append_binary", chain, rest[0], rest[1])
    call("primitive_attr_set_post_ops", found, chain)
    return found


_ATTRIBUTES = 4_500
"""Bytes of attributes with the descriptors of their operations, as measured on a classifier that meets new sizes."""
_KNOWN = Cache(4096, "attributes")


class _PostOps(Handle):
    __slots__ = ()
    destroy = "post_ops_destroy"


# bytes of an element; bfloat16 is the upper half of a float32
_SIZES = {_c.F32: 4, _c.BF16: 2, _c.S8: 1}
# Bytes that a descriptor of a primitive takes, and the primitive with its code, as measured on the nets of the tests.
_BYTES, _OTHER = {"matmul": (62_000, 95_000), "reorder": (4_000, 14_000)}, (27_000, 33_000)
LOST = "lost in oneDNN"
"""What the account of `oprack.cache` calls memory that oneDNN 3.2 does not give back: code of its brgemm convolutions,
of which each primitive leaves some behind when it is destroyed, although the next one is the same."""
_LOSES = {"brgconv_1x1": 22_000, "brgconv": 60_000}


def _expect_elements(shape: Sequence[int]) -> None:
    # some primitives divide by sizes when they are made, and end the process
    if min(shape, default=1) < 1:
        raise NotServedError(f"an empty tensor of shape {tuple(shape)}")


class MemoryDesc(Handle):
    """Shape and memory layout of a tensor, which is not empty.

    Args:
        shape: The dims; () for a layout that a primitive chose.
        strides: In elements; None for a layout that a primitive chose, which is dense.
    """

    __slots__ = ("_footprints", "_itemsize", "_nbytes", "_reach", "shape", "strides")
    destroy = "memory_desc_destroy"

    def __init__(
        self, pointer: int, shape: Sequence[int] = (), strides: Sequence[int] | None = None, dtype: int = _c.F32
    ) -> None:
        super().__init__(pointer)
        self._itemsize = _SIZES.get(dtype, 0)
        self.shape, self.strides = tuple(shape), None if strides is None else tuple(strides)
        # told once each: a net's operators share descriptors, and ask again and again
        self._nbytes = self._reach = -1
        self._footprints: dict[int, Footprint] = {}

    @classmethod
    def any(cls, shape: Sequence[int], dtype: int = _c.F32) -> MemoryDesc:
        """The primitive chooses the layout."""
        return _any(tuple(shape), dtype)

    @classmethod
    def strided(cls, shape: Sequence[int], strides: Sequence[int] | None = None, dtype: int = _c.F32) -> MemoryDesc:
        """A layout by strides, counted in elements; default: row-major."""
        return _strided(tuple(shape), None if strides is None else tuple(strides), dtype)

    @property
    def bfloat16(self) -> MemoryDesc:
        """The same layout, by strides, of as many numbers in bfloat16."""
        return self.strided(self.shape, self.strides, _c.BF16)

    @property
    def int8(self) -> MemoryDesc:
        """The same layout, by strides, of as many signed bytes."""
        return self.strided(self.shape, self.strides, _c.S8)

    @classmethod
    def of(cls, array: np.ndarray) -> MemoryDesc:
        """The layout of a NumPy array. Raises NotServedError for strides that oneDNN has not."""
        return cls.strided(array.shape, element_strides(array))

    @classmethod
    def clone(cls, pointer: int) -> MemoryDesc:
        return cls(create("memory_desc_clone", pointer), dtype=_c.UNKNOWN)

    def __eq__(self, other: object) -> bool:
        return other is self or (
            isinstance(other, MemoryDesc) and bool(LIBRARY.lib.dnnl_memory_desc_equal(self, other))
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def itemsize(self) -> int:
        """Bytes of an element: 4 of float32, 2 of bfloat16, 1 of int8."""
        if not self._itemsize:
            dtype = c_int()
            call("memory_desc_query", self, _c.QUERY_DATA_TYPE, byref(dtype))
            self._itemsize = _SIZES.get(dtype.value, 4)
        return self._itemsize

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
            strides, size = self.strides, self.itemsize
            self._reach = self.nbytes if strides is None else reach(self.shape, [size * s for s in strides], size)
        return self._reach

    def footprint(self, itemsize: int) -> Footprint:
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
def _any(shape: tuple[int, ...], dtype: int) -> MemoryDesc:
    _expect_elements(shape)
    pointer = create("memory_desc_create_with_tag", len(shape), dims(shape), dtype, _c.ANY_TAG)
    return MemoryDesc(pointer, shape, dtype=dtype)


@lru_cache(maxsize=4096)
def _strided(shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: int) -> MemoryDesc:
    """A descriptor, which never changes, so that all chains share it: a net has few shapes, and asks for each often."""
    _expect_elements(shape)
    if strides is None:
        strides = contiguous_strides(shape)
    pointer = create("memory_desc_create_with_strides", len(shape), dims(shape), dtype, dims(strides))
    return MemoryDesc(pointer, shape, strides, dtype)


class Memory:
    """Memory that primitives read or write. array: the row-major float32 array that always lies there, if any."""

    __slots__ = ("array", "desc")

    def __init__(self, desc: MemoryDesc, array: np.ndarray | None = None) -> None:
        if array is not None and not (
            array.dtype == np.float32 and array.flags.c_contiguous and array.nbytes >= desc.reach
        ):
            raise ValueError(f"an array of {array.nbytes} bytes of {array.dtype} for {desc.reach} bytes of float32")
        self.desc, self.array = desc, array


class PrimitiveDesc(Handle):
    """A primitive descriptor.

    Raises NotServedError for an implementation that is no fast one ("ref", "simple"), unless `any_speed`.

    Attributes:
        impl: The name of the implementation.
        given: Numbers of arguments and layouts of their memory that were found to be large enough, the last ones.
        seconds: How long one core takes about for these.
    """

    __slots__ = ("_bytes", "_code", "_descs", "_job", "_primitive", "checked_arguments", "cost", "impl", "seconds")
    destroy = "primitive_desc_destroy"

    def __init__(self, kind: str, *args: Any, any_speed: bool = False) -> None:
        own, self._code = _BYTES.get(kind, _OTHER)
        self.cost = "primitive descriptors", own
        with EXIT:  # it looks into what all threads have compiled
            pointer = create(f"{kind}_primitive_desc_create", *args)
        super().__init__(pointer)
        self.checked_arguments: tuple[tuple[int, ...], tuple[MemoryDesc, ...]] = ((), ())
        self.seconds = 0.0
        self._bytes: dict[int, int] = {}
        self._descs: dict[int, MemoryDesc] = {}
        self._primitive: Primitive | None = None
        self._job = 0
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
        self._bytes, self._descs = {}, {}
        self._read_impl()
        return True

    def argument_bytes(self, argument: int) -> int:
        """How many bytes of memory, gaps counted, the primitive expects for an argument; 0 when it does not say."""
        found = self._bytes.get(argument)
        if found is None:
            pointer = LIBRARY.lib.dnnl_primitive_desc_query_md(self, _c.QUERY_EXEC_ARG_MD, argument)
            found = self._bytes[argument] = int(LIBRARY.lib.dnnl_memory_desc_get_size(pointer)) if pointer else 0
        return found

    def desc(self, query: int) -> MemoryDesc:
        """The layout that was chosen for an argument: _c.QUERY_SRC_MD and the like."""
        found = self._descs.get(query)
        if found is None:
            pointer = LIBRARY.lib.dnnl_primitive_desc_query_md(self, query, 0)
            found = self._descs[query] = MemoryDesc.clone(pointer)
        return found

    def compile_ahead(self, threads: int, cores: int) -> None:
        """Have the primitive compiled before its first use, as `Compiler.ahead` does."""
        if self._primitive is None and not self._job:
            self._job = COMPILER.ahead(self, threads, cores)

    @property
    def is_ready(self) -> bool:
        """Whether `primitive` takes no time any more."""
        return self._primitive is not None or (self._job != 0 and COMPILER.done(self._job))

    def primitive(self) -> Primitive:
        """The primitive, compiled on first use."""
        if self._primitive is None:
            job, self._job = self._job, 0
            with EXIT:
                pointer = (COMPILER.collect(job) if job else 0) or create("primitive_create", self)
            self._primitive = Primitive(pointer, self._code, _LOSES.get(self.impl.partition(":")[0], 0))
        return self._primitive

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_job", 0) and not finalizing():
            pointer = COMPILER.collect(self._job)  # it may be under way
            if pointer:
                LIBRARY.lib.dnnl_primitive_destroy(pointer)
        super().__del__()


class Primitive(Handle):
    """A compiled primitive.

    Args:
        pointer: The primitive.
        nbytes: About how many bytes it takes.
        lost: How many of them are not given back.
    """

    __slots__ = ("_lost", "cost")
    destroy = "primitive_destroy"

    def __init__(self, pointer: int, nbytes: int, lost: int) -> None:
        self.cost, self._lost = ("primitives", nbytes), lost
        super().__init__(pointer)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._lost and not finalizing():
            BUDGET.count(LOST, self._lost, 1)
        super().__del__()


class Stream(Handle):
    """What primitives of one Python thread are executed on."""

    __slots__ = ()
    destroy = "stream_destroy"

    def __init__(self) -> None:
        super().__init__(create("stream_create", LIBRARY.engine, _c.DEFAULT_STREAM))


def pointers(descs: Sequence[MemoryDesc]) -> Any:
    """A C array of descriptors."""
    return (c_void_p * len(descs))(*(d.pointer for d in descs))


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
