"""The one way from arrays to the addresses that oneDNN is given.

A chain knows what each of its external memory objects reads or writes: dtype, elements and their strides. An array
becomes an address here alone, after it was compared with that: native code trusts its descriptors, and a model may
bring parameters of any dtype and shape, a caller feeds of any strides.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from ctypes import c_void_p
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from oprack_onednn.dnnl.layout import Footprint, NotServedError, footprint, reach
from oprack_onednn.dnnl.objects import Memory, MemoryDesc

FLOAT, INT8 = np.dtype(np.float32), np.dtype(np.int8)


class OperandError(NotServedError):
    """An array is not what a primitive reads or writes there; the caller runs the NumPy kernel."""


def _slow_address(array: np.ndarray) -> int:
    return array.ctypes.data


def _fast_address(array: np.ndarray) -> int:
    # `data` is the first field of NumPy's array object, behind Python's header; eight times as fast as array.ctypes
    return _pointer_at(id(array) + _HEADER).value or 0


_pointer_at, _HEADER = c_void_p.from_address, object.__basicsize__
_probes = [np.empty(shape, FLOAT) for shape in ((), (3,), (2, 3, 4))]
_layout_known = sys.implementation.name == "cpython" and all(
    _fast_address(probe) == _slow_address(probe) for probe in _probes
)
address = _fast_address if _layout_known else _slow_address
"""address(array): of its first element. Nothing but a chain's guard may take it for an operand."""


class Region:
    """The memory of an array from its first element on; (region, byte) is an operand that begins at that byte.

    Of such an operand nothing but its reach is compared with the chain's: which elements lie there is up to the caller.
    """

    __slots__ = ("address", "array", "dtype", "nbytes", "writeable")

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype, self.writeable = array, array.dtype, array.flags.writeable
        self.address = address(array)
        self.nbytes = _reach(array.shape, array.strides, array.itemsize)
        if self.address % array.itemsize:
            raise OperandError("a part of an array that is not aligned")


Operand: TypeAlias = "np.ndarray | tuple[Region, int]"


class External(Memory):
    """Memory of a chain that an operand gives. written: whether the chain writes to it."""

    __slots__ = ("_shape", "_strides", "dtype", "footprint", "mask", "reach", "written")

    def __init__(self, desc: MemoryDesc, written: bool = False, dtype: np.dtype = FLOAT) -> None:
        super().__init__(desc)
        self.written, self.dtype, self.mask = written, dtype, dtype.itemsize - 1
        self.reach, self.footprint = desc.reach, desc.footprint(dtype.itemsize)
        self._shape: tuple[int, ...] = (-1,)  # with _strides: of the last array that had the footprint
        self._strides: tuple[int, ...] = ()

    def address(self, operand: Operand) -> int:
        """Where the operand begins. Raises OperandError when it is not what this memory stands for.

        An array has exactly the elements that the descriptor has, in whatever order of dims; it is of the descriptor's
        dtype in this machine's byte order, aligned, and writable when it is written to.
        """
        if type(operand) is tuple:
            return self._part(*operand)
        array: np.ndarray = operand  # type: ignore[assignment]  # no tuple
        if array.dtype is not self.dtype and array.dtype != self.dtype:
            raise OperandError(f"an operand is {array.dtype}; expected {self.dtype}")
        if array.shape != self._shape or array.strides != self._strides:
            self._compare(array.shape, array.strides)
        if self.written and not array.flags.writeable:
            raise OperandError("a result would be written to a read-only array")
        start = address(array)
        if start & self.mask:
            raise OperandError("an operand is not aligned")
        return start

    def _part(self, region: Region, offset: int) -> int:
        if not 0 <= offset <= region.nbytes - self.reach or region.dtype != self.dtype or offset & self.mask:
            raise OperandError(
                f"{self.reach} bytes of {self.dtype} from byte {offset} on of {region.nbytes} bytes of {region.dtype}"
            )
        if self.written and not region.writeable:
            raise OperandError("a result would be written to a read-only array")
        return region.address + offset

    def _compare(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        if _footprint(shape, strides, self.dtype.itemsize) != self.footprint:
            raise OperandError(f"an operand has shape {shape} and strides {strides}; expected {self.footprint}")
        self._shape, self._strides = shape, strides


def addresses(memory: Sequence[External], operands: Sequence[Operand]) -> list[int]:
    """Addresses for some of a chain's memory. Raises OperandError when there are not as many operands."""
    if len(memory) != len(operands):
        raise OperandError(f"{len(operands)} operands; expected {len(memory)}")
    return list(map(External.address, memory, operands))


@lru_cache(maxsize=4096)
def _footprint(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Footprint:
    return footprint(shape, strides, itemsize)


@lru_cache(maxsize=4096)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    return reach(shape, strides, itemsize)
