"""NumPy arrays as oneDNN sees them: channels-last memory, rows, and recycled output buffers.

Images keep the shape [N, C, H, W] that the program gives them, but their memory goes by [N, H, W, C]: strides say so,
every NumPy kernel can read such an array, and the next kernel of this library takes it as it is.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from oprack.cache import BUDGET
from oprack.python.implementation import HAS_GIL

from oprack_onednn.dnnl.layout import element_strides
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, address


# Channels last ------------------------------------------------------------------------------------------------------
def last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of [N, C, *spatial] in channels-last memory."""
    strides = [0] * len(shape)
    strides[1], step = 1, shape[1]
    for i in range(len(shape) - 1, 1, -1):
        strides[i] = step
        step *= shape[i]
    strides[0] = step
    return tuple(strides)


def is_channels_last(array: np.ndarray) -> bool:
    """Whether the memory of [N, C, *spatial] goes by [N, *spatial, C], without gaps."""
    size = array.itemsize
    return all(
        n == 1 or s == t * size for n, s, t in zip(array.shape, array.strides, last_strides(array.shape), strict=True)
    )


@lru_cache(maxsize=4096)
def channels_last_desc(shape: tuple[int, ...]) -> MemoryDesc:
    return MemoryDesc.strided(shape, last_strides(shape))


def image_desc(array: np.ndarray) -> MemoryDesc:
    """The layout of [N, C, *spatial] in float32, bfloat16 or int8.

    The strides of dims of size 1 are those of channels-last memory if it can be.
    """
    last, size = is_channels_last(array), array.itemsize
    desc = channels_last_desc(array.shape) if last else MemoryDesc.strided(array.shape, element_strides(array))
    return desc.int8 if size == 1 else desc.bfloat16 if size == 2 else desc


# Any dense order ----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def memory_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Dims from outermost to innermost in memory, when a float32 array fills its memory without gaps; else None."""
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -strides[d])
    step = 4
    for d in reversed(order):
        if strides[d] != step:
            return None
        step *= shape[d]
    return tuple(order)


def empty_like(array: np.ndarray) -> np.ndarray:
    """An uninitialised array with the shape and strides of a dense one."""
    flat = BUFFERS.take((array.size,))
    return np.ndarray(array.shape, FLOAT, flat, 0, array.strides)


def rows_of(array: np.ndarray, count: int = -1) -> tuple[int, ...] | None:
    """Describe an array as a matrix: rows at one distance, whose numbers lie side by side.

    Args:
        array: The array.
        count: How many dims, from the first one on, are rows; default: all but the last.

    Returns:
        (number of rows, numbers of a row, elements from one row to the next); None for other strides.
    """
    lead, last = array.shape[:count], array.shape[count:]
    width = 1
    for n, stride in zip(reversed(last), reversed(array.strides[count:]), strict=True):
        if n != 1 and stride != array.itemsize * width:
            return None
        width *= n
    m = step = 1
    for n, stride in zip(reversed(lead), reversed(array.strides[:count]), strict=True):
        if n == 1:
            continue
        if m == 1:
            step = stride
        elif stride != step * m:
            return None
        m *= n
    if m == 1:
        return m, width, width
    # Primitives can't read rows that overlap, as those of a broadcast array do.
    apart, rest = divmod(step, array.itemsize)
    return None if rest or apart < width else (m, width, apart)


# Output buffers -----------------------------------------------------------------------------------------------------
_PAGE = 4096
ALIGN = 64
"""Bytes. Primitives write large outputs past the caches with instructions that demand it of the address."""


# Bytes from which on scratch memory has pages of its own, and NumPy asks for huge ones.
_OWN, _HUGE = 1 << 20, 1 << 22


def scratch(nbytes: int) -> np.ndarray:
    """Uninitialised bytes that the system has back as soon as nobody refers to them.

    What is freed to malloc in such sizes stays with the process where something lies behind it. Raises MemoryError.
    """
    if nbytes < _OWN or sys.platform == "win32":
        return np.empty(nbytes, np.uint8)
    try:
        pages = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no {nbytes} bytes of scratch memory: {error.strerror}") from error
    if nbytes >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


def aligned_empty(nbytes: int, dtype: np.dtype) -> np.ndarray:
    """An uninitialised array of one dim that begins at a multiple of ALIGN bytes."""
    raw = np.empty(nbytes + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + nbytes].view(dtype)  # which keeps the raw memory alive


# How many arrays over it one buffer keeps.
_ARRAYS = 64
# What buffers are called in the account of `oprack.cache`, as the scratch memory of threads is.
_SCRATCH = "scratch memory"


class _Buffer:
    """A piece of memory.

    Attributes:
        arrays: For each Outlet that used it an array over the memory, of which each result is a view.
        idle: How many references the memory has when nobody uses it.
    """

    __slots__ = ("address", "arrays", "idle", "memory", "offset", "round")

    def __init__(self, memory: np.ndarray, round: int) -> None:
        self.memory, self.round = memory, round
        self.offset = -memory.ctypes.data % ALIGN
        self.address = memory.ctypes.data + self.offset
        self.arrays: dict[Outlet, np.ndarray] = {}
        self.idle = _IDLE

    def array(self, outlet: Outlet) -> np.ndarray:
        """Make the array for an outlet."""
        if len(self.arrays) >= _ARRAYS:  # a plain dict, since `idle` counts its entries
            self.arrays.clear()
        array = self.arrays[outlet] = np.ndarray(outlet.shape, outlet.dtype, self.memory, self.offset, outlet.strides)
        self.idle = _IDLE + len(self.arrays)
        return array

    @property
    def free(self) -> bool:
        return sys.getrefcount(self.memory) == self.idle


def _idle_count() -> int:
    """What getrefcount says of memory that only its _Buffer has; it depends on the interpreter."""
    probe = _Buffer.__new__(_Buffer)
    probe.memory = np.empty(1, np.uint8)
    return sys.getrefcount(probe.memory)


_IDLE = _idle_count()


class Buffers:
    """Memory of large outputs, used again as soon as no array refers to it: fresh pages cost more than most primitives.

    An array is a view of a buffer, so a buffer's reference count says whether anybody still has it.

    Args:
        smallest: Bytes from which on buffers are kept.
        most: Bytes that are kept altogether.
        patience: Outputs are counted in rounds of so many; a buffer that none of a whole round took is given back.
        exact: Whether sizes of buffers are rounded up to a page, and not to a power of two.
    """

    def __init__(self, smallest: int = 1 << 16, most: int = 1 << 28, patience: int = 2048, exact: bool = False) -> None:
        self._smallest, self._most, self._patience, self._exact = smallest, most, patience, exact
        self._by_size: dict[int, list[_Buffer]] = {}
        self._total = self._taken = self._round = 0
        self._lock = threading.Lock()

    def size_of(self, nbytes: int) -> int:
        """The size of the buffers for arrays of so many bytes; 0 when they are too small to be kept."""
        if nbytes < self._smallest:
            return 0
        if self._exact:
            return -(-nbytes // _PAGE) * _PAGE
        # few sizes: the sooner memory is used again, the more of it is still in the caches
        return int(1 << (nbytes - 1).bit_length())

    def take(self, shape: Sequence[int]) -> np.ndarray:
        """An uninitialised float32 array."""
        size = self.size_of(FLOAT.itemsize * math.prod(shape))
        if not size:
            return np.empty(shape, FLOAT)
        with self._lock:
            buffer = self._free(size)
            return np.ndarray(shape, FLOAT, buffer.memory, buffer.offset)

    def take_for(self, size: int, outlet: Outlet) -> tuple[np.ndarray, int]:
        """An uninitialised array of an outlet's shape and strides, and its address."""
        with self._lock:
            buffer = self._free(size)
            array = buffer.arrays.get(outlet)
            return (buffer.array(outlet) if array is None else array).view(), buffer.address

    def _free(self, size: int) -> _Buffer:
        """A buffer that nobody uses; the caller holds the lock until it has made an array over it."""
        self._taken += 1
        if self._taken >= self._patience:
            self._sweep(self._round)
            self._taken, self._round = 0, self._round + 1
        for room in (size, 2 * size):  # a buffer that is too large is better than fresh pages
            for buffer in self._by_size.get(room, ()):
                if sys.getrefcount(buffer.memory) == buffer.idle:
                    buffer.round = self._round
                    return buffer
        return self._new(size)

    def _new(self, size: int) -> _Buffer:
        if self._total + size > self._most:
            self._sweep(self._round + 1)
        buffer = _Buffer(scratch(size + ALIGN), self._round)
        if self._total + size <= self._most:
            self._by_size.setdefault(size, []).append(buffer)
            self._total += size
            BUDGET.count(_SCRATCH, size, 0)
        return buffer

    def give_back(self) -> None:
        """Give back all buffers that nobody has."""
        if not self._lock.locked():
            with self._lock:
                self._sweep(self._round + 1)

    def _sweep(self, round: int) -> None:
        """Give back idle buffers that were taken last before a round."""
        for size, buffers in list(self._by_size.items()):
            buffers[:] = [b for b in buffers if b.round >= round or not b.free]
            if not buffers:
                del self._by_size[size]
        before, self._total = self._total, sum(size * len(buffers) for size, buffers in self._by_size.items())
        BUDGET.count(_SCRATCH, self._total - before, 0)


# Without the GIL a reference count may change while it is read, so no buffer is kept.
BUFFERS = Buffers(most=1 << 28 if HAS_GIL else 0)
TRAINING_BUFFERS = Buffers(most=1 << 33 if HAS_GIL else 0, exact=True)
"""Memory of parameters, their gradients and the state of optimizers. Each step of a training makes new ones of the same
sizes, so as much is kept as lives at a time."""


BUDGET.when_over(BUFFERS.give_back)


class Outlet:
    """Makes results of one dtype, shape and strides (in bytes)."""

    _nowhere = np.empty(0, np.uint8)

    __slots__ = ("_model", "_size", "dtype", "nbytes", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype = FLOAT) -> None:
        self.dtype, self.shape, self.strides, self.nbytes = dtype, shape, strides, dtype.itemsize * math.prod(shape)
        self._size = BUFFERS.size_of(self.nbytes)
        self._model = None
        if not self._size:
            model = np.ndarray(shape, dtype, None, 0, strides)
            self._model = None if model.flags.c_contiguous else model

    def take(self) -> tuple[np.ndarray, int]:
        """An uninitialised array, and its address."""
        if self._size:
            return BUFFERS.take_for(self._size, self)
        array = np.empty(self.shape, self.dtype) if self._model is None else np.empty_like(self._model)
        return array, address(array)

    def blank(self) -> np.ndarray:
        """An array like the result for a dry run: over memory that is nobody's, and so takes none."""
        room = Outlet._nowhere
        if room.size < self.nbytes:
            room = Outlet._nowhere = np.empty(2 * self.nbytes, np.uint8)
        return np.ndarray(self.shape, self.dtype, room, 0, self.strides)


def empty_image(shape: Sequence[int]) -> np.ndarray:
    """An uninitialised [N, C, *spatial] array in channels-last memory."""
    n, c, *spatial = shape
    buffer = BUFFERS.take((n, *spatial, c))
    return buffer.transpose(0, buffer.ndim - 1, *range(1, buffer.ndim - 1))
