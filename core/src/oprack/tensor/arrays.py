"""Arrays from outside and their dtypes: from oprack's dtypes to NumPy's, and to arrays as kernels take them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.types import dtype_name


@functools.cache
def _by_name(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes  # not needed by programs without bfloat16

        bfloat16: np.dtype = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)


def numpy_dtype(dtype: object) -> np.dtype:
    """The NumPy dtype for a name, a `VarType`, a wire number or a NumPy dtype; bfloat16 is ml_dtypes'.

    Args:
        dtype: The dtype in any of these ways.

    Returns:
        The NumPy dtype.

    Raises:
        InvalidArgumentError: When it is none of Paddle's dtypes.
    """
    return _by_name(dtype_name(dtype))


class Memory:
    """State shared by tensors on the same memory: how often it was written to, and by which op last."""

    __slots__ = ("version", "writer")

    def __init__(self) -> None:
        self.version, self.writer = 0, ""


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
