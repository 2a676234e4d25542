"""Kernels of lu_unpack and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels.factor._pivots import row_order, to_original_rows


@kernel("lu_unpack", dtypes=FLOATS)
def lu_unpack(X: Array, Pivots: Array, *, unpack_ludata: bool, unpack_pivots: bool) -> tuple[Array, Array, Array]:
    """P, L and U."""
    rows, columns = X.shape[-2:]
    k = min(rows, columns)
    permutation = lower = upper = np.empty(0, X.dtype)
    if unpack_pivots:
        eye = np.broadcast_to(np.eye(rows, dtype=X.dtype), (*X.shape[:-2], rows, rows))
        permutation = to_original_rows(eye, row_order("lu_unpack", Pivots, rows))
    if unpack_ludata:
        lower = np.tril(X[..., :k], -1) + np.eye(rows, k, dtype=X.dtype)
        upper = np.triu(X[..., :k, :])
    return permutation, lower, upper


@kernel("lu_unpack_grad", dtypes=FLOATS)
def lu_unpack_grad(X: Array, L_grad: Array, U_grad: Array, *, unpack_ludata: bool, ctx: KernelContext) -> Array:
    """Both triangles, each padded with zeros to the shape of X."""
    out = np.zeros(X.shape, L_grad.dtype)
    if unpack_ludata:
        k = min(X.shape[-2:])
        out[..., :k] += np.tril(L_grad, -1)
        out[..., :k, :] += np.triu(U_grad)
    return out
