"""Kernels of kthvalue and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.statistics._pick import pick_grad, picked


@kernel("kthvalue", place=BOTH, dtypes=REAL)
def kthvalue(X: Array, *, k: int, axis: int, keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """The k-th of the sorted elements."""
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    places = xp.argsort(X, axis=axis, kind="stable").take(xp.asarray([k - 1]), axis=axis)
    return picked(X, places, axis, keepdim, xp)


kthvalue_grad = kernel("kthvalue_grad", place=BOTH, dtypes=REAL)(pick_grad)
