"""Kernels of qr and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX
from oprack_linalg.kernels._triangular import solve_triangle


@kernel("qr", place=BOTH, dtypes=REAL_AND_COMPLEX)
def qr(X: Array, *, mode: str, xp: ArrayModule) -> tuple[Array, Array]:
    """Q and R by Householder's reflections."""
    if mode == "r":
        return xp.empty(0, X.dtype), xp.linalg.qr(X, mode="r")
    q, r = xp.linalg.qr(X, mode=mode)
    return q, r


@kernel("qr_grad", place=BOTH, dtypes=FLOATS)
def qr_grad(X: Array, Q: Array, R: Array, Q_grad: Array, R_grad: Array, *, xp: ArrayModule) -> Array:
    """The gradient of the square part, and beside it that of further columns."""
    k = Q.shape[-1]
    by_q, by_r, beside = Q_grad, R_grad[..., :k], R_grad[..., k:]
    if beside.shape[-1]:
        by_q = by_q + X[..., k:] @ beside.swapaxes(-1, -2)
    square = R[..., :k]
    middle = xp.tril(square @ by_r.swapaxes(-1, -2) - by_q.swapaxes(-1, -2) @ Q)
    middle = middle + xp.tril(middle, -1).swapaxes(-1, -2)
    right = (by_q + Q @ middle).swapaxes(-1, -2)
    first = solve_triangle("qr_grad", "R", square, right, upper=True, xp=xp).swapaxes(-1, -2)
    return xp.concatenate([first, Q @ beside], axis=-1) if beside.shape[-1] else first
