"""Constant parameters, and what is packed or computed from them, once for as long as they live."""

from __future__ import annotations

import mmap
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.cache import BUDGET

from oprack_onednn.chain.memory import aligned_empty
from oprack_onednn.chain.primitive_chain import PrimitiveChain, array_dtype
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import OperandError, Region


def is_read_only(array: np.ndarray) -> bool:
    """Whether nobody can write to an array's memory: it is read-only, and its own, or of bytes or a mapped file.

    The parameters of predictors are so. All others may be trained, so nothing that is derived from them may be kept.
    """
    flags = array.flags
    return not flags.writeable and (flags.owndata or _is_fixed(array.base))


def _is_fixed(base: object) -> bool:
    while type(base) is np.ndarray and not base.flags.writeable:
        base = base.base
    return type(base) is bytes or (type(base) is mmap.mmap and memoryview(base).readonly)


def is_constant(array: np.ndarray) -> bool:
    """Whether nobody can write to an array's memory, and it is row-major."""
    return array.flags.c_contiguous and is_read_only(array)


def let_pages_go(array: np.ndarray) -> None:
    """Say that nobody reads a constant array soon: what lies in a mapped file is read again from there when it is.

    All of the file goes, as a page that is read brings those beside it.
    """
    base: object = array.base
    while type(base) is np.ndarray:
        base = base.base
    if type(base) is mmap.mmap and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


PACKED_PARAMETERS = "packed parameters"
"""What packed parameters are called in the account of `oprack.cache`."""
_Layouts = tuple[int | None, MemoryDesc, MemoryDesc]


class PackedParameters:
    """Constant arrays in the layouts that primitives chose, shared by all threads, for as long as the arrays live."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[np.ndarray], list[tuple[_Layouts, np.ndarray]]]] = {}
        self._lock = threading.Lock()

    def get(self, array: np.ndarray, source: MemoryDesc, target: MemoryDesc, offset: int | None = None) -> np.ndarray:
        """`pack(source, target, array, offset)`, computed once."""
        key, layouts = id(array), (offset, source, target)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[0]() is not array:
                entry = self._entries[key] = (weakref.ref(array, lambda _: self._drop(key)), [])
            for packed_layouts, packed in entry[1]:
                if packed_layouts == layouts:
                    return packed
            packed = pack(source, target, array, offset)
            entry[1].append((layouts, packed))
            let_pages_go(array)
            BUDGET.count(PACKED_PARAMETERS, packed.nbytes, 1)
            return packed

    # bound here: when the interpreter exits, this module's globals may be None before the arrays are gone
    def _drop(
        self, key: int, count: Callable[[str, int, int], None] = BUDGET.count, kind: str = PACKED_PARAMETERS
    ) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            count(kind, -sum(packed.nbytes for _, packed in entry[1]), -len(entry[1]))


PACKED = PackedParameters()


def _forget(weights: weakref.ref[Weights], key: int, _: Any) -> None:
    """Drop the entry of an array that is gone; called by its weak reference."""
    alive = weights()
    if alive is not None:
        alive._packed.pop(key, None)


class Weights:
    """Packs constant arrays, each once, into the layout that a primitive chose.

    Args:
        source: Layout in which the array is read.
        target: The layout that the primitive chose.
        offset: Element from which on a part of the array is read; default: all of it.
        derive: Computes from the array what is packed; default: the array itself.
    """

    def __init__(
        self,
        source: MemoryDesc,
        target: MemoryDesc,
        offset: int | None = None,
        derive: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.source, self.target, self.offset, self._derive = source, target, offset, derive
        self._packed: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}

    def of(self, array: np.ndarray) -> np.ndarray:
        """A constant array's packed form. Raises OperandError when it is not what the layout says."""
        array = array if self._derive is None else self._derive(array)
        key = id(array)
        entry = self._packed.get(key)
        if entry is None or entry[0]() is not array:
            packed = PACKED.get(array, self.source, self.target, self.offset)
            # The callback holds no reference to self, so that a cycle can't keep what is packed alive.
            self._packed[key] = entry = weakref.ref(array, partial(_forget, weakref.ref(self), key)), packed
        return entry[1]


def pack(source: MemoryDesc, target: MemoryDesc, array: np.ndarray, offset: int | None = None) -> np.ndarray:
    """Copy what an array holds into another layout.

    Args:
        source: The layout of the array.
        target: The layout of the copy.
        array: The array.
        offset: Element from which on a part of it is read; default: all of it.

    Returns:
        The copy, as numbers of that layout's dtype that start at a multiple of 64 bytes.

    Raises:
        OperandError: The array is not what the layout `source` says.
    """
    if offset is not None and not array.flags.c_contiguous:
        raise OperandError("a part of an array that is not row-major")
    packed = aligned_empty(target.nbytes, array_dtype(target))
    chain = PrimitiveChain()
    chain.reorder(chain.input(source), chain.output(target))
    chain.run(array if offset is None else (Region(array), array.itemsize * offset), packed)
    return packed


def _bytes_of(derived: Any) -> int:
    """Bytes of an array, of the arrays that are attributes of an object, or of a list of either."""
    if isinstance(derived, np.ndarray):
        return derived.nbytes
    if isinstance(derived, list):
        return sum(map(_bytes_of, derived))
    return sum(a.nbytes for a in getattr(derived, "__dict__", {}).values() if isinstance(a, np.ndarray))


def _forget_derived(
    entries: dict[Any, Any],
    key: Any,
    nbytes: int,
    _: Any,
    count: Callable[[str, int, int], None] = BUDGET.count,
    kind: str = PACKED_PARAMETERS,
) -> None:
    """Drop an entry one of whose arrays is gone; called by a weak reference, so it may use no global name."""
    if entries.pop(key, None) is not None:
        count(kind, -nbytes, -1)


class FromConstants:
    """Caches `make(arrays, *options)` for constant arrays, until one of them is gone; for others calls it each time.

    Args:
        make: Computes something from arrays.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._entries: dict[tuple[Hashable, ...], tuple[list[weakref.ref[np.ndarray]], Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, arrays: Sequence[np.ndarray], *options: Hashable) -> Any:
        # An id may be that of another array when one is gone, so the weak references are compared as well.
        key, entries = (*map(id, arrays), *options), self._entries
        entry = entries.get(key)
        if entry is not None and all([r() is a for r, a in zip(entry[0], arrays, strict=True)]):
            return entry[1]
        # An array that can be written to may be trained, so the result holds for this call alone.
        if not all(map(is_constant, arrays)):
            return self._make(arrays, *options)
        with self._lock:
            # Another thread may have made it meanwhile; then its result has to be taken, since chains hold addresses.
            entry = entries.get(key)
            if entry is None or not all([r() is a for r, a in zip(entry[0], arrays, strict=True)]):
                derived = self._make(arrays, *options)
                for array in arrays:
                    let_pages_go(array)
                nbytes = _bytes_of(derived)
                BUDGET.count(PACKED_PARAMETERS, nbytes, 1)
                forget = partial(_forget_derived, entries, key, nbytes)
                entry = entries[key] = ([weakref.ref(a, forget) for a in arrays], derived)
            return entry[1]
