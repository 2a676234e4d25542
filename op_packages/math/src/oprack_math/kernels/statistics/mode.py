"""Kernels of mode and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_math.kernels._sets import REAL
from oprack_math.kernels.statistics._pick import pick_grad, picked


@kernel("mode", dtypes=REAL)
def mode(X: Array, *, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The end of the longest run in the sorted elements; of runs of one length the first."""
    if not X.ndim:
        return X.copy(), np.zeros((), np.int64)
    order = np.argsort(X, axis=axis, kind="stable")
    ordered = np.take_along_axis(X, order, axis)
    here = np.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
    first = np.broadcast_to(here == 0, X.shape)
    begins = first | (ordered != np.roll(ordered, 1, axis))
    length = here - np.maximum.accumulate(np.where(begins, here, 0), axis=axis)
    ends = np.expand_dims(np.argmax(length, axis=axis), axis)
    return picked(X, np.take_along_axis(order, ends, axis), axis, keepdim, np)


mode_grad = kernel("mode_grad", place=("cpu", "cuda"), dtypes=REAL)(pick_grad)
