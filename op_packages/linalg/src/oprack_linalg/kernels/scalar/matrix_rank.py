"""Kernel of matrix_rank."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, refusing


@kernel("matrix_rank", place=BOTH, dtypes=FLOATS)
def matrix_rank(
    X: Array, TolTensor: Array | None = None, *, tol: float, hermitian: bool, use_default_tol: bool, xp: ArrayModule
) -> Array:
    """How many singular values are above the tolerance."""
    with refusing("matrix_rank", "X", "holds NaN or infinities", "expected finite numbers"):
        s = xp.abs(xp.linalg.eigvalsh(X)) if hermitian else xp.linalg.svd(X, compute_uv=False)
    least = xp.asarray(0.0 if use_default_tol else tol, X.dtype) if TolTensor is None else TolTensor.astype(X.dtype)
    least = least[..., None]
    if use_default_tol and s.shape[-1]:
        precision = X.dtype.type(xp.finfo(X.dtype).eps * max(X.shape[-2:]))
        least = xp.maximum(least, s.max(axis=-1, keepdims=True) * precision)
    return xp.asarray((s > least).sum(axis=-1), dtype=xp.int32)
