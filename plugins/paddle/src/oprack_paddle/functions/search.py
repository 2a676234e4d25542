"""Which elements are different, and where others are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import axis_in, dtype_name

Tensor = Any


def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    dtype: Any = "int64",
    name: Any = None,
) -> Any:
    """Elements that differ from the one before; where each element went, and how many there were of each, if asked."""
    asked = ["Out", *(["Index"] if return_inverse else []), *(["Counts"] if return_counts else [])]
    found = F.unique_consecutive(
        x,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=[] if axis is None else [axis],
        dtype=dtype_name(dtype),
        num_outputs=dict.fromkeys(asked, 1),
    )
    if len(asked) == 1:
        return found[0] if isinstance(found, tuple) else found
    return tuple(t for t in found if t is not None)


def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, name: Any = None) -> Tensor:
    """x with values added at these places of an axis."""
    return F.index_add(x, index, value, axis=axis_in(axis, x.ndim, "index_add"))


def view(x: Tensor, shape_or_dtype: Any, name: Any = None) -> Tensor:
    """The same memory in another shape, or read as another dtype."""
    if isinstance(shape_or_dtype, list | tuple):
        return x.reshape(list(shape_or_dtype))
    return oprack.to_tensor(np.array(x).view(dtype_name(shape_or_dtype)))
