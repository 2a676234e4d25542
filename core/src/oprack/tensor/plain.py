"""Converts arrays from outside to arrays as kernels take them: plain_array."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError


def plain_array(array: Any) -> Any:
    """A NumPy array, or scalar, as kernels take it: of class ndarray, in native byte order, its elements side by side.

    One that is so already is returned itself, with its dims in any order (channels last, say), as are arrays of other
    libraries.

    Args:
        array: An array or a NumPy scalar.

    Returns:
        The array, or a copy.

    Raises:
        InvalidArgumentError: For an array with masked elements, which have no values.
    """
    if not isinstance(array, np.ndarray | np.generic):
        return array
    if type(array) is np.ndarray and array.dtype.isnative and _is_dense(array):
        return array
    if getattr(array, "elementless", False):  # a ShapeArray
        return array
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InvalidArgumentError(
            f"got a masked array, {int(np.ma.getmaskarray(array).sum())} of whose {array.size} elements have no value; "
            "expected a value for each: pass array.filled(value)"
        )
    # Files and network data may be big endian; kernels and libraries read this machine's order alone.
    dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    plain = np.asarray(array, dtype)
    return plain if _is_dense(plain) else plain.copy(order="C")


def _is_dense(array: np.ndarray) -> bool:
    """Whether the elements lie side by side, and aligned, in some order of the dims."""
    flags = array.flags
    if flags.c_contiguous or not flags.aligned:
        return flags.aligned
    expected = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True
