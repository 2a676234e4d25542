"""What the kernels of library "cuda" share: contiguous operands and launches over all elements."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, overload

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel

from oprack_cuda import raw
from oprack_cuda.library import usable
from oprack_cuda.raw import Argument

PRIORITY = 10
I64, I32, F64, U64 = np.int64, np.int32, np.float64, np.uint64


def cuda_kernel(
    op_type: str, dtypes: Collection[str], deterministic: bool = True, may_decline: bool = False
) -> Callable[..., Any]:
    """@kernel of library "cuda", which goes before the sources that serve all places."""
    return kernel(
        op_type,
        place="cuda",
        dtypes=dtypes,
        library="cuda",
        when=usable,
        priority=PRIORITY,
        deterministic=deterministic,
        may_decline=may_decline,
    )


def sums_dtype(dtype: np.dtype[Any]) -> np.dtype:
    """The type A of the sources: sums of 16-bit floats are float32."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else np.dtype(dtype)


def launch(xp: ArrayModule, file: str, name: str, dtype: np.dtype[Any], elements: int, *arguments: Argument) -> None:
    """Run a loop over elements; nothing when there are none."""
    if elements:
        raw.function(xp, file, name, dtype)(raw.blocks_for(elements), raw.BLOCK, *arguments)


def launch_rows(
    xp: ArrayModule, file: str, name: str, dtype: np.dtype[Any], rows: int, width: int, *arguments: Argument
) -> None:
    """Run one block per row of `width` elements; nothing when there are none."""
    if rows and width:
        raw.function(xp, file, name, dtype)(raw.blocks_for(rows, 1), raw.threads_for(width), *arguments)


@overload
def dense(xp: ArrayModule, array: Array, dtype: np.dtype[Any] | str | None = None) -> Array: ...
@overload
def dense(xp: ArrayModule, array: None, dtype: np.dtype[Any] | str | None = None) -> None: ...
def dense(xp: ArrayModule, array: Array | None, dtype: np.dtype[Any] | str | None = None) -> Array | None:
    """The array in C order, cast where asked; itself when it is so already. None stays None."""
    if array is None:
        return None
    if not array.flags.c_contiguous:  # else a scalar would become an array of rank 1
        array = xp.ascontiguousarray(array)
    return array if dtype is None else array.astype(dtype, copy=False)
