"""Kernels of lu and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._triangular import solve_triangle
from oprack_linalg.kernels.factor._pivots import row_order, to_original_rows


@kernel("lu", dtypes=FLOATS)
def lu(X: Array) -> tuple[Array, Array, Array]:
    """LAPACK's getrf for each matrix."""
    from scipy.linalg.lapack import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (X,))
    batch, inner = X.shape[:-2], min(X.shape[-2:])
    out, pivots = np.empty_like(X), np.empty((*batch, inner), np.int32)
    infos = np.zeros(batch or (1,), np.int32)
    for at in np.ndindex(batch) if inner else ():
        out[at], steps, infos[at or 0] = getrf(X[at])
        pivots[at] = steps + 1
    return out, pivots, infos


@kernel("lu_grad", dtypes=FLOATS)
def lu_grad(X: Array, Out: Array, Pivots: Array, Out_grad: Array) -> Array:
    """P times the gradient of L U."""
    rows, columns = X.shape[-2:]
    k = min(rows, columns)
    square, by_lower, by_upper = Out[..., :k, :k], np.tril(Out_grad, -1)[..., :k], np.triu(Out_grad)[..., :k, :]
    lower, upper = np.tril(square, -1) + np.eye(k, dtype=Out.dtype), np.triu(square)

    def by_lower_transposed(b: Array) -> Array:
        return solve_triangle("lu_grad", "Out", square, b, upper=False, transpose=True, unit=True, xp=np)

    def times_inverse_of_upper_transposed(b: Array) -> Array:
        return solve_triangle("lu_grad", "Out", square, b.swapaxes(-1, -2), upper=True, xp=np).swapaxes(-1, -2)

    result = np.empty_like(Out)
    # rows of L below the square part are X U^-1, columns of U beside it are L^-1 X
    below = times_inverse_of_upper_transposed(by_lower[..., k:, :])
    beside = by_lower_transposed(by_upper[..., k:])
    result[..., k:, :k], result[..., :k, k:] = below, beside
    by_lower = by_lower[..., :k, :] - beside @ Out[..., :k, k:].swapaxes(-1, -2)
    by_upper = by_upper[..., :k] - Out[..., k:, :k].swapaxes(-1, -2) @ below
    middle = np.tril(lower.swapaxes(-1, -2) @ by_lower, -1) + np.triu(by_upper @ upper.swapaxes(-1, -2))
    result[..., :k, :k] = times_inverse_of_upper_transposed(by_lower_transposed(middle))
    return to_original_rows(result, row_order("lu_grad", Pivots, rows))
