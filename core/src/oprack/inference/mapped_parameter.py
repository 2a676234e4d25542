"""Parameters over the bytes of a file, mapped or read, without a copy; what the file says of them is not trusted."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.tensor import LoDTensor, check_lod, numpy_dtype

ALIGN = 64
"""Where parameters begin: at multiples of this, as kernels of libraries read them fastest."""
_MAX_RANK = 32  # as many dims as any version of NumPy has


def mapped_parameter(
    data: mmap.mmap | bytes, start: int, name: Any, dtype: Any, dims: Any, order: Any, lod: Any, offset: Any
) -> LoDTensor:
    """A parameter over the bytes of a file, which nobody can write to.

    Args:
        data: What is in the file.
        start: Where its parameters begin.
        name: Name of the parameter.
        dtype: Its dtype.
        dims: Its dims as the file has them, the ones that lie farthest apart in memory first.
        order: Which dim of the parameter each of these is; None where they are in order.
        lod: Its LoD.
        offset: Where it begins, from `start` on.

    Raises:
        ValueError: The file contradicts itself, as one that was cut off or damaged does.
    """
    kind = numpy_dtype(dtype)
    numbers = [*dims, offset]
    if not isinstance(name, str) or not all(type(n) is int and n >= 0 for n in numbers) or len(dims) > _MAX_RANK:
        raise ValueError(f"parameter {name!r} is {dtype!r} {dims!r} at {offset!r}")
    nbytes = _bytes_within(data, start, name, kind, dims, offset)
    array: np.ndarray[Any, Any] = np.ndarray(dims, kind, data, start + offset) if nbytes else np.empty(dims, kind)
    if kind.kind == "b":
        array = array.view(np.uint8) != 0  # a byte other than 0 and 1 is no bool to NumPy
    if order is not None:
        if sorted(order) != list(range(len(dims))):
            raise ValueError(f"parameter {name!r}: {order!r} is no order of {len(dims)} dims")
        array = array.transpose([order.index(d) for d in range(len(dims))])
    array.flags.writeable = False
    lod = check_lod(lod, array.shape[0] if array.ndim else 0, f"LoD of {name!r}") if lod else []
    return LoDTensor(array, lod, check=False, shared=True)


def _bytes_within(
    data: mmap.mmap | bytes, start: int, name: str, dtype: np.dtype[Any], dims: Sequence[int], offset: int
) -> int:
    """How many bytes a parameter takes; ValueError when they are not all in the file."""
    # NumPy multiplies the other dims of an empty array as well
    nbytes, most = (math.prod(sizes) * dtype.itemsize for sizes in (dims, [d for d in dims if d]))
    if most > len(data) or start + offset + nbytes > len(data) or offset % ALIGN:
        raise ValueError(f"parameter {name!r}, {dtype} {dims} at {offset}, is not in the {len(data)} bytes of the file")
    return nbytes
