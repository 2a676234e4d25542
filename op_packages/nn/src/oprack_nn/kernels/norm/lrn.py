"""Kernels of lrn and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _around(x: Array, n: int, data_format: str) -> Array:
    """Sums over the n channels around each."""
    axis, half = (3 if is_channel_last(data_format) else 1), n // 2
    lead = (slice(None),) * axis
    total = x.copy()
    for step in range(1, min(half, x.shape[axis] - 1) + 1):
        total[(*lead, slice(step, None))] += x[(*lead, slice(None, -step))]
        total[(*lead, slice(None, -step))] += x[(*lead, slice(step, None))]
    return total


@kernel("lrn", place=_PLACES, dtypes=FLOATS)
def lrn(X: Array, *, n: int, k: float, alpha: float, beta: float, data_format: str) -> tuple[Array, Array]:
    kind = X.dtype.type
    mid = _around(X * X, n, data_format) * kind(alpha) + kind(k)
    return X * mid ** kind(-beta), mid


@kernel("lrn_grad", place=_PLACES, dtypes=FLOATS)
def lrn_grad(
    X: Array,
    Out: Array,
    MidOut: Array,
    Out_grad: Array,
    *,
    n: int,
    alpha: float,
    beta: float,
    data_format: str,
) -> Array:
    kind = X.dtype.type
    shared = _around(Out_grad * Out / MidOut, n, data_format)
    return Out_grad * MidOut ** kind(-beta) - kind(2 * alpha * beta) * X * shared
