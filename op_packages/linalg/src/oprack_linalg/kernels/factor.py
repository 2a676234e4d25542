"""Kernels of factorizations."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import (
    BOTH,
    REAL_AND_COMPLEX,
    adjoint,
    diagonal_matrix,
    half_diagonal,
    hermitian,
    inverse_differences,
    refusing,
)
from oprack_linalg.kernels._triangular import solve_triangle


# pivots ---------------------------------------------------------------------------------------------------------------
# Permutations from the pivots of an LU factorization.
def row_order(op_type: str, pivots: Array, rows: int) -> Array:
    """The rows of X in the order of L U: X[row_order] = L U.

    Args:
        op_type: The op, for the error.
        pivots: int32 [..., K]: row i was swapped with row pivots[i], counted from 1.
        rows: Rows of X.

    Returns:
        int64 [..., rows].

    Raises:
        InvalidArgumentError: A pivot is no row.
    """
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= rows):
        raise InvalidArgumentError(
            f"op {op_type}: Pivots has numbers from {pivots.min()} to {pivots.max()}; expected numbers of the {rows} "
            "rows of X, counted from 1, as lu gives them"
        )
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        swapped = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., i : i + 1].copy(), -1)
        order[..., i : i + 1] = swapped
    return order


def to_original_rows(matrix: Array, order: Array) -> Array:
    """P times a matrix: its row i becomes row order[i]."""
    return np.take_along_axis(matrix, np.argsort(order, axis=-1)[..., None], -2)


# cholesky -------------------------------------------------------------------------------------------------------------
@kernel("cholesky", place=BOTH, dtypes=REAL_AND_COMPLEX)
def cholesky(X: Array, *, upper: bool, xp: ArrayModule) -> Array:
    """The triangular factor."""
    problem, advice = "is not positive definite", "expected symmetric ones with positive eigenvalues"
    with refusing("cholesky", "X", problem, advice):
        factor = xp.linalg.cholesky(adjoint(X) if upper else X)
    return adjoint(factor) if upper else factor


@kernel("cholesky_grad", place=BOTH, dtypes=FLOATS)
def cholesky_grad(Out: Array, Out_grad: Array, *, upper: bool, xp: ArrayModule) -> Array:
    """Half of L^-T (Phi + Phi^T) L^-1."""
    factor, gradient = (a.swapaxes(-1, -2) if upper else a for a in (Out, Out_grad))

    def by_transposed_factor(b: Array) -> Array:
        return solve_triangle("cholesky_grad", "Out", factor, b, upper=False, transpose=True, xp=xp)

    middle = half_diagonal(factor.swapaxes(-1, -2) @ gradient, xp)
    return hermitian(by_transposed_factor(by_transposed_factor(middle).swapaxes(-1, -2)))


# lu -------------------------------------------------------------------------------------------------------------------
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


# lu_unpack ------------------------------------------------------------------------------------------------------------
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


# qr -------------------------------------------------------------------------------------------------------------------
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


# svd ------------------------------------------------------------------------------------------------------------------
@kernel("svd", place=BOTH, dtypes=REAL_AND_COMPLEX)
def svd(X: Array, *, full_matrices: bool, xp: ArrayModule) -> tuple[Array, Array, Array]:
    """LAPACK's gesdd."""
    with refusing("svd", "X", "holds NaN or infinities", "expected finite numbers"):
        u, s, vh = xp.linalg.svd(X, full_matrices=full_matrices)
    return u, s, vh


@kernel("svd_grad", place=BOTH, dtypes=FLOATS)
def svd_grad(
    X: Array, U: Array, S: Array, VH: Array, U_grad: Array, S_grad: Array, VH_grad: Array, *, xp: ArrayModule
) -> Array:
    """The part within the spaces of U and VH, and what U or VH of an X that is not square turn out of them."""
    (rows, columns), k = X.shape[-2:], S.shape[-1]
    u, v, by_u, by_v = U[..., :k], VH[..., :k, :], U_grad[..., :k], VH_grad[..., :k, :]
    turn_u, turn_v = u.swapaxes(-1, -2) @ by_u, v @ by_v.swapaxes(-1, -2)
    weight = inverse_differences(S * S, xp)
    inner = weight * (turn_u - turn_u.swapaxes(-1, -2)) * S[..., None, :]
    inner = inner + S[..., :, None] * weight * (turn_v - turn_v.swapaxes(-1, -2)) + diagonal_matrix(S_grad, xp)
    out = u @ inner @ v
    if rows > k:
        out = out + ((by_u - u @ turn_u) / S[..., None, :]) @ v
    if columns > k:
        out = out + (u / S[..., None, :]) @ (by_v - turn_v.swapaxes(-1, -2) @ v)
    return out
