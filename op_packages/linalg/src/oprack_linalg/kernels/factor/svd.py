"""Kernels of svd and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, diagonal_matrix, inverse_differences, refusing


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
